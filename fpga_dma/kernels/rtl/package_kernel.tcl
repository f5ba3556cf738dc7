# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Packages an RTL kernel for Vitis (UG1393, "Packaging RTL Kernels"):
#   vivado -mode batch -source package_kernel.tcl -tclargs XO KERNEL PART FOLDER
# FOLDER takes what Vivado makes on the way. The module of the kernel's name is
# the top; every .sv beside this script goes along. KERNEL.xml names ports and
# arguments.

if {$argc != 4} {
  puts stderr "usage: package_kernel.tcl XO KERNEL PART FOLDER"
  exit 2
}
lassign $argv xo kernel part folder
set sources [file dirname [file normalize [info script]]]
set xml "$sources/$kernel.xml"
set ip "$folder/ip"

set channel [open $xml]
set text [read $channel]
close $channel
set ports {}
foreach {unused name} [regexp -all -inline {<port name="(\w+)"} $text] {
  lappend ports $name
}

create_project -force package "$folder/project" -part $part
add_files -norecurse [lsort [glob "$sources/*.sv"]]
set_property top $kernel [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $ip -vendor pagedkv -library kernel \
    -taxonomy /KernelIP -import_files -set_current true
set core [ipx::current_core]
set_property name $kernel $core
set_property version 1.0 $core
set_property core_revision 1 $core
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
# Vitis chooses the clock; the kernel runs at any.
set_property ipi_drc {ignore_freq_hz true} $core
set_property vitis_drc {ctrl_protocol ap_ctrl_chain} $core
set_property supported_families {} $core
set_property auto_family_support_level level_2 $core

ipx::infer_bus_interface ap_clk xilinx.com:signal:clock_rtl:1.0 $core
ipx::infer_bus_interface ap_rst_n xilinx.com:signal:reset_rtl:1.0 $core
ipx::infer_bus_interface interrupt xilinx.com:signal:interrupt_rtl:1.0 $core
foreach port $ports {
  ipx::associate_bus_interfaces -busif $port -clock ap_clk $core
}
ipx::associate_bus_interfaces -clock ap_clk -reset ap_rst_n $core

ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity -kernel -xrt $core
ipx::save_core $core
close_project -delete

file delete -force $xo
package_xo -xo_path $xo -kernel_name $kernel -ip_directory $ip -kernel_xml $xml
exit 0

# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# C synthesis of one kernel, for its reports:
#   vitis_hls -f synthesize.tcl -tclargs KERNEL SOURCE PART OPERATORS FLAGS

# vitis_hls puts its own arguments in front of those behind -tclargs.
lassign [lrange $argv end-4 end] kernel source part operators flags

open_project -reset $kernel
set_top $kernel
add_files $source -cflags $flags
open_solution -reset solution -flow_target vitis
set_part $part
create_clock -period 3.33
source $operators
csynth_design
exit

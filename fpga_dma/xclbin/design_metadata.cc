// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/xclbin/design_metadata.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace paged_kv::fpga_dma::xclbin {
namespace {

constexpr absl::string_view kControlPort = "S_AXI_CONTROL";

std::string PortName(const DesignArgument& argument) {
  return argument.is_address
             ? absl::StrCat("M_AXI_", absl::AsciiStrToUpper(argument.name))
             : std::string(kControlPort);
}

void AppendPorts(const DesignKernel& kernel, std::string* xml) {
  absl::StrAppendFormat(xml,
                        "<port name=\"%s\" mode=\"slave\" range=\"0x1000\" "
                        "dataWidth=\"32\" portType=\"addressable\" "
                        "base=\"0x0\"/>\n",
                        kControlPort);
  for (const DesignArgument& argument : kernel.arguments) {
    if (!argument.is_address) continue;
    absl::StrAppendFormat(xml,
                          "<port name=\"%s\" mode=\"master\" "
                          "range=\"0xFFFFFFFFFFFFFFFF\" dataWidth=\"512\" "
                          "portType=\"addressable\" base=\"0x0\"/>\n",
                          PortName(argument));
  }
}

void AppendArguments(const DesignKernel& kernel, std::string* xml) {
  // addressQualifier: 0 is a scalar, 1 an address in global memory.
  const std::vector<uint32_t> offsets = RegisterOffsets(kernel.arguments);
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const DesignArgument& argument = kernel.arguments[i];
    const char* scalar_type = argument.width_bytes == 8 ? "ulong" : "uint";
    absl::StrAppendFormat(
        xml,
        "<arg name=\"%s\" addressQualifier=\"%d\" id=\"%d\" port=\"%s\" "
        "size=\"0x%x\" offset=\"0x%x\" hostOffset=\"0x0\" hostSize=\"0x%x\" "
        "type=\"%s\"/>\n",
        argument.name, argument.is_address ? 1 : 0, i, PortName(argument),
        argument.width_bytes, offsets[i], argument.width_bytes,
        argument.is_address ? "void*" : scalar_type);
  }
}

void AppendInstances(const Design& design, const DesignKernel& kernel,
                     std::string* xml) {
  for (size_t i = 0; i < design.units.size(); ++i) {
    if (design.units[i].kernel != kernel.name) continue;
    absl::StrAppendFormat(xml,
                          "<instance name=\"%s\"><addrRemap base=\"0x%x\" "
                          "range=\"0x%x\" port=\"%s\"/></instance>\n",
                          design.units[i].instance, UnitAddress(i),
                          kUnitRegisterBytes, kControlPort);
  }
}

}  // namespace

std::string EmbeddedMetadata(const Design& design) {
  std::string xml = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<project name=\"pagedkv\">\n"
      "<platform vendor=\"pagedkv\" boardid=\"emulated\" name=\"%s\" "
      "featureRomTime=\"0\">\n"
      "<version major=\"1\" minor=\"0\"/>\n"
      "<device name=\"fpga0\" fpgaDevice=\"emulated:none\" addrWidth=\"0\">\n"
      "<core name=\"OCL_REGION_0\" target=\"hw\" type=\"clc_region\" "
      "clockFreq=\"0MHz\" numComputeUnits=\"%d\">\n"
      "<kernelClocks><clock port=\"KERNEL_CLK\" frequency=\"%dMHz\"/>"
      "</kernelClocks>\n",
      design.platform, design.units.size(), design.clock_mhz);
  for (const DesignKernel& kernel : design.kernels) {
    absl::StrAppendFormat(&xml,
                          "<kernel name=\"%s\" language=\"c\" type=\"pl\" "
                          "hwControlProtocol=\"ap_ctrl_hs\">\n",
                          kernel.name);
    AppendPorts(kernel, &xml);
    AppendArguments(kernel, &xml);
    AppendInstances(design, kernel, &xml);
    absl::StrAppend(&xml, "</kernel>\n");
  }
  absl::StrAppend(&xml, "</core>\n</device>\n</platform>\n</project>\n");
  return xml;
}

}  // namespace paged_kv::fpga_dma::xclbin

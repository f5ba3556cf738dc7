// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_XRT_DEVICE_H_
#define PAGED_KV_FPGA_DMA_XRT_DEVICE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fpga_dma/device.h"

namespace paged_kv::fpga_dma {

struct XrtDeviceOptions {
  // Which card: its index among those XRT finds ("0"), or its PCIe address
  // ("0000:3b:00.1").
  std::string device = "0";
  // The design to load; see docs/fpga.md for how to build one.
  std::string xclbin;
  // DMA channels per direction. XDMA platforms have two, and XRT gives a
  // transfer to one that is free. An emulated card says how many it has.
  uint32_t channels = 2;
  // How long Reset() waits for blocked calls to return.
  std::chrono::milliseconds reset_limit = std::chrono::seconds(30);
};

// Opens a card through XRT and loads `options.xclbin` into it.
//
// Memory banks are those that the design uses, in its order. kDeviceOnly slabs
// are device-only buffer objects, kHostVisible ones are normal ones over host
// memory that the device owns: one large buffer each, moved in parts. XRT's
// calls block, so each DMA channel and direction and each compute unit has a
// thread; its exceptions become statuses, and none escapes.
//
// The clock is the machine's monotonic one. For an emulated card it is the
// card's virtual one, unless that was told to take real time.
//
// NotFound (no such card, no xclbin), InvalidArgument (an xclbin that is empty,
// truncated, foreign, or not for this card), Unavailable (the card is in use or
// does not answer). Each says what to do.
absl::StatusOr<std::unique_ptr<Device>> OpenXrtDevice(
    const XrtDeviceOptions& options);

struct XrtCardInfo {
  uint32_t index = 0;
  std::string address;  // PCIe, "0000:3b:00.1"; empty if it tells none
  std::string name;     // of its platform
  bool emulated = false;
  std::string problem;  // why it cannot be used, or empty
};
struct XrtInfo {
  std::string headers_version;  // XRT that this program was compiled for
  std::string xilinx_xrt;       // the environment variable, or empty
  std::vector<XrtCardInfo> cards;
  // How to enable a card or the emulated one, if none was found.
  std::string advice;
};

// What XRT finds here. Opens each card for a moment; loads nothing.
XrtInfo DescribeXrt();

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_XRT_DEVICE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the Vitis HLS header of this name where the kernels are built
// for the host: as much of a beat of an AXI4 stream as they use.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_AP_AXI_SDATA_H_
#define PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_AP_AXI_SDATA_H_

#include <ap_int.h>

// Without user signals, ids and destinations.
template <int kBits, int kUserBits, int kIdBits, int kDestinationBits>
struct ap_axiu {
  static_assert(kUserBits == 0 && kIdBits == 0 && kDestinationBits == 0,
                "data alone");
  ap_uint<kBits> data;
  ap_uint<kBits / 8> keep;  // a bit per byte
  bool last = false;
};

#endif  // PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_AP_AXI_SDATA_H_

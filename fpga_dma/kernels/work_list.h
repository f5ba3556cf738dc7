// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How every kernel begins and ends: status word, header, geometry. Device code.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_WORK_LIST_H_
#define PAGED_KV_FPGA_DMA_KERNELS_WORK_LIST_H_

#include <cstdint>

#include "fpga_dma/kernels/beat.h"
#include "fpga_dma/kernels/kernel_abi.h"

namespace paged_kv::fpga_dma {

// How a launch went. `item` is where it ended: all items before it are done.
struct LaunchResult {
  KernelError code = KernelError::kOk;
  uint32_t item = 0;
  uint64_t detail = 0;
};

struct Launch {
  bool refused = false;  // an error of an earlier launch is in the status
  uint32_t launches = 0;
  uint32_t num_items = 0;
  uint32_t tag = 0;
  LaunchResult result;
};

// Reads status and header. If result.code is not kOk, or it is refused, there
// is nothing to do but EndLaunch().
inline Launch BeginLaunch(const Beat* work, const Beat* status, KernelId kernel,
                          uint32_t max_items) {
  Launch launch;
  const Beat before = status[0];
  launch.launches = Word(before, 6) + 1;
  if (Word(before, 0) != 0) {
    launch.refused = true;
    return launch;
  }
  const Beat header = work[0];
  launch.num_items = Word(header, 2);
  launch.tag = Word(header, 3);
  if (Word(header, 0) != kWorkListMagic) {
    launch.result.code = KernelError::kBadHeader;
    launch.result.detail = Word(header, 0);
  } else if (Word(header, 1) != static_cast<uint32_t>(kernel)) {
    launch.result.code = KernelError::kBadHeader;
    launch.result.detail = Word(header, 1);
  } else if (launch.num_items > max_items || launch.num_items > kMaxWorkItems) {
    launch.result.code = KernelError::kTooManyItems;
    launch.result.detail = launch.num_items;
  }
  return launch;
}

inline void EndLaunch(const Launch& launch, Beat* status) {
  Beat after = status[0];
  SetWord(&after, 6, launch.launches);
  if (!launch.refused) {
    SetWord(&after, 0, static_cast<uint32_t>(launch.result.code));
    SetWord(&after, 1, launch.result.item);
    SetWord(&after, 2, static_cast<uint32_t>(launch.result.detail));
    SetWord(&after, 3, static_cast<uint32_t>(launch.result.detail >> 32));
    SetWord(&after, 4, launch.result.item);
    SetWord(&after, 5, launch.tag);
  }
  status[0] = after;
}

// Whether the kernels have that geometry; if not, `detail` is what is wrong.
inline bool GoodGeometry(uint32_t element, uint32_t head_dim,
                         uint32_t block_tokens, uint64_t* detail) {
  if (element != static_cast<uint32_t>(KvElement::kBf16) &&
      element != static_cast<uint32_t>(KvElement::kInt8)) {
    *detail = element;
    return false;
  }
  if (head_dim != 8 && head_dim != 16 && head_dim != 32 && head_dim != 64 &&
      head_dim != 128) {
    *detail = head_dim;
    return false;
  }
  if (block_tokens == 0 || block_tokens > kMaxKernelBlockTokens ||
      block_tokens % kTileSlots != 0) {
    *detail = block_tokens;
    return false;
  }
  return true;
}

// log2 of a good head_dim.
inline uint32_t HeadDimBits(uint32_t head_dim) {
  uint32_t bits = 3;
  while (head_dim > (1u << bits)) ++bits;
  return bits;
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_WORK_LIST_H_

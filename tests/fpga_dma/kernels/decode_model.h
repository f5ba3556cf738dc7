// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What paged_decode computes, written without streams, stages or beats: the
// same arithmetic in the same order, and the same attention in double
// precision.

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_DECODE_MODEL_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_DECODE_MODEL_H_

#include <vector>

#include "tests/fpga_dma/kernels/decode_case.h"

namespace paged_kv::fpga_dma {

// The f32 arithmetic of the kernel: the memory `out` after a launch whose items
// are good, and after its first `num_items` items.
CardMemory ModelOutputs(const DecodeCase& launch);
CardMemory ModelOutputs(const DecodeCase& launch, uint32_t num_items);

// In double precision, of one item.
struct ExactAttention {
  std::vector<double> out;  // [group_heads, head_dim]
  std::vector<double> lse;  // [group_heads]
};
ExactAttention ExactItem(const DecodeCase& launch, const DecodeItem& item);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_DECODE_MODEL_H_

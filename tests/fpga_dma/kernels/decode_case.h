// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A launch of paged_decode: its memory, and what should come out.

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_DECODE_CASE_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_DECODE_CASE_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/kernels/kernel_entry_points.h"
#include "tests/fpga_dma/kernels/card_memory.h"

namespace paged_kv::fpga_dma {

struct DecodeShape {
  uint32_t head_dim = 128;
  uint32_t group_heads = 7;
  uint32_t block_tokens = 16;
  uint32_t num_pages = 8;
  uint32_t slices = 2;  // (layer, head) slices of a page
  uint32_t table_entries = 8;
  uint32_t num_items = 1;

  uint32_t slice_beats() const { return SliceBeats(block_tokens, head_dim); }
};

// The memory of a launch. Rows of queries, output rows and log-sum-exps of item
// i are the i-th ones of their arrays.
struct DecodeCase {
  explicit DecodeCase(const DecodeShape& shape);

  // Every page, query and weight random: normal deviates with some zeros, large
  // and tiny ones. Table entries are a random choice of pages.
  void Fill(std::mt19937_64& random);
  // NaN into every slot that no item attends to.
  void PoisonUnused();

  void SetItem(uint32_t index, const DecodeItem& item);
  DecodeItem Item(uint32_t index) const;
  // An item for the `index`-th queries and outputs.
  DecodeItem NewItem(uint32_t index) const;

  // Of elements, as they are stored.
  uint16_t Key(uint32_t page, uint32_t slice_beat, uint32_t slot,
               uint32_t dim) const;
  uint16_t Value(uint32_t page, uint32_t slice_beat, uint32_t slot,
                 uint32_t dim) const;
  uint16_t Query(uint32_t query_beat, uint32_t head, uint32_t dim) const;
  // The page and slot of the token-th token of an item.
  void Place(const DecodeItem& item, uint32_t token, uint32_t* page,
             uint32_t* slot) const;

  KernelStatus Status() const { return status.Get<KernelStatus>(0); }
  std::vector<BoundArgument> Arguments();
  // Runs on a build; the status is cleared first.
  absl::Status Run(const KernelEntryPoints& build);

  DecodeShape shape;
  uint32_t page_stride_beats;
  CardMemory kv;
  CardMemory work;
  CardMemory table;
  CardMemory queries;
  CardMemory out;
  CardMemory status;
};

// A shape and items of a few hundred tokens in all, with windows, strides and
// stripes among them.
DecodeCase RandomDecodeCase(std::mt19937_64& random);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_DECODE_CASE_H_

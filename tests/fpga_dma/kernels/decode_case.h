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
  KvElement element = KvElement::kBf16;
  uint32_t head_dim = 128;
  uint32_t group_heads = 7;
  uint32_t block_tokens = 16;
  uint32_t num_pages = 8;
  uint32_t slices = 2;  // (layer, head) slices of a page
  uint32_t table_entries = 8;
  uint32_t num_items = 1;

  bool int8() const { return element == KvElement::kInt8; }
  uint32_t slice_beats() const {
    return SliceBeats(block_tokens, head_dim, element);
  }
};

// A bf16, exactly.
float FloatOfBf16(uint16_t stored);
// Its upper half: rounded towards zero.
uint16_t Bf16OfFloat(float value);

// The memory of a launch. Rows of queries, output rows and log-sum-exps of item
// i are the i-th ones of their arrays.
struct DecodeCase {
  explicit DecodeCase(const DecodeShape& shape);

  // Every page and query random: bf16 normal deviates with some zeros, large
  // and tiny ones; int8 evenly distributed, with scales that give the same
  // range. Table entries are a random choice of pages.
  void Fill(std::mt19937_64& random);
  // NaN into every slot, of int8 every scale, that no item attends to.
  void PoisonUnused();

  void SetItem(uint32_t index, const DecodeItem& item);
  DecodeItem Item(uint32_t index) const;
  // An item for the `index`-th queries and outputs.
  DecodeItem NewItem(uint32_t index) const;

  // Elements, exactly; of int8 without their scale. docs/layouts.md.
  float Key(uint32_t page, uint32_t slice_beat, uint32_t slot,
            uint32_t dim) const;
  float Value(uint32_t page, uint32_t slice_beat, uint32_t slot,
              uint32_t dim) const;
  // 1 for bf16.
  float KeyScale(uint32_t page, uint32_t slice_beat, uint32_t slot) const;
  float ValueScale(uint32_t page, uint32_t slice_beat, uint32_t slot) const;
  float Query(uint32_t query_beat, uint32_t head, uint32_t dim) const;
  // Where they are, in bytes from the start of `kv`.
  size_t KeyByte(uint32_t page, uint32_t slice_beat, uint32_t slot,
                 uint32_t dim) const;
  size_t ValueByte(uint32_t page, uint32_t slice_beat, uint32_t slot,
                   uint32_t dim) const;
  size_t KeyScaleByte(uint32_t page, uint32_t slice_beat, uint32_t slot) const;
  size_t ValueScaleByte(uint32_t page, uint32_t slice_beat,
                        uint32_t slot) const;
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

 private:
  size_t SliceByte(uint32_t page, uint32_t slice_beat) const;
  size_t DataBytes() const;  // of K, or V, of a slice
  float Element(size_t byte) const;
  void FillScales(std::mt19937_64& random);
};

// A shape and items of a few hundred tokens in all, with windows, strides and
// stripes among them.
DecodeCase RandomDecodeCase(KvElement element, std::mt19937_64& random);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_DECODE_CASE_H_

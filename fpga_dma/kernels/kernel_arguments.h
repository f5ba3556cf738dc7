// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The order of the kernels' arguments. Host and device code.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ARGUMENTS_H_
#define PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ARGUMENTS_H_

#include <cstdint>

namespace paged_kv::fpga_dma {

// An address argument is the start of memory of at least the size in
// brackets. Scalars are 32 bits wide.

enum class PagedDecodeArgument : uint32_t {
  kKv,        // pages, read [num_pages * page_stride_beats]
  kWork,      // header and DecodeItems, read [1 + max_items]
  kTable,     // page indices, u32, read [table_entries]
  kQueries,   // bf16 rows, read [query_beats]
  kOut,       // f32 rows and log-sum-exps, written [out_beats]
  kStatus,    // KernelStatus, read and written [1 beat]
  kMaxItems,  // <= kMaxWorkItems
  kTableEntries,
  kQueryBeats,
  kOutBeats,
  kNumPages,  // page indices are below it
  kPageStrideBeats,
  kElement,
  kHeadDim,
  kGroupHeads,  // 1 .. kMaxGroupHeads
  kBlockTokens,
  kCount,
};

enum class KvAppendArgument : uint32_t {
  // Pages [num_pages * page_stride_beats], through one port for what is read
  // and one for what is written: pass the same address twice.
  kKvIn,
  kKvOut,
  kWork,  // header and AppendItems, read [1 + max_items]
  kRows,  // packed rows, read [source_beats]
  kStatus,
  kMaxItems,
  kSourceBeats,
  kNumPages,
  kPageStrideBeats,
  kElement,
  kHeadDim,
  kBlockTokens,
  kCount,
};

enum class KvCopyArgument : uint32_t {
  kSource,  // pages, read [source_pages * source_page_stride_beats]
  kTarget,  // pages, written [target_pages * target_page_stride_beats]
  kWork,    // header and CopyItems, read [1 + max_items]
  kStatus,
  kMaxItems,
  kSourcePages,
  kSourcePageStrideBeats,
  kTargetPages,
  kTargetPageStrideBeats,
  kElement,
  kHeadDim,
  kBlockTokens,
  kCount,
};

enum class KvScatterArgument : uint32_t {
  kSlab,  // packed runs, read [source_beats]
  kKv,    // pages, written [num_pages * page_stride_beats]
  kWork,  // header and ScatterItems, read [1 + max_items]
  kStatus,
  kMaxItems,
  kSourceBeats,
  kNumPages,
  kPageStrideBeats,
  kCount,
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ARGUMENTS_H_

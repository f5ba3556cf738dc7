// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What host and device code agree on: work lists, their items, status words
// (kernel_arguments.h has the order of arguments, kernel_geometry.h what pages
// and rows look like). Plain little-endian structs, included by the HLS
// kernels, so nothing here needs more than <cstdint>.
//
// Units: a beat is 64 bytes, one transfer of a 512-bit AXI bus. Offsets named
// *_beat count beats from the address that the comment names. Reserved words
// are 0.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ABI_H_
#define PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ABI_H_

#include <cstdint>

#include "fpga_dma/kernels/kernel_geometry.h"

namespace paged_kv::fpga_dma {

inline constexpr uint32_t kMaxWorkItems = 1u << 20;

enum class KernelId : uint32_t {
  kPagedDecode = 1,
  kKvAppend = 2,
  kKvCopy = 3,
  kKvScatter = 4,
};

// ---- Status ----

// Why a kernel stopped. Every other code than kOk ends the launch: items
// before KernelStatus::item are done, that one and those after it are not, and
// their outputs may hold anything (inside the ranges that they name).
enum class KernelError : uint32_t {
  kOk = 0,
  kBadHeader = 1,     // magic or kernel of the work list; detail: the word
  kTooManyItems = 2,  // num_items > max_items; detail: num_items
  kBadGeometry = 3,   // element, head_dim, group_heads or block_tokens;
                      // detail: the value
  kZeroLength = 4,    // no token, slice, beat or table step; detail: 0. RTL
                      // kernels also: no item. The others have then done all
  kTableRange = 5,    // beyond table_entries; detail: the last entry asked for
  kPageIndex = 6,     // page index >= the number of pages; detail: the index
  kSliceRange = 7,    // a slice beyond its page; detail: its end in beats.
                      // Or a slice stride below a slice; detail: the stride
  kSlotRange = 8,     // slots beyond the block; detail: the end slot
  kQueryRange = 9,    // beyond query_beats; detail: the end in beats
  kOutRange = 10,     // beyond out_beats; detail: the end in beats
  kSourceRange = 11,  // beyond source_beats; detail: the end in beats
  kBadScale = 12,     // not finite; of a row of int8, or not above 0;
                      // detail: its bits
  kAlignment = 13,    // RTL kernels: an address; detail: the address
  kBusError = 14,     // RTL kernels: memory answered with an error; detail: 0
};

// One beat at the argument `status`. The code is sticky: a kernel that finds
// one there does nothing but count the launch, so a later launch never hides
// an earlier error. The host writes zeros to clear it.
struct KernelStatus {
  KernelError code;
  uint32_t item;  // the index in the list that caused it; of kOk: num_items
  uint64_t detail;
  uint32_t items_done;  // by the last launch
  uint32_t tag;         // WorkListHeader::tag of the last launch
  uint32_t launches;    // since the host cleared it, refused ones included
  uint32_t reserved[9];
};
static_assert(sizeof(KernelStatus) == kBeatBytes);

// ---- Work lists: one header, then items, one beat each, at `work` ----

inline constexpr uint32_t kWorkListMagic = 0x31574B50;  // "PKW1"

struct WorkListHeader {
  uint32_t magic;      // kWorkListMagic
  KernelId kernel;     // whom the items are for
  uint32_t num_items;  // <= the argument max_items
  uint32_t tag;        // echoed in the status
  uint32_t reserved[12];
};
static_assert(sizeof(WorkListHeader) == kBeatBytes);

// paged_decode: `group_heads` query rows attend to num_tokens slots of one
// slice (layer, KV head) of some pages. Any mix of sequences, layers and heads
// may be in one list, each item a part of a sequence (a stripe, a window, the
// sinks of a window), to be merged by log-sum-exp with the others.
//
// The pages are table[table_begin + j * table_step], j = 0, 1, ..., as many as
// hold slots [first_slot, first_slot + num_tokens), counted from the start of
// the first page. A stripe that holds every n-th logical block has step n.
struct DecodeItem {
  uint32_t table_begin;
  uint32_t table_step;  // >= 1
  uint32_t first_slot;  // < block_tokens
  uint32_t num_tokens;  // >= 1
  uint32_t slice_beat;  // of the (layer, head) slice, from the page's start
  uint32_t query_beat;  // of the first query row, from `queries`
  uint32_t out_beat;    // of the first output row, from `out`
  uint32_t lse_beat;    // of the beat of log-sum-exps, from `out`
  float scale;          // of the scores, finite
  uint32_t reserved[7];
};
static_assert(sizeof(DecodeItem) == kBeatBytes);

// kv_append: writes num_tokens neighbouring slots of one page in num_slices
// slices. Source rows, from `rows`: [num_slices][num_tokens][K row, V row, beat
// of scales], as AppendTokenBeats() says, K in plain order (the kernel tiles
// it).
//
// A tile of K whose first slot is written is not read first: its slots behind
// the new ones become 0, and so do their scales. Likewise the beats of V that
// hold several rows. No two items of a launch may touch the same tile of the
// same slice.
struct AppendItem {
  uint32_t page;
  uint32_t first_slot;
  uint32_t num_tokens;          // >= 1; first_slot + num_tokens <= block_tokens
  uint32_t slice_beat;          // of the first slice, from the page's start
  uint32_t num_slices;          // >= 1
  uint32_t slice_stride_beats;  // from one slice to the next; any for one
  uint32_t source_beat;         // of the first row, from `rows`
  uint32_t reserved[9];
};
static_assert(sizeof(AppendItem) == kBeatBytes);

// kv_copy: copies what the first `filled_tokens` slots of a page need, in
// num_slices slices: whole tiles of K that hold a filled slot and the scales of
// their slots, and the beats of V that hold a filled row. Pool to pool is
// copy-on-write; between a pool and a packed slab it gathers (for write-back)
// or spreads. No item of a launch may write what another reads or writes.
struct CopyItem {
  uint32_t source_page;
  uint32_t target_page;
  uint32_t source_slice_beat;  // of the first slice, from the page's start
  uint32_t target_slice_beat;
  uint32_t source_slice_stride_beats;
  uint32_t target_slice_stride_beats;
  uint32_t num_slices;     // >= 1
  uint32_t filled_tokens;  // 1 .. block_tokens
  uint32_t reserved[8];
};
static_assert(sizeof(CopyItem) == kBeatBytes);

// kv_scatter: one run of beats from a packed slab into a page.
struct ScatterItem {
  uint32_t source_beat;  // from `slab`
  uint32_t page;
  uint32_t page_beat;  // from the page's start
  uint32_t num_beats;  // >= 1; page_beat + num_beats <= page stride
  uint32_t reserved[12];
};
static_assert(sizeof(ScatterItem) == kBeatBytes);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ABI_H_

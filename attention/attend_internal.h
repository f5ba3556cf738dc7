// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the plan hands to the kernels: one call for one layer, cut into items.

#ifndef PAGED_KV_ATTENTION_ATTEND_INTERNAL_H_
#define PAGED_KV_ATTENTION_ATTEND_INTERNAL_H_

#include <cstddef>
#include <cstdint>

#include "attention/isa.h"
#include "attention/kv_pages.h"
#include "paged_kv/page_table.h"

namespace paged_kv::attention::internal {

// Rows of an item: enough to use each loaded key often, few enough that a block
// of queries, keys, values and outputs stays in the second-level cache. A whole
// number of pairs of AMX's row tiles.
inline constexpr uint32_t kMaxItemRows = 128;

// Keys that a kernel works on at a time: four K tiles. While it works on one
// chunk it prefetches the next.
inline constexpr uint32_t kChunkTokens = 64;
inline constexpr uint32_t kChunkTiles = kChunkTokens / kTileTokens;

// Positions begin .. end - 1 of a sequence.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end > begin ? end - begin : 0; }
};

// One query of a sequence that shares its first keys with others.
struct SharedQuery {
  int64_t query = 0;     // row of q
  int64_t position = 0;  // in its sequence
};

// Rows times a range of keys, the same for every KV head. The rows are (query
// token, query head of the group) pairs: row r is query token r / group, head
// r % group. The query tokens are those of one sequence, or one each of several
// sequences that begin with the same pages.
struct WorkItem {
  uint32_t sequence = 0;       // whose pages are read
  uint32_t num_rows = 0;       // <= kMaxItemRows
  uint64_t first_row = 0;      // in the sequence
  int64_t first_query = 0;     // row of q of the sequence's first query
  int64_t first_position = 0;  // of the sequence's first query
  // Its first query token among AttendCall::shared_queries; -1: none of them.
  int64_t first_shared = -1;
  KeyRange sinks;  // kept keys before the window
  KeyRange keys;   // all others
  // Where the item's first row goes among the partial results; -1: the item
  // sees all keys of its rows and writes the outputs itself.
  int64_t partial_row = -1;
};

// One layer of a step.
struct AttendCall {
  KvPages pages;
  uint32_t layer = 0;
  PageTable table;
  uint32_t query_heads = 0;
  uint32_t group = 0;        // query heads per KV head
  float score_scale = 0.0f;  // on products, log2(e) included unless capped
  float soft_cap = 0.0f;     // 0: none
  uint32_t window = 0;       // 0: none
  uint32_t sink_tokens = 0;  // 0 without a window
  bool causal = true;
  const float* q = nullptr;  // [total_q, query_heads, head_dim]
  float* out = nullptr;      // [total_q, query_heads, v_head_dim]
  float* lse = nullptr;      // [total_q, query_heads] or null
  const SharedQuery* shared_queries = nullptr;
  // Partial results of split items, in planes of one KV head.
  int64_t partial_rows = 0;
  float* partial_out = nullptr;  // [kv_heads, partial_rows, OutputStride()]
  float* partial_reference = nullptr;  // [kv_heads, partial_rows], log2
  float* partial_sum = nullptr;        // [kv_heads, partial_rows]
};

// Floats from one row of unnormalised output to the next: v_head_dim rounded up
// to whole cache lines.
inline size_t OutputStride(const BlockShape& shape) {
  constexpr size_t kLineFloats = 64 / sizeof(float);
  return (shape.VHeadDim() + kLineFloats - 1) / kLineFloats * kLineFloats;
}

// One worker's scratch, in floats; every part starts on a cache line.
struct ScratchLayout {
  explicit ScratchLayout(const BlockShape& shape);

  size_t queries = 0;        // [head_dim, rows] of each row block, scaled
  size_t outputs = 0;        // [kMaxItemRows, OutputStride()]
  size_t references = 0;     // [kMaxItemRows], what weights are relative to
  size_t lane_sums = 0;      // [kMaxItemRows, lanes of a vector, 16 at most]
  size_t sums = 0;           // [kMaxItemRows]
  size_t scores = 0;         // [kMaxItemRows, kChunkTokens]
  size_t weights = 0;        // [kMaxItemRows, kChunkTokens], two bf16 each
  size_t gathered_keys = 0;  // kChunkTiles tiles of stored elements
  size_t f32_keys = 0;       // kChunkTiles tiles of f32
  size_t f32_values = 0;     // [kChunkTokens, v_head_dim]
  size_t total = 0;
};

// One item for one KV head.
struct AttendTask {
  const WorkItem* item = nullptr;
  uint32_t kv_head = 0;
};

// Carries out `task`; `scratch` is 64-byte aligned and holds
// ScratchLayout::total floats. At its end it asks for the first keys of `next`,
// which the same worker is likely to get then; next.item may be null.
using AttendFunction = void (*)(const AttendCall& call, const AttendTask& task,
                                const AttendTask& next, float* scratch);

// The kernel for one dtype and a resolved Isa. One dtype per source file, to
// keep builds short.
AttendFunction AttendF32(Isa isa);
AttendFunction AttendF16(Isa isa);
AttendFunction AttendBf16(Isa isa);
AttendFunction AttendFp8(Isa isa);
AttendFunction AttendInt8(Isa isa);

// A kernel for items of several rows, and the number of rows from which on it
// is the fastest one.
struct ManyRowsKernel {
  AttendFunction function = nullptr;
  uint32_t min_rows = 0;
};

// On tile registers, for bf16 and for both 8-bit types; null for shapes that do
// not fill tiles.
ManyRowsKernel AttendBf16Amx(const BlockShape& shape);
ManyRowsKernel Attend8BitsAmx(const BlockShape& shape);
// On VNNI's dot products of bytes, for int8; null for shapes that do not fill
// vectors.
ManyRowsKernel AttendInt8Dot(const BlockShape& shape);

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_ATTEND_INTERNAL_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How much the inner loops hold in registers, and what they work on: some rows
// of an item times one chunk of keys.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ROW_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ROW_BLOCK_INL_H_
#undef PAGED_KV_ATTENTION_ROW_BLOCK_INL_H_
#else
#define PAGED_KV_ATTENTION_ROW_BLOCK_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "attention/attend_internal.h"
#include "attention/prefetch_list_internal.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One vector of scores covers at most a tile.
using ScoreTag = hn::CappedTag<float, kTileTokens>;
inline constexpr size_t kScoreLanes = hn::MaxLanes(ScoreTag());
inline constexpr size_t kVectorsPerTile = kTileTokens / kScoreLanes;

// Register blocking: rows times vectors of accumulators. 32 vector registers
// hold 14 x 2 of them beside what is loaded, 16 hold 8 x 1, 4 x 2 or 2 x 4. Few
// rows take more vectors at a time, so that as many sums are independent as
// multiply-adds are under way (two a cycle, four cycles each). A sum is one
// chain in the order of its terms: a row has the same bits in any block, but
// for the exception of kChains.
#if HWY_TARGET <= HWY_AVX2
inline constexpr size_t kMaxRegisterRows = 8;
#elif HWY_TARGET == HWY_SCALAR
inline constexpr size_t kMaxRegisterRows = 1;
#else
inline constexpr size_t kMaxRegisterRows = 2;
#endif

// Rows of a wide block, which needs fewer loads per product. Only f32 keys and
// values have them: others take registers to convert, and an item of many rows
// converts them beforehand.
#if HWY_TARGET <= HWY_AVX3
inline constexpr size_t kWideRows = 14;
#else
inline constexpr size_t kWideRows = kMaxRegisterRows;
#endif
template <class Reader>
inline constexpr bool kTakesWideBlocks =
    kWideRows > kMaxRegisterRows&& Reader::kElementBytes == sizeof(float);

// Tiles, vectors of their scores, and vectors of columns that kRows rows work
// on at a time.
template <size_t kRows>
inline constexpr size_t kTilesAtOnce =
#if HWY_TARGET <= HWY_AVX3
    kRows > 3 ? 2 : kChunkTiles;
#elif HWY_TARGET == HWY_AVX2
    kRows > 2 ? 1 : 2;
#else
    1;
#endif
template <size_t kRows>
inline constexpr size_t kVectorsAtOnce =
    HWY_TARGET == HWY_AVX2&& kRows > 4 ? 1
                                       : kTilesAtOnce<kRows>* kVectorsPerTile;
template <size_t kRows>
inline constexpr size_t kColumnsAtOnce =
#if HWY_TARGET <= HWY_AVX3
    kRows > 3 ? 2 : 4;
#elif HWY_TARGET == HWY_AVX2
    kRows > 4 ? 1 : (kRows > 2 ? 2 : 4);
#elif HWY_TARGET == HWY_SCALAR
    8;
#else
    4;
#endif

// Sums that are added up by turns into one: two for AVX2's blocks of 5 to 7
// rows, which have room for one vector of sums of 16 or 32 bits and the same
// again.
template <class Reader, size_t kRows>
inline constexpr size_t kChains =
    HWY_TARGET == HWY_AVX2&& kRows > 4 && kRows < 8 && !Reader::kHasScales ? 2
                                                                           : 1;

// A chunk of keys and values as the inner loops read them.
struct ChunkView {
  const uint8_t* tiles[kChunkTiles];
  const uint8_t* const* values;  // [kChunkTokens] rows
  uint32_t begin = 0;            // lanes that hold keys of the item
  uint32_t end = 0;
  // 8-bit types: what each lane's stored K and V are to be multiplied by; any
  // number in lanes outside begin .. end - 1.
  float key_scales[kChunkTokens];
  float value_scales[kChunkTokens];
};

// Some rows of an item and their running state.
struct RowBlock {
  size_t num_rows = 0;
  const float* queries = nullptr;      // [head_dim, rows], scaled
  float* outputs = nullptr;            // [rows, output_stride], unnormalised
  float* references = nullptr;         // [rows], log2; see UpdateSoftmax()
  float* lane_sums = nullptr;          // [rows, kScoreLanes]
  float* scores = nullptr;             // [rows, kChunkTokens], scratch
  PrefetchCursor* prefetch = nullptr;  // what the next chunk will read
  // Lanes of the chunk that each row sees, first_lane .. last_lane - 1.
  uint32_t first_lane[kWideRows];
  uint32_t last_lane[kWideRows];
};

// What all chunks of a call share.
struct RowParameters {
  size_t head_dim = 0;
  size_t v_head_dim = 0;
  size_t output_stride = 0;
  float soft_cap_log2e = 0.0f;  // soft cap times log2(e); 0: none
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle

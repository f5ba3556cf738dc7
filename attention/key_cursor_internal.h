// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Walks the keys of a work item through the page table, a chunk at a time.

#ifndef PAGED_KV_ATTENTION_KEY_CURSOR_INTERNAL_H_
#define PAGED_KV_ATTENTION_KEY_CURSOR_INTERNAL_H_

#include <cstdint>

#include "attention/attend_internal.h"

namespace paged_kv::attention::internal {

// Up to kChunkTokens keys at neighbouring positions. Lane j is the key at
// `position` + j; only lanes begin .. end - 1 are the item's. The arrays are
// filled to their end with repeats, so that lines to prefetch need no bounds.
struct KeyChunk {
  int64_t position = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  bool sinks = false;
  // Tiled order: the first kChunkTiles entries are tiles, 16 lanes each, and
  // `position` is a tile's first. Plain order: the K row of each lane.
  const uint8_t* k[kChunkTokens];
  const uint8_t* v[kChunkTokens];  // V row of each lane

  // 8-bit types: the scales of lanes begin .. end - 1, one run per page. They
  // are being fetched; reading them at once would wait for memory.
  struct ScaleRun {
    uint32_t begin;  // lanes
    uint32_t end;
    const uint8_t* k;  // f32s
    const uint8_t* v;
  };
  uint32_t num_scale_runs = 0;
  ScaleRun scale_runs[kChunkTokens];
};

// Copies the scales of an 8-bit chunk, which have arrived by now, to arrays of
// kChunkTokens. Lanes without a key get scales of 0: none of their garbage is
// read.
void CopyScales(const KeyChunk& chunk, float* key_scales, float* value_scales);

class KeyCursor {
 public:
  KeyCursor(const AttendCall& call, const WorkItem& item, uint32_t kv_head);

  // Fills `chunk` with the next keys; false, leaving it alone, at the end.
  bool Next(KeyChunk* chunk);

 private:
  // A key's page and its token in it.
  struct Slot {
    const uint8_t* k_slice;
    const uint8_t* v_slice;
    uint32_t token;
  };
  Slot Find(int64_t position) const;
  void AddScaleRun(const Slot& slot, uint32_t lane, uint32_t end,
                   KeyChunk* chunk) const;
  // Points lanes at `slot` and the tokens after it, up to the end of the page
  // or lane `end`; returns the lane after the last one.
  uint32_t FillFromPage(const Slot& slot, uint32_t lane, uint32_t end,
                        KeyChunk* chunk) const;

  const uint8_t* base_;  // of the layer and head
  int64_t page_stride_;
  int64_t kv_stride_;
  int64_t k_token_stride_;  // plain order
  int64_t v_token_stride_;
  int64_t k_tile_bytes_;
  int64_t k_scales_;  // from the start of the K slice; 0: none
  int64_t v_scales_;
  uint32_t block_tokens_;
  bool tiled_;

  const int32_t* page_indices_;  // of the sequence
  int64_t first_token_;
  int64_t sink_pages_;

  KeyRange ranges_[2];
  int range_ = 0;
};

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_KEY_CURSOR_INTERNAL_H_

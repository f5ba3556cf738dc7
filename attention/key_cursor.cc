// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstring>

#include "attention/key_cursor_internal.h"
#include "paged_kv/prefetch.h"

namespace paged_kv::attention::internal {

void CopyScales(const KeyChunk& chunk, float* key_scales, float* value_scales) {
  std::fill_n(key_scales, kChunkTokens, 0.0f);
  std::fill_n(value_scales, kChunkTokens, 0.0f);
  for (uint32_t i = 0; i < chunk.num_scale_runs; ++i) {
    const KeyChunk::ScaleRun& run = chunk.scale_runs[i];
    const size_t bytes = (run.end - run.begin) * sizeof(float);
    std::memcpy(key_scales + run.begin, run.k, bytes);
    std::memcpy(value_scales + run.begin, run.v, bytes);
  }
}

KeyCursor::KeyCursor(const AttendCall& call, const WorkItem& item,
                     uint32_t kv_head) {
  const BlockShape& shape = call.pages.shape;
  const PageLayout& layout = call.pages.layout;
  base_ = static_cast<const uint8_t*>(layout.base) +
          KSliceOffset(layout, 0, call.layer, kv_head);
  page_stride_ = layout.page_stride;
  kv_stride_ = layout.kv_stride;
  k_token_stride_ = KTokenStride(call.pages);
  v_token_stride_ = VTokenStride(call.pages);
  k_tile_bytes_ =
      int64_t{kTileTokens} * shape.head_dim * ElementBytes(shape.dtype);
  const bool has_scales = HasScales(shape.dtype);
  k_scales_ = has_scales ? static_cast<int64_t>(KDataBytes(shape).value()) : 0;
  v_scales_ = has_scales ? static_cast<int64_t>(VDataBytes(shape).value()) : 0;
  block_tokens_ = shape.block_tokens;
  tiled_ = layout.k_order == KOrder::kTiled16;

  page_indices_ =
      call.table.page_indices.data() + call.table.indptr[item.sequence];
  first_token_ = call.table.first_token[item.sequence];
  sink_pages_ = first_token_ == 0 ? 0 : call.table.sink_pages;
  ranges_[0] = item.sinks;
  ranges_[1] = item.keys;
}

KeyCursor::Slot KeyCursor::Find(int64_t position) const {
  // Behind the kept sink pages the table goes on at first_token.
  if (first_token_ != 0 && position >= sink_pages_ * block_tokens_) {
    position += sink_pages_ * block_tokens_ - first_token_;
  }
  const int64_t page = page_indices_[position / block_tokens_];
  const uint8_t* k_slice = base_ + page * page_stride_;
  return {k_slice, k_slice + kv_stride_,
          static_cast<uint32_t>(position % block_tokens_)};
}

void KeyCursor::AddScaleRun(const Slot& slot, uint32_t lane, uint32_t end,
                            KeyChunk* chunk) const {
  const int64_t token = int64_t{slot.token} * int64_t{sizeof(float)};
  const uint8_t* k = slot.k_slice + k_scales_ + token;
  const uint8_t* v = slot.v_slice + v_scales_ + token;
  chunk->scale_runs[chunk->num_scale_runs++] = {lane, end, k, v};
  constexpr int64_t kLine = 64;
  const int64_t bytes = int64_t{end - lane} * int64_t{sizeof(float)};
  for (int64_t offset = 0; offset < bytes; offset += kLine) {
    paged_kv::internal::PrefetchLine(k + offset);
    paged_kv::internal::PrefetchLine(v + offset);
  }
}

uint32_t KeyCursor::FillFromPage(const Slot& slot, uint32_t lane, uint32_t end,
                                 KeyChunk* chunk) const {
  const uint32_t last = std::min(end, lane + block_tokens_ - slot.token);
  if (tiled_) {
    // Tiles never straddle pages: lane and token agree modulo 16.
    const uint8_t* tile =
        slot.k_slice + int64_t{slot.token / kTileTokens} * k_tile_bytes_;
    const uint32_t last_tile = (last - 1) / kTileTokens;
    for (uint32_t t = lane / kTileTokens; t <= last_tile; ++t) {
      chunk->k[t] = tile;
      tile += k_tile_bytes_;
    }
  } else {
    const uint8_t* row = slot.k_slice + slot.token * k_token_stride_;
    for (uint32_t j = lane; j < last; ++j) {
      chunk->k[j] = row;
      row += k_token_stride_;
    }
  }
  const uint8_t* row = slot.v_slice + slot.token * v_token_stride_;
  for (uint32_t j = lane; j < last; ++j) {
    chunk->v[j] = row;
    row += v_token_stride_;
  }
  if (k_scales_ != 0) AddScaleRun(slot, lane, last, chunk);
  return last;
}

bool KeyCursor::Next(KeyChunk* chunk) {
  while (range_ < 2 && ranges_[range_].size() == 0) ++range_;
  if (range_ == 2) return false;
  KeyRange& range = ranges_[range_];

  chunk->begin = tiled_ ? static_cast<uint32_t>(range.begin % kTileTokens) : 0;
  chunk->position = range.begin - chunk->begin;
  chunk->end = static_cast<uint32_t>(
      std::min<int64_t>(range.end - chunk->position, kChunkTokens));
  chunk->sinks = range_ == 0;
  chunk->num_scale_runs = 0;
  for (uint32_t lane = chunk->begin; lane < chunk->end;) {
    lane = FillFromPage(Find(chunk->position + lane), lane, chunk->end, chunk);
  }
  range.begin = chunk->position + chunk->end;

  const uint32_t k_entries =
      tiled_ ? (chunk->end + kTileTokens - 1) / kTileTokens : chunk->end;
  const uint32_t k_capacity = tiled_ ? kChunkTiles : kChunkTokens;
  std::fill(chunk->k + k_entries, chunk->k + k_capacity,
            chunk->k[k_entries - 1]);
  std::fill(chunk->v, chunk->v + chunk->begin, chunk->v[chunk->begin]);
  std::fill(chunk->v + chunk->end, chunk->v + kChunkTokens,
            chunk->v[chunk->end - 1]);
  return true;
}

}  // namespace paged_kv::attention::internal

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/attend_internal.h"

namespace paged_kv::attention::internal {

ScratchLayout::ScratchLayout(const BlockShape& shape) {
  constexpr size_t kLineFloats = 64 / sizeof(float);
  const auto reserve = [this](size_t floats) {
    const size_t at = total;
    total += (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
    return at;
  };
  queries = reserve(size_t{kMaxItemRows} * shape.head_dim);
  outputs = reserve(kMaxItemRows * OutputStride(shape));
  references = reserve(kMaxItemRows);
  lane_sums = reserve(size_t{kMaxItemRows} * kTileTokens);
  sums = reserve(kMaxItemRows);
  scores = reserve(size_t{kMaxItemRows} * kChunkTokens);
  weights = reserve(size_t{kMaxItemRows} * kChunkTokens);
  gathered_keys = reserve(size_t{kChunkTokens} * shape.head_dim);
  f32_keys = reserve(size_t{kChunkTokens} * shape.head_dim);
  f32_values = reserve(size_t{kChunkTokens} * shape.VHeadDim());
}

}  // namespace paged_kv::attention::internal

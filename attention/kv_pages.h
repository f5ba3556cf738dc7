// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_KV_PAGES_H_
#define PAGED_KV_ATTENTION_KV_PAGES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::attention {

// The K/V pages of one layer group, as the kernels take them. Describes
// memory, owns none: the bytes must stay valid during every call. Layers that
// were allocated apart have one KvPages each, with shape.layers = 1.
struct KvPages {
  BlockShape shape;
  PageLayout layout;
  uint32_t num_pages = 0;  // page indices are 0 .. num_pages - 1
};

// What the kernels take. Copying and appending take any head_dim that
// BlockShape allows.
inline constexpr uint32_t kHeadDimMultiple = 8;
inline constexpr uint32_t kMaxHeadDim = 256;

// InvalidArgument, with the numbers, unless
// - the shape is valid, and tiled where the layout says kTiled16;
// - the base is not null, and base and strides are multiples of the element
//   size (and of 4 where the pages hold scales);
// - no two slots of K (or of V) share a byte, as far as the strides nest: each
//   is at least the bytes that the smaller ones reach over. K and V may lie
//   over each other (multi-head latent attention reads V out of K), except
//   where scales follow their data;
// - the largest offset fits 63 bits.
absl::Status Validate(const KvPages& pages);

// Bytes from one token to the next in plain order.
int64_t KTokenStride(const KvPages& pages);
int64_t VTokenStride(const KvPages& pages);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_KV_PAGES_H_

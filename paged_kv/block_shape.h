// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The geometry of K and V inside a page. See docs/layouts.md for pictures.

#ifndef PAGED_KV_BLOCK_SHAPE_H_
#define PAGED_KV_BLOCK_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "paged_kv/types.h"

namespace paged_kv {

// Element type of stored K and V; attention/float_formats.h converts.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kFp8E4M3,  // OFP8 E4M3: no infinity, largest 448
  kInt8,     // two's complement; quantising writes -127 .. 127
};

// Size of one element: 4, 2, 2, 1, 1.
uint32_t ElementBytes(DType dtype);
// "f32", "f16", "bf16", "fp8_e4m3", "int8".
const char* DTypeName(DType dtype);
// True for the types that carry one f32 scale per token and head.
bool HasScales(DType dtype);

// Order of K inside one (layer, head) slice.
enum class KOrder : uint8_t {
  // [tile][head_dim / k][16 tokens][k], k * element size = 4 bytes: a row of
  // 64 bytes holds the same k dimensions of 16 tokens.
  kTiled16,
  // [token][head_dim].
  kTokenDim,
};

inline constexpr uint32_t kTileTokens = 16;
inline constexpr uint32_t kMaxBlockTokens = 4096;

// What one block holds. One block covers `block_tokens` consecutive tokens of
// one sequence in all `layers` layers of a layer group.
struct BlockShape {
  uint32_t layers = 1;
  uint32_t kv_heads = 1;
  uint32_t head_dim = 128;
  uint32_t v_head_dim = 0;  // 0: same as head_dim
  uint32_t block_tokens = 16;
  DType dtype = DType::kBF16;

  uint32_t VHeadDim() const { return v_head_dim == 0 ? head_dim : v_head_dim; }
};

bool operator==(const BlockShape& a, const BlockShape& b);

// InvalidArgument, naming the field and its value, unless every field is in
// range: 1 <= layers, kv_heads; 1 <= head_dim, v_head_dim <= 1024;
// 1 <= block_tokens <= kMaxBlockTokens; page_bytes < 2^40.
absl::Status Validate(const BlockShape& shape);

// The order of our own pages: tiled where block_tokens is a multiple of 16 and
// a token's K row is a multiple of 4 bytes, else [token][head_dim].
KOrder OwnKOrder(const BlockShape& shape);

// Bytes of the K (or V) data of one (layer, head), without scales.
Bytes KDataBytes(const BlockShape& shape);
Bytes VDataBytes(const BlockShape& shape);
// Bytes of the f32 scales of one slice, padded to 64; 0 without scales.
Bytes ScaleBytes(const BlockShape& shape);
// One page: [layer][kv_head][K data, K scales, V data, V scales].
Bytes PageBytes(const BlockShape& shape);
// Bytes of K and V (and scales) stored per token over all layers, unpadded.
Bytes BytesPerToken(const BlockShape& shape);

// Where the pages of one layer group lie. Describes memory, owns none.
//
// The slice of (page p, layer l, head h) starts at
//   base + p * page_stride + l * layer_stride + h * head_stride
// with K first and V `kv_stride` bytes later; scales follow the data of their
// slice. All strides are bytes and 64 bits wide. Tensors that were allocated
// apart, one per layer, are described by one PageLayout each (layer 0).
struct PageLayout {
  void* base = nullptr;
  int64_t page_stride = 0;
  int64_t layer_stride = 0;
  int64_t head_stride = 0;
  int64_t kv_stride = 0;
  // Bytes from one token to the next in plain order; 0: dense. V is always in
  // plain order; K uses it where k_order is kTokenDim.
  int64_t k_token_stride = 0;
  int64_t v_token_stride = 0;
  KOrder k_order = KOrder::kTiled16;
};

// The layout of our own pages, page after page from `base`.
PageLayout OwnPageLayout(const BlockShape& shape, void* base);

// Byte offset from PageLayout::base. Callers keep indices in range.
inline int64_t KSliceOffset(const PageLayout& layout, uint32_t page,
                            uint32_t layer, uint32_t head) {
  return static_cast<int64_t>(page) * layout.page_stride +
         static_cast<int64_t>(layer) * layout.layer_stride +
         static_cast<int64_t>(head) * layout.head_stride;
}
inline int64_t VSliceOffset(const PageLayout& layout, uint32_t page,
                            uint32_t layer, uint32_t head) {
  return KSliceOffset(layout, page, layer, head) + layout.kv_stride;
}

// Layers with the same shape and the same window.
struct LayerGroup {
  BlockShape shape;
  // Each token attends to itself and the window - 1 tokens before it; 0: to
  // all. Blocks wholly outside the window are released.
  uint32_t window = 0;
  // The first tokens of a sequence that a windowed group keeps (attention
  // sinks, Xiao et al. 2023, arXiv:2309.17453).
  uint32_t sink_tokens = 0;
};

}  // namespace paged_kv

#endif  // PAGED_KV_BLOCK_SHAPE_H_

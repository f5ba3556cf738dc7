// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/attention_pages.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "attention/float_formats.h"
#include "paged_kv/check.h"

namespace paged_kv::attention::testing {
namespace {

struct Sizes {
  int64_t element, layers, heads, tokens, pages, k_row, v_row, scales;

  Sizes(const BlockShape& shape, uint32_t num_pages)
      : element(ElementBytes(shape.dtype)),
        layers(shape.layers),
        heads(shape.kv_heads),
        tokens(shape.block_tokens),
        pages(num_pages),
        k_row(shape.head_dim * element),
        v_row(shape.VHeadDim() * element),
        scales(static_cast<int64_t>(ScaleBytes(shape).value())) {}

  // K and V rows as wide as the wider one, where a tensor holds both.
  int64_t row() const { return std::max(k_row, v_row); }
};

PageLayout SpacedLayout(const BlockShape& shape) {
  const Sizes s(shape, 1);
  PageLayout layout = OwnPageLayout(shape, nullptr);
  // Off the alignment of lines, on that of elements and scales.
  const int64_t gap = 3 * (s.scales == 0 ? s.element : int64_t{sizeof(float)});
  layout.kv_stride += gap;
  layout.head_stride =
      layout.kv_stride + s.v_row * s.tokens + s.scales + 5 * gap;
  layout.layer_stride = layout.head_stride * s.heads + 7 * gap;
  layout.page_stride = layout.layer_stride * s.layers + 11 * gap;
  return layout;
}

PageLayout BackwardLayout(const BlockShape& shape) {
  PageLayout layout = OwnPageLayout(shape, nullptr);
  layout.k_order = KOrder::kTokenDim;
  layout.page_stride = -layout.page_stride;
  return layout;
}

PageLayout HeadsTokensLayout(const Sizes& s) {
  PageLayout layout;
  layout.k_order = KOrder::kTokenDim;
  if (s.scales == 0) layout.k_token_stride = layout.v_token_stride = s.row();
  layout.head_stride = s.tokens * s.row() + s.scales;
  layout.page_stride = s.heads * layout.head_stride;
  layout.kv_stride = s.pages * layout.page_stride;
  layout.layer_stride = 2 * layout.kv_stride;
  return layout;
}

PageLayout TokensHeadsLayout(const Sizes& s) {
  PageLayout layout;
  layout.k_order = KOrder::kTokenDim;
  layout.head_stride = s.row();
  layout.k_token_stride = layout.v_token_stride = s.heads * s.row();
  layout.page_stride = s.tokens * layout.k_token_stride;
  layout.kv_stride = s.pages * layout.page_stride;
  layout.layer_stride = 2 * layout.kv_stride;
  return layout;
}

PageLayout TokensKvHeadsLayout(const Sizes& s) {
  PageLayout layout;
  layout.k_order = KOrder::kTokenDim;
  layout.head_stride = s.row();
  layout.kv_stride = s.heads * s.row();
  layout.k_token_stride = layout.v_token_stride = 2 * layout.kv_stride;
  layout.layer_stride = s.tokens * layout.k_token_stride;
  layout.page_stride = s.layers * layout.layer_stride;
  return layout;
}

PageLayout MakeLayout(const BlockShape& shape, uint32_t num_pages,
                      PageOrder order) {
  const Sizes sizes(shape, num_pages);
  PageLayout layout = OwnPageLayout(shape, nullptr);
  switch (order) {
    case PageOrder::kOwn:
      return layout;
    case PageOrder::kOwnPlain:
      layout.k_order = KOrder::kTokenDim;
      return layout;
    case PageOrder::kOwnSpaced:
      return SpacedLayout(shape);
    case PageOrder::kLayersKvPagesHeadsTokens:
      return HeadsTokensLayout(sizes);
    case PageOrder::kLayersKvPagesTokensHeads:
      return TokensHeadsLayout(sizes);
    case PageOrder::kPagesLayersTokensKvHeads:
      return TokensKvHeadsLayout(sizes);
    case PageOrder::kPagesHeadsKvTokensBackward:
      return BackwardLayout(shape);
  }
  PAGED_KV_CHECK(false);
}

}  // namespace

const char* PageOrderName(PageOrder order) {
  switch (order) {
    case PageOrder::kOwn:
      return "own";
    case PageOrder::kOwnPlain:
      return "own_plain";
    case PageOrder::kOwnSpaced:
      return "own_spaced";
    case PageOrder::kLayersKvPagesHeadsTokens:
      return "layers_kv_pages_heads_tokens";
    case PageOrder::kLayersKvPagesTokensHeads:
      return "layers_kv_pages_tokens_heads";
    case PageOrder::kPagesLayersTokensKvHeads:
      return "pages_layers_tokens_kv_heads";
    case PageOrder::kPagesHeadsKvTokensBackward:
      return "pages_heads_kv_tokens_backward";
  }
  PAGED_KV_CHECK(false);
}

bool TakesOrder(DType dtype, PageOrder order) {
  return !HasScales(dtype) || (order != PageOrder::kLayersKvPagesTokensHeads &&
                               order != PageOrder::kPagesLayersTokensKvHeads);
}

PageMemory::PageMemory(const BlockShape& shape, uint32_t num_pages,
                       PageOrder order, Poison poison) {
  pages_.shape = shape;
  pages_.num_pages = num_pages;
  pages_.layout = MakeLayout(shape, num_pages, order);
  const PageLayout& layout = pages_.layout;
  base_offset_ =
      layout.page_stride < 0 ? (num_pages - 1) * -layout.page_stride : 0;
  bytes_.assign(EndOffset(), 0xFF);  // a NaN of every dtype that has one
  if (poison == Poison::kInfinity) PoisonWithInfinity();
  pages_.layout.base = bytes_.data() + base_offset_;
}

// One byte past the last element or scale of the last slice, K or V.
size_t PageMemory::EndOffset() const {
  const BlockShape& shape = pages_.shape;
  const uint32_t page =
      pages_.layout.page_stride < 0 ? 0 : pages_.num_pages - 1;
  const uint32_t layer = shape.layers - 1;
  const uint32_t head = shape.kv_heads - 1;
  const uint32_t token = shape.block_tokens - 1;
  if (HasScales(shape.dtype)) {
    return std::max(KeyScaleOffset(page, layer, head, token),
                    ValueScaleOffset(page, layer, head, token)) +
           sizeof(float);
  }
  return std::max(KeyOffset(page, layer, head, token, shape.head_dim - 1),
                  ValueOffset(page, layer, head, token, shape.VHeadDim() - 1)) +
         ElementBytes(shape.dtype);
}

void PageMemory::PoisonWithInfinity() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const BlockShape& shape = pages_.shape;
  const uint32_t bits = ElementBits(kInfinity, shape.dtype);
  const size_t element = ElementBytes(shape.dtype);
  for (size_t i = 0; i + element <= bytes_.size(); i += element) {
    StoreBits(i, bits);
  }
  if (!HasScales(shape.dtype)) return;
  for (uint32_t page = 0; page < pages_.num_pages; ++page) {
    for (uint32_t layer = 0; layer < shape.layers; ++layer) {
      for (uint32_t head = 0; head < shape.kv_heads; ++head) {
        for (uint32_t token = 0; token < shape.block_tokens; ++token) {
          StoreScale(KeyScaleOffset(page, layer, head, token), kInfinity);
          StoreScale(ValueScaleOffset(page, layer, head, token), kInfinity);
        }
      }
    }
  }
}

size_t PageMemory::KeyOffset(uint32_t page, uint32_t layer, uint32_t head,
                             uint32_t token, uint32_t dim) const {
  const int64_t element = ElementBytes(pages_.shape.dtype);
  int64_t within;
  if (pages_.layout.k_order == KOrder::kTiled16) {
    // [tile][head_dim / k][16][k]
    const int64_t k = 4 / element;
    const int64_t units = pages_.shape.head_dim / k;
    within = (((token / 16) * units + dim / k) * 16 + token % 16) * k + dim % k;
    within *= element;
  } else {
    within = token * KTokenStride(pages_) + dim * element;
  }
  return static_cast<size_t>(
      base_offset_ + KSliceOffset(pages_.layout, page, layer, head) + within);
}

size_t PageMemory::ValueOffset(uint32_t page, uint32_t layer, uint32_t head,
                               uint32_t token, uint32_t dim) const {
  const int64_t within = token * VTokenStride(pages_) +
                         dim * int64_t{ElementBytes(pages_.shape.dtype)};
  return static_cast<size_t>(
      base_offset_ + VSliceOffset(pages_.layout, page, layer, head) + within);
}

size_t PageMemory::KeyScaleOffset(uint32_t page, uint32_t layer, uint32_t head,
                                  uint32_t token) const {
  // Behind all elements of the slice.
  const BlockShape& shape = pages_.shape;
  return static_cast<size_t>(base_offset_ +
                             KSliceOffset(pages_.layout, page, layer, head)) +
         size_t{shape.block_tokens} * shape.head_dim + token * sizeof(float);
}

size_t PageMemory::ValueScaleOffset(uint32_t page, uint32_t layer,
                                    uint32_t head, uint32_t token) const {
  const BlockShape& shape = pages_.shape;
  return static_cast<size_t>(base_offset_ +
                             VSliceOffset(pages_.layout, page, layer, head)) +
         size_t{shape.block_tokens} * shape.VHeadDim() + token * sizeof(float);
}

void PageMemory::StoreScale(size_t offset, float scale) {
  PAGED_KV_CHECK(HasScales(pages_.shape.dtype));
  PAGED_KV_CHECK(offset + sizeof(scale) <= bytes_.size());
  std::memcpy(bytes_.data() + offset, &scale, sizeof(scale));
}

void PageMemory::Store(size_t offset, float value) {
  StoreBits(offset, ElementBits(value, pages_.shape.dtype));
}

void PageMemory::StoreBits(size_t offset, uint32_t bits) {
  PAGED_KV_CHECK(offset + ElementBytes(pages_.shape.dtype) <= bytes_.size());
  std::memcpy(bytes_.data() + offset, &bits, ElementBytes(pages_.shape.dtype));
}

uint32_t ElementBits(float value, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return std::bit_cast<uint32_t>(value);
    case DType::kF16:
      return F32ToF16(value);
    case DType::kBF16:
      return F32ToBf16(value);
    case DType::kFp8E4M3:
      return F32ToE4m3(value);
    case DType::kInt8:
      return F32ToInt8(value);
  }
  PAGED_KV_CHECK(false);
}

}  // namespace paged_kv::attention::testing

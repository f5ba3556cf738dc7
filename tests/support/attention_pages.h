// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory for K/V pages in the layouts that engines use, and access to its slots
// byte by byte, independent of the kernels.

#ifndef PAGED_KV_TESTS_SUPPORT_ATTENTION_PAGES_H_
#define PAGED_KV_TESTS_SUPPORT_ATTENTION_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/kv_pages.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::attention::testing {

// How pages lie in memory.
enum class PageOrder : uint8_t {
  kOwn,        // our own; tiled where the shape allows
  kOwnPlain,   // the same with K in [token][dim]
  kOwnSpaced,  // the same with gaps between pages, layers, heads and K and V
  // One tensor per layer group in the orders of other engines, K plain:
  kLayersKvPagesHeadsTokens,    // [layers, 2, pages, heads, tokens, dim]
  kLayersKvPagesTokensHeads,    // [layers, 2, pages, tokens, heads, dim]
  kPagesLayersTokensKvHeads,    // [pages, layers, tokens, 2, heads, dim]
  kPagesHeadsKvTokensBackward,  // own order, plain K, page 0 last in memory
};
inline constexpr PageOrder kAllPageOrders[] = {
    PageOrder::kOwn,
    PageOrder::kOwnPlain,
    PageOrder::kOwnSpaced,
    PageOrder::kLayersKvPagesHeadsTokens,
    PageOrder::kLayersKvPagesTokensHeads,
    PageOrder::kPagesLayersTokensKvHeads,
    PageOrder::kPagesHeadsKvTokensBackward,
};
const char* PageOrderName(PageOrder order);

// False for 8-bit types in orders whose tokens are not dense.
bool TakesOrder(DType dtype, PageOrder order);

// What unwritten elements and scales hold, as far as the dtype can.
enum class Poison : uint8_t { kNan, kInfinity };

// Owns pages, exactly as many bytes as they reach over, so that the address
// sanitizer sees the first byte read beyond them.
class PageMemory {
 public:
  PageMemory(const BlockShape& shape, uint32_t num_pages, PageOrder order,
             Poison poison);

  const KvPages& pages() const { return pages_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

  // Byte offset of one element from the start of bytes().
  size_t KeyOffset(uint32_t page, uint32_t layer, uint32_t head, uint32_t token,
                   uint32_t dim) const;
  size_t ValueOffset(uint32_t page, uint32_t layer, uint32_t head,
                     uint32_t token, uint32_t dim) const;

  // Byte offset of the scale of one token; 8-bit types only.
  size_t KeyScaleOffset(uint32_t page, uint32_t layer, uint32_t head,
                        uint32_t token) const;
  size_t ValueScaleOffset(uint32_t page, uint32_t layer, uint32_t head,
                          uint32_t token) const;

  // Stores `value` rounded to the pages' dtype; for 8-bit types the code of
  // `value` at scale 1.
  void Store(size_t offset, float value);
  void StoreScale(size_t offset, float scale);
  // Stores raw bits, as many as an element has.
  void StoreBits(size_t offset, uint32_t bits);

  uint8_t* mutable_data() { return bytes_.data(); }

 private:
  size_t EndOffset() const;
  void PoisonWithInfinity();

  KvPages pages_;
  int64_t base_offset_ = 0;  // of PageLayout::base in bytes_
  std::vector<uint8_t> bytes_;
};

// `value` as the bits of an element, of 8-bit types at scale 1.
uint32_t ElementBits(float value, DType dtype);

}  // namespace paged_kv::attention::testing

#endif  // PAGED_KV_TESTS_SUPPORT_ATTENTION_PAGES_H_

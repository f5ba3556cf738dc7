// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/copy_blocks.h"

#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::attention {
namespace {

absl::Status CheckCopies(const KvPages& pages,
                         absl::Span<const PageCopy> copies) {
  for (size_t i = 0; i < copies.size(); ++i) {
    const PageCopy& copy = copies[i];
    if (copy.source >= pages.num_pages || copy.target >= pages.num_pages) {
      return absl::InvalidArgumentError(absl::StrCat(
          "copy ", i, " from page ", copy.source, " to page ", copy.target,
          " is outside the ", pages.num_pages, " pages"));
    }
    if (copy.filled_tokens > pages.shape.block_tokens) {
      return absl::InvalidArgumentError(absl::StrCat(
          "copy ", i, " has ", copy.filled_tokens,
          " filled tokens, but pages hold ", pages.shape.block_tokens));
    }
  }
  return absl::OkStatus();
}

// Copies within one (layer, head) of the pages.
class SliceCopier {
 public:
  explicit SliceCopier(const KvPages& pages)
      : pages_(pages),
        k_row_bytes_(int64_t{pages.shape.head_dim} *
                     ElementBytes(pages.shape.dtype)),
        v_row_bytes_(int64_t{pages.shape.VHeadDim()} *
                     ElementBytes(pages.shape.dtype)),
        k_token_stride_(KTokenStride(pages)),
        v_token_stride_(VTokenStride(pages)) {}

  void Copy(const PageCopy& copy, uint32_t layer, uint32_t head) const {
    if (copy.source == copy.target || copy.filled_tokens == 0) return;
    const BlockShape& shape = pages_.shape;
    auto* const base = static_cast<uint8_t*>(pages_.layout.base);
    const int64_t tokens = copy.filled_tokens;

    const uint8_t* k_from =
        base + KSliceOffset(pages_.layout, copy.source, layer, head);
    uint8_t* k_to =
        base + KSliceOffset(pages_.layout, copy.target, layer, head);
    if (pages_.layout.k_order == KOrder::kTiled16) {
      const int64_t tiles = (tokens + kTileTokens - 1) / kTileTokens;
      CopyBytes(k_from, k_to, tiles * kTileTokens * k_row_bytes_);
    } else {
      CopyRows(k_from, k_to, tokens, k_row_bytes_, k_token_stride_);
    }
    const uint8_t* v_from = k_from + pages_.layout.kv_stride;
    uint8_t* v_to = k_to + pages_.layout.kv_stride;
    CopyRows(v_from, v_to, tokens, v_row_bytes_, v_token_stride_);
    if (!HasScales(shape.dtype)) return;

    const int64_t scale_bytes = tokens * static_cast<int64_t>(sizeof(float));
    const auto k_data = static_cast<int64_t>(KDataBytes(shape).value());
    const auto v_data = static_cast<int64_t>(VDataBytes(shape).value());
    CopyBytes(k_from + k_data, k_to + k_data, scale_bytes);
    CopyBytes(v_from + v_data, v_to + v_data, scale_bytes);
  }

 private:
  static void CopyBytes(const uint8_t* from, uint8_t* to, int64_t bytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  static void CopyRows(const uint8_t* from, uint8_t* to, int64_t tokens,
                       int64_t row_bytes, int64_t stride) {
    if (stride == row_bytes) return CopyBytes(from, to, tokens * row_bytes);
    for (int64_t t = 0; t < tokens; ++t) {
      CopyBytes(from + t * stride, to + t * stride, row_bytes);
    }
  }

  const KvPages& pages_;
  const int64_t k_row_bytes_;
  const int64_t v_row_bytes_;
  const int64_t k_token_stride_;
  const int64_t v_token_stride_;
};

}  // namespace

absl::Status CopyBlocks(const KvPages& pages, absl::Span<const PageCopy> copies,
                        ParallelFor& parallel) {
  PAGED_KV_RETURN_IF_ERROR(Validate(pages));
  PAGED_KV_RETURN_IF_ERROR(CheckCopies(pages, copies));
  if (copies.empty()) return absl::OkStatus();
  const SliceCopier copier(pages);
  const uint32_t heads = pages.shape.kv_heads;
  // One task does all copies of a slice, in their order.
  parallel.Run(size_t{pages.shape.layers} * heads, [&](size_t task, size_t) {
    for (const PageCopy& copy : copies) {
      copier.Copy(copy, static_cast<uint32_t>(task / heads),
                  static_cast<uint32_t>(task % heads));
    }
  });
  return absl::OkStatus();
}

}  // namespace paged_kv::attention

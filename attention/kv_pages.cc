// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/kv_pages.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::attention {
namespace {

// One dimension of a strided array of slots.
struct Dimension {
  const char* name;
  int64_t count;
  int64_t stride;  // bytes
};

// Far below 2^63, so that sums of a few offsets cannot wrap.
constexpr int64_t kMaxReach = int64_t{1} << 60;

absl::Status CheckAlignment(const KvPages& pages) {
  const PageLayout& layout = pages.layout;
  const int64_t element = ElementBytes(pages.shape.dtype);
  const int64_t alignment = HasScales(pages.shape.dtype)
                                ? std::max<int64_t>(element, alignof(float))
                                : element;
  if (reinterpret_cast<uintptr_t>(layout.base) %
          static_cast<uintptr_t>(alignment) !=
      0) {
    return absl::InvalidArgumentError(
        absl::StrCat("PageLayout::base is 0x",
                     absl::Hex(reinterpret_cast<uintptr_t>(layout.base)),
                     ", not a multiple of ", alignment));
  }
  const std::array<Dimension, 4> block_strides = {{
      {"page_stride", 1, layout.page_stride},
      {"layer_stride", 1, layout.layer_stride},
      {"head_stride", 1, layout.head_stride},
      {"kv_stride", 1, layout.kv_stride},
  }};
  for (const Dimension& d : block_strides) {
    if (d.stride % alignment == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("PageLayout::", d.name, " is ", d.stride,
                     ", not a multiple of ", alignment));
  }
  for (const Dimension& d : {
           Dimension{"k_token_stride", 1, layout.k_token_stride},
           Dimension{"v_token_stride", 1, layout.v_token_stride},
       }) {
    if (d.stride % element == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("PageLayout::", d.name, " is ", d.stride,
                     ", not a multiple of ", element));
  }
  return absl::OkStatus();
}

// Data and scales of a slice.
int64_t SliceBytes(Bytes data, const BlockShape& shape) {
  return static_cast<int64_t>((data + ScaleBytes(shape)).value());
}

// InvalidArgument unless each stride is at least what the smaller ones and the
// innermost run of `run_bytes` reach over.
absl::Status CheckNesting(const char* what, int64_t run_bytes,
                          absl::Span<Dimension> dims) {
  std::sort(dims.begin(), dims.end(),
            [](const Dimension& a, const Dimension& b) {
              return std::abs(a.stride) < std::abs(b.stride);
            });
  int64_t reach = run_bytes;
  for (const Dimension& d : dims) {
    if (d.count <= 1) continue;
    const int64_t stride = std::abs(d.stride);
    if (stride < reach) {
      return absl::InvalidArgumentError(
          absl::StrCat("PageLayout::", d.name, " is ", d.stride, ", but ", what,
                       " reaches over ", reach, " bytes"));
    }
    if (stride > (kMaxReach - reach) / (d.count - 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("PageLayout::", d.name, " is ", d.stride,
                       ", too far apart for ", d.count, " of them"));
    }
    reach += stride * (d.count - 1);
  }
  return absl::OkStatus();
}

absl::Status CheckOverlap(const KvPages& pages) {
  const BlockShape& shape = pages.shape;
  const PageLayout& layout = pages.layout;
  const int64_t element = ElementBytes(shape.dtype);
  // A slice with scales is one run, as tiles are.
  const bool one_run = HasScales(shape.dtype);
  const bool k_one_run = one_run || layout.k_order == KOrder::kTiled16;
  std::array<Dimension, 4> dims = {{
      {"page_stride", pages.num_pages, layout.page_stride},
      {"layer_stride", shape.layers, layout.layer_stride},
      {"head_stride", shape.kv_heads, layout.head_stride},
      {"k_token_stride", k_one_run ? 1 : shape.block_tokens,
       KTokenStride(pages)},
  }};
  const int64_t k_run = k_one_run ? SliceBytes(KDataBytes(shape), shape)
                                  : shape.head_dim * element;
  PAGED_KV_RETURN_IF_ERROR(CheckNesting("K", k_run, absl::MakeSpan(dims)));

  dims = {{
      {"page_stride", pages.num_pages, layout.page_stride},
      {"layer_stride", shape.layers, layout.layer_stride},
      {"head_stride", shape.kv_heads, layout.head_stride},
      {"v_token_stride", one_run ? 1 : shape.block_tokens, VTokenStride(pages)},
  }};
  const int64_t v_run = one_run ? SliceBytes(VDataBytes(shape), shape)
                                : shape.VHeadDim() * element;
  PAGED_KV_RETURN_IF_ERROR(CheckNesting("V", v_run, absl::MakeSpan(dims)));
  if (std::abs(layout.kv_stride) > kMaxReach) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PageLayout::kv_stride is ", layout.kv_stride, ", out of range"));
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(const KvPages& pages) {
  const BlockShape& shape = pages.shape;
  const PageLayout& layout = pages.layout;
  if (layout.k_order == KOrder::kTiled16) {
    if (OwnKOrder(shape) == KOrder::kTiled16) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "PageLayout::k_order is kTiled16, but blocks of ", shape.block_tokens,
        " tokens with head_dim ", shape.head_dim, " of ",
        DTypeName(shape.dtype), " are not whole tiles of ", kTileTokens,
        " tokens x 4 bytes"));
  }
  if (layout.k_order != KOrder::kTokenDim) {
    return absl::InvalidArgumentError(
        absl::StrCat("PageLayout::k_order is ",
                     static_cast<int>(layout.k_order), ", not a KOrder"));
  }
  return absl::OkStatus();
}

// Scales follow the data of their slice, so that data has to be dense, and V
// has to begin behind them (or, as kv_stride may be negative, end before K).
absl::Status CheckScales(const KvPages& pages) {
  const BlockShape& shape = pages.shape;
  if (!HasScales(shape.dtype)) return absl::OkStatus();
  const bool k_dense = pages.layout.k_order == KOrder::kTiled16 ||
                       KTokenStride(pages) == shape.head_dim;
  if (!k_dense || VTokenStride(pages) != shape.VHeadDim()) {
    return absl::InvalidArgumentError(absl::StrCat(
        DTypeName(shape.dtype), " pages need dense tokens: k_token_stride is ",
        KTokenStride(pages), " for head_dim ", shape.head_dim,
        ", v_token_stride is ", VTokenStride(pages), " for v_head_dim ",
        shape.VHeadDim()));
  }
  const int64_t kv_stride = pages.layout.kv_stride;
  const int64_t reach = kv_stride >= 0 ? SliceBytes(KDataBytes(shape), shape)
                                       : SliceBytes(VDataBytes(shape), shape);
  if (kv_stride >= reach || kv_stride <= -reach) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "PageLayout::kv_stride is ", kv_stride, ", but data and scales of ",
      kv_stride >= 0 ? "K" : "V", " take ", reach, " bytes"));
}

}  // namespace

int64_t KTokenStride(const KvPages& pages) {
  if (pages.layout.k_token_stride != 0) return pages.layout.k_token_stride;
  return int64_t{pages.shape.head_dim} * ElementBytes(pages.shape.dtype);
}

int64_t VTokenStride(const KvPages& pages) {
  if (pages.layout.v_token_stride != 0) return pages.layout.v_token_stride;
  return int64_t{pages.shape.VHeadDim()} * ElementBytes(pages.shape.dtype);
}

absl::Status Validate(const KvPages& pages) {
  PAGED_KV_RETURN_IF_ERROR(paged_kv::Validate(pages.shape));
  if (pages.layout.base == nullptr) {
    return absl::InvalidArgumentError("PageLayout::base is null");
  }
  PAGED_KV_RETURN_IF_ERROR(CheckOrder(pages));
  PAGED_KV_RETURN_IF_ERROR(CheckAlignment(pages));
  PAGED_KV_RETURN_IF_ERROR(CheckScales(pages));
  return CheckOverlap(pages);
}

}  // namespace paged_kv::attention

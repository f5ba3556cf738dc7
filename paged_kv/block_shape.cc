// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/block_shape.h"

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv {
namespace {

constexpr uint32_t kMaxHeadDim = 1024;
constexpr uint64_t kMaxPageBytes = uint64_t{1} << 40;

absl::Status CheckRange(const char* field, uint32_t value, uint32_t low,
                        uint32_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "BlockShape::", field, " is ", value, ", must be ", low, " to ", high));
}

}  // namespace

uint32_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kFp8E4M3:
    case DType::kInt8:
      return 1;
  }
  PAGED_KV_CHECK(false);
}

const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kFp8E4M3:
      return "fp8_e4m3";
    case DType::kInt8:
      return "int8";
  }
  PAGED_KV_CHECK(false);
}

bool HasScales(DType dtype) {
  return dtype == DType::kFp8E4M3 || dtype == DType::kInt8;
}

bool operator==(const BlockShape& a, const BlockShape& b) {
  return a.layers == b.layers && a.kv_heads == b.kv_heads &&
         a.head_dim == b.head_dim && a.VHeadDim() == b.VHeadDim() &&
         a.block_tokens == b.block_tokens && a.dtype == b.dtype;
}

absl::Status Validate(const BlockShape& shape) {
  if (shape.dtype > DType::kInt8) {
    return absl::InvalidArgumentError(
        absl::StrCat("BlockShape::dtype is ", static_cast<int>(shape.dtype),
                     ", not a DType"));
  }
  constexpr uint32_t kMaxCount = 1u << 16;
  for (const absl::Status& status :
       {CheckRange("layers", shape.layers, 1, kMaxCount),
        CheckRange("kv_heads", shape.kv_heads, 1, kMaxCount),
        CheckRange("head_dim", shape.head_dim, 1, kMaxHeadDim),
        CheckRange("v_head_dim", shape.VHeadDim(), 1, kMaxHeadDim),
        CheckRange("block_tokens", shape.block_tokens, 1, kMaxBlockTokens)}) {
    if (!status.ok()) return status;
  }
  // Each factor is bounded above, so the product fits 64 bits.
  if (PageBytes(shape).value() >= kMaxPageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("BlockShape gives pages of ", PageBytes(shape).value(),
                     " bytes, must be below ", kMaxPageBytes));
  }
  return absl::OkStatus();
}

KOrder OwnKOrder(const BlockShape& shape) {
  const bool whole_tiles = shape.block_tokens % kTileTokens == 0;
  const bool whole_rows = shape.head_dim * ElementBytes(shape.dtype) % 4 == 0;
  return whole_tiles && whole_rows ? KOrder::kTiled16 : KOrder::kTokenDim;
}

Bytes KDataBytes(const BlockShape& shape) {
  return Bytes(uint64_t{shape.block_tokens} * shape.head_dim *
               ElementBytes(shape.dtype));
}

Bytes VDataBytes(const BlockShape& shape) {
  return Bytes(uint64_t{shape.block_tokens} * shape.VHeadDim() *
               ElementBytes(shape.dtype));
}

Bytes ScaleBytes(const BlockShape& shape) {
  if (!HasScales(shape.dtype)) return Bytes(0);
  constexpr uint64_t kLine = 64;
  const uint64_t bytes = uint64_t{shape.block_tokens} * sizeof(float);
  return Bytes((bytes + kLine - 1) / kLine * kLine);
}

Bytes PageBytes(const BlockShape& shape) {
  const Bytes run =
      KDataBytes(shape) + VDataBytes(shape) + ScaleBytes(shape) * 2;
  return run * shape.kv_heads * shape.layers;
}

Bytes BytesPerToken(const BlockShape& shape) {
  const uint64_t data =
      uint64_t{shape.head_dim + shape.VHeadDim()} * ElementBytes(shape.dtype);
  const uint64_t scales = HasScales(shape.dtype) ? 2 * sizeof(float) : 0;
  return Bytes((data + scales) * shape.kv_heads * shape.layers);
}

PageLayout OwnPageLayout(const BlockShape& shape, void* base) {
  PageLayout layout;
  layout.base = base;
  layout.kv_stride =
      static_cast<int64_t>((KDataBytes(shape) + ScaleBytes(shape)).value());
  layout.head_stride =
      layout.kv_stride +
      static_cast<int64_t>((VDataBytes(shape) + ScaleBytes(shape)).value());
  layout.layer_stride = layout.head_stride * shape.kv_heads;
  layout.page_stride = layout.layer_stride * shape.layers;
  layout.k_order = OwnKOrder(shape);
  return layout;
}

}  // namespace paged_kv

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/pool_geometry.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {

absl::StatusOr<PoolGeometry> PoolGeometry::Create(const BlockShape& shape,
                                                  uint32_t num_pages,
                                                  uint32_t stripes,
                                                  uint32_t splits,
                                                  uint64_t alignment_bytes) {
  PAGED_KV_RETURN_IF_ERROR(Validate(shape));
  if (stripes == 0 || stripes > shape.kv_heads) {
    return absl::InvalidArgumentError(absl::StrCat(
        stripes, " stripes of ", shape.kv_heads,
        " KV heads; a stripe holds at least one head of every page"));
  }
  if (num_pages == 0 || num_pages >= (1u << 31)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a device pool of ", num_pages, " pages; must be 1 to 2^31 - 1"));
  }
  if (splits == 0 || num_pages % splits != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        splits, " splits of ", num_pages, " pages; all hold as many"));
  }
  if (alignment_bytes == 0 || (alignment_bytes & (alignment_bytes - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "alignment of ", alignment_bytes, " bytes is not a power of two"));
  }
  PoolGeometry geometry;
  geometry.shape_ = shape;
  geometry.num_pages_ = num_pages;
  geometry.stripes_ = stripes;
  geometry.splits_ = splits;
  geometry.alignment_bytes_ = alignment_bytes;
  geometry.head_bytes_ =
      (KDataBytes(shape) + VDataBytes(shape) + ScaleBytes(shape) * 2).value();
  return geometry;
}

}  // namespace paged_kv::fpga_dma

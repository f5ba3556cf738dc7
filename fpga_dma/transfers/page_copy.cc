// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/page_copy.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

using attention::KvPages;

// Calls copy(host bytes, offset in the stripe's layer, bytes) for each run
// that is contiguous on both sides, in the order of the stripe.
template <typename Copy>
void ForEachRun(const KvPages& host, const PoolGeometry& geometry,
                uint32_t page, uint32_t layer, uint32_t stripe, Copy copy) {
  const BlockShape& shape = geometry.shape();
  const uint64_t k_bytes = (KDataBytes(shape) + ScaleBytes(shape)).value();
  const auto head_bytes = static_cast<int64_t>(geometry.HeadBytes());
  const bool heads_dense = host.layout.kv_stride == int64_t(k_bytes) &&
                           host.layout.head_stride == head_bytes;
  auto* base = static_cast<std::byte*>(host.layout.base);
  const uint32_t first = geometry.FirstHead(stripe);
  if (heads_dense) {
    copy(base + KSliceOffset(host.layout, page, layer, first), uint64_t{0},
         geometry.LayerBytes(stripe));
    return;
  }
  uint64_t offset = 0;
  for (uint32_t head = first; head < geometry.FirstHead(stripe + 1); ++head) {
    copy(base + KSliceOffset(host.layout, page, layer, head), offset, k_bytes);
    copy(base + VSliceOffset(host.layout, page, layer, head), offset + k_bytes,
         geometry.HeadBytes() - k_bytes);
    offset += geometry.HeadBytes();
  }
}

}  // namespace

absl::Status CheckHostPages(const KvPages& host, const PoolGeometry& geometry) {
  PAGED_KV_RETURN_IF_ERROR(attention::Validate(host));
  const BlockShape& shape = geometry.shape();
  if (!(host.shape == shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "host pages of ", host.shape.layers, " layers, ", host.shape.kv_heads,
        " heads, ", host.shape.block_tokens, " tokens, ",
        DTypeName(host.shape.dtype), "; the device pool's have ", shape.layers,
        ", ", shape.kv_heads, ", ", shape.block_tokens, ", ",
        DTypeName(shape.dtype)));
  }
  const int64_t element = ElementBytes(shape.dtype);
  const bool own_k =
      host.layout.k_order == OwnKOrder(shape) &&
      (host.layout.k_order == KOrder::kTiled16 ||
       attention::KTokenStride(host) == shape.head_dim * element);
  const bool own_v =
      attention::VTokenStride(host) == shape.VHeadDim() * element;
  if (!own_k || !own_v) {
    return absl::InvalidArgumentError(
        "host pages whose slices are not in our own order (K in tiles where "
        "the shape allows, dense tokens) cannot move to a card as they are");
  }
  return absl::OkStatus();
}

void GatherLayer(const KvPages& host, const PoolGeometry& geometry,
                 uint32_t page, uint32_t layer, uint32_t stripe,
                 std::byte* to) {
  ForEachRun(host, geometry, page, layer, stripe,
             [to](const std::byte* from, uint64_t offset, uint64_t bytes) {
               std::memcpy(to + offset, from, bytes);
             });
  const uint64_t bytes = geometry.LayerBytes(stripe);
  std::memset(to + bytes, 0, geometry.LayerStride(stripe) - bytes);
}

void ScatterLayer(const std::byte* from, const KvPages& host,
                  const PoolGeometry& geometry, uint32_t page, uint32_t layer,
                  uint32_t stripe) {
  ForEachRun(host, geometry, page, layer, stripe,
             [from](std::byte* to, uint64_t offset, uint64_t bytes) {
               std::memcpy(to, from + offset, bytes);
             });
}

}  // namespace paged_kv::fpga_dma

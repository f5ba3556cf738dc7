// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How K, V and rows lie in the memory of a card, in beats; docs/layouts.md has
// pictures. Host and device code.
//
// head_dim is 8, 16, 32, 64 or 128, block_tokens a multiple of 16 up to 4096. A
// slice (layer, KV head) is
//   [K | K scales | V | V scales],
// K in tiles [tile][head_dim / k][16 slots][k], k elements being 4 bytes, V in
// [slot][head_dim]. int8 alone has scales: one f32 per slot, so that a beat
// holds those of a tile.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_KERNEL_GEOMETRY_H_
#define PAGED_KV_FPGA_DMA_KERNELS_KERNEL_GEOMETRY_H_

#include <cstdint>

namespace paged_kv::fpga_dma {

inline constexpr uint32_t kBeatBytes = 64;
// AXI bursts have at most 64 beats of ours and never cross 4 KiB. Addresses of
// K/V memory are therefore multiples of 4 KiB, all others of 64 bytes.
inline constexpr uint32_t kBurstBeats = 64;
inline constexpr uint32_t kKvAlignmentBytes = 4096;

inline constexpr uint32_t kTileSlots = 16;  // tokens of a tile of K
inline constexpr uint32_t kMaxKernelHeadDim = 128;
inline constexpr uint32_t kMaxGroupHeads = 8;  // query heads per KV head
inline constexpr uint32_t kMaxKernelBlockTokens = 4096;

// Element type of K and V, the argument `element`. Queries are always bf16.
enum class KvElement : uint32_t {
  kBf16 = 0,
  kInt8 = 1,  // two's complement, times the scale of its slot
};

constexpr uint32_t KvElementBytes(KvElement element) {
  return element == KvElement::kInt8 ? 1 : 2;
}

// A K or V row in a packed buffer, a query being one of bf16: [head_dim],
// padded with any bytes to whole beats.
constexpr uint32_t RowBeats(uint32_t head_dim,
                            KvElement element = KvElement::kBf16) {
  return (head_dim * KvElementBytes(element) + kBeatBytes - 1) / kBeatBytes;
}
// An output row: f32 [head_dim], padded with 0 to whole beats. An item writes
// group_heads of them, one after the other, at out_beat, and at lse_beat one
// beat f32 [16] with the natural log-sum-exp of each head, 0 behind them.
constexpr uint32_t OutRowBeats(uint32_t head_dim) {
  return (head_dim * 4 + kBeatBytes - 1) / kBeatBytes;
}
// K, or V, of 16 slots.
constexpr uint32_t TileBeats(uint32_t head_dim,
                             KvElement element = KvElement::kBf16) {
  return head_dim * KvElementBytes(element) * kTileSlots / kBeatBytes;
}
// The scales of K, or V, of 16 slots.
constexpr uint32_t TileScaleBeats(KvElement element) {
  return element == KvElement::kInt8 ? 1 : 0;
}
constexpr uint32_t SliceBeats(uint32_t block_tokens, uint32_t head_dim,
                              KvElement element = KvElement::kBf16) {
  return 2 * (block_tokens / kTileSlots) *
         (TileBeats(head_dim, element) + TileScaleBeats(element));
}
// One token of one slice in the `rows` of kv_append: K row, V row and, of int8,
// a beat with the scale of K, the scale of V, and any bytes.
constexpr uint32_t AppendTokenBeats(uint32_t head_dim, KvElement element) {
  return 2 * RowBeats(head_dim, element) + TileScaleBeats(element);
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_KERNEL_GEOMETRY_H_

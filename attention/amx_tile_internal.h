// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tile registers of Intel AMX (Intel 64 and IA-32 Architectures Software
// Developer's Manual, volume 1, chapter 18): eight of up to 16 rows of 64
// bytes. As assembly, because kernels name registers by constants and are
// compiled for targets that know nothing of tiles.

#ifndef PAGED_KV_ATTENTION_AMX_TILE_INTERNAL_H_
#define PAGED_KV_ATTENTION_AMX_TILE_INTERNAL_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"

#if defined(__x86_64__) && defined(__linux__)
#define PAGED_KV_HAS_AMX 1
#else
#define PAGED_KV_HAS_AMX 0
#endif

namespace paged_kv::attention::internal {

// True if the processor multiplies tiles of bf16 and of bytes and the kernel of
// the operating system lets this process use them, which it asks for on the
// first call.
bool CanUseAmxBf16();

#if PAGED_KV_HAS_AMX

inline constexpr size_t kAmxTileRows = 16;
inline constexpr size_t kAmxTileRowBytes = 64;
inline constexpr size_t kAmxTileBytes = kAmxTileRows * kAmxTileRowBytes;

// Gives the eight tiles of the calling thread rows of 64 bytes while it lives:
// tiles 0 to 4, which hold sums and their first factor, `rows` rows, 1 to 16,
// and tiles 5 to 7 16. Time grows with the rows.
class AmxTiles {
 public:
  explicit AmxTiles(size_t rows = kAmxTileRows);
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

template <int kTile>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AmxZero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

// Rows are `stride` bytes apart.
template <int kTile>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AmxLoad(
    const void* from, size_t stride = kAmxTileRowBytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
               :
               : "r"(from), "r"(stride), "i"(kTile)
               : "memory");
}
template <int kTile>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AmxStore(void* to, size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
               :
               : "r"(to), "r"(stride), "i"(kTile)
               : "memory");
}

// kSum [16 rows, 16 columns] f32 += kA [16 rows, 32] bf16 times kB
// [16 pairs, 16 columns, 2] bf16.
template <int kSum, int kA, int kB>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AmxMultiplyBf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
               :
               : "i"(kSum), "i"(kA), "i"(kB));
}

// kSum [16 rows, 16 columns] int32 += kA [16 rows, 64] int8 times kB
// [16 quads, 16 columns, 4] int8.
template <int kSum, int kA, int kB>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AmxMultiplyInt8() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0"
               :
               : "i"(kSum), "i"(kA), "i"(kB));
}
// The same for uint8 in kA.
template <int kSum, int kA, int kB>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AmxMultiplyUint8Int8() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0"
               :
               : "i"(kSum), "i"(kA), "i"(kB));
}

#endif  // PAGED_KV_HAS_AMX

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_AMX_TILE_INTERNAL_H_

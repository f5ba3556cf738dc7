// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A beat of the 512-bit bus and what is read out of it. Device code.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_BEAT_H_
#define PAGED_KV_FPGA_DMA_KERNELS_BEAT_H_

#include <ap_int.h>

#include <cstdint>

#include "fpga_dma/kernels/kernel_abi.h"

namespace paged_kv::fpga_dma {

using Beat = ap_uint<512>;
inline constexpr uint32_t kWordsPerBeat = 16;
inline constexpr uint32_t kBf16PerBeat = 32;

// The 32-bit word at 4 * i bytes of the beat, i < 16.
inline uint32_t Word(const Beat& beat, uint32_t i) {
#pragma HLS inline
  const int low = static_cast<int>(32 * i);
  return static_cast<uint32_t>(beat.range(low + 31, low).to_uint());
}
inline void SetWord(Beat* beat, uint32_t i, uint32_t word) {
#pragma HLS inline
  const int low = static_cast<int>(32 * i);
  beat->range(low + 31, low) = word;
}

// Beats from `beat` on, at most `left`, that one burst may take: no burst
// crosses 4 KiB, which is kBurstBeats beats because K/V memory starts on 4 KiB.
inline uint32_t NextBurst(uint64_t beat, uint64_t left) {
#pragma HLS inline
  const uint64_t room = kBurstBeats - beat % kBurstBeats;
  return static_cast<uint32_t>(left < room ? left : room);
}

// HLS knows no memcpy of a float; a union is its way to the bits.
inline float FloatOfBits(uint32_t bits) {
#pragma HLS inline
  union {
    uint32_t bits;
    float value;
  } both;
  both.bits = bits;
  return both.value;
}
inline uint32_t BitsOfFloat(float value) {
#pragma HLS inline
  union {
    float value;
    uint32_t bits;
  } both;
  both.value = value;
  return both.bits;
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_BEAT_H_

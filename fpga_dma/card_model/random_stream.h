// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_CARD_MODEL_RANDOM_STREAM_H_
#define PAGED_KV_FPGA_DMA_CARD_MODEL_RANDOM_STREAM_H_

#include <cstdint>

namespace paged_kv::fpga_dma {

// The next number of a stream, the same with every compiler and library:
// splitmix64 (S. Vigna, public domain, https://prng.di.unimi.it/splitmix64.c).
inline uint64_t NextRandom(uint64_t* state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// In [0, 1).
inline double NextUniform(uint64_t* state) {
  return static_cast<double>(NextRandom(state) >> 11) * 0x1p-53;
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_CARD_MODEL_RANDOM_STREAM_H_

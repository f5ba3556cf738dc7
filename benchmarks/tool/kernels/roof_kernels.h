// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Micro-kernels that find out what a machine can do at best: how fast it reads
// memory, and how fast it multiplies and adds. One set per instruction set,
// chosen at run time as the attention kernels are.

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_ROOF_KERNELS_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_ROOF_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "attention/isa.h"

namespace paged_kv::tool {

inline constexpr size_t kLineBytes = 64;

// Neighbouring cache lines.
struct LineRun {
  int64_t offset = 0;  // bytes from a base
  uint32_t lines = 0;
};

// Independent chains of multiply-adds that use nothing but registers.
struct PeakKernel {
  const char* name = nullptr;
  // The result only keeps the work from being optimised away.
  float (*run)(size_t iterations) = nullptr;
  size_t flops = 0;  // of one iteration
};

struct RoofKernels {
  // Reads runs [begin, end) in order. While it reads run i it prefetches as
  // many lines of run i + ahead; 0: none. Returns all 64-bit words xored.
  uint64_t (*read_runs)(const uint8_t* base, absl::Span<const LineRun> runs,
                        size_t begin, size_t end, size_t ahead);
  // Reads `streams` equal parts of the memory by turns of 1 KiB, and prefetches
  // the line `ahead` bytes further on; 0: the hardware alone does. Bytes behind
  // the last whole turn are left out. Returns all 64-bit words xored.
  uint64_t (*read_streams)(const uint8_t* data, size_t bytes, size_t streams,
                           size_t ahead);
  // The instructions that attention over bf16 or 8-bit pages can do its
  // products with; the first one, "f32_fma", is all there is for f32 and f16.
  std::vector<PeakKernel> peaks;
};

// Those for a resolved instruction set, which has to run here.
RoofKernels RoofKernelsFor(attention::Isa isa);

// "bf16_dot": AVX-512's dot products of pairs of bf16. "bf16_tile": AMX's
// products of tiles. Without a function where the compiler has no such
// instructions.
PeakKernel Bf16DotPeak();
PeakKernel Bf16TilePeak();

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_ROOF_KERNELS_H_

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

#include "absl/types/span.h"
#include "attention/isa.h"

namespace paged_kv::tool {

inline constexpr size_t kLineBytes = 64;

// Neighbouring cache lines.
struct LineRun {
  int64_t offset = 0;  // bytes from a base
  uint32_t lines = 0;
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
  // Independent chains of f32 multiply-adds: one instruction where the
  // instruction set has it, else two.
  float (*multiply_add)(size_t iterations);
  size_t multiply_add_flops = 0;  // of one iteration
  // The same of dot products of pairs of bf16; null without the instruction.
  float (*bf16_dot)(size_t iterations) = nullptr;
  size_t bf16_dot_flops = 0;
};

// Those for a resolved instruction set, which has to run here.
RoofKernels RoofKernelsFor(attention::Isa isa);

// See RoofKernels::bf16_dot; null where the compiler does not know it.
struct Bf16DotKernel {
  float (*function)(size_t iterations) = nullptr;
  size_t flops = 0;
};
Bf16DotKernel Bf16DotPeak();

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_ROOF_KERNELS_H_

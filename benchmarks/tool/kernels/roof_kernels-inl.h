// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The micro-kernels of one instruction set. roof_kernels.cc includes this once
// for each, with
//   PAGED_KV_ROOF_NAMESPACE   a name of its own
//   PAGED_KV_ROOF_TARGET      the attribute that allows its instructions
//   PAGED_KV_ROOF_WORDS       its widest integer vector
//   PAGED_KV_ROOF_FLOATS      its widest vector of f32
//   PAGED_KV_ROOF_MULTIPLY_ADD(a, b, c)   a * b + c
// and undefines them here. Everything is in one function each: an attribute
// does not reach the functions that it calls.

namespace paged_kv::tool {
namespace {
namespace PAGED_KV_ROOF_NAMESPACE {

using Words = PAGED_KV_ROOF_WORDS;
using Floats = PAGED_KV_ROOF_FLOATS;

constexpr size_t kVectorsPerLine = kLineBytes / sizeof(Words);

PAGED_KV_ROOF_TARGET uint64_t ReadRuns(const uint8_t* base,
                                       absl::Span<const LineRun> runs,
                                       size_t begin, size_t end, size_t ahead) {
  Words sum{};
  const size_t last = runs.size() - 1;
  for (size_t i = begin; i < end; ++i) {
    const uint8_t* from = base + runs[i].offset;
    const uint8_t* next =
        base + runs[i + ahead < last ? i + ahead : last].offset;
    const uint8_t* const stop = from + runs[i].lines * kLineBytes;
    if (ahead == 0) {
      for (; from < stop; from += kLineBytes) {
        for (size_t v = 0; v < kVectorsPerLine; ++v) {
          Words words;
          std::memcpy(&words, from + v * sizeof(Words), sizeof(Words));
          sum ^= words;
        }
      }
      continue;
    }
    for (; from < stop; from += kLineBytes, next += kLineBytes) {
      __builtin_prefetch(next);
      for (size_t v = 0; v < kVectorsPerLine; ++v) {
        Words words;
        std::memcpy(&words, from + v * sizeof(Words), sizeof(Words));
        sum ^= words;
      }
    }
  }
  uint64_t lanes[sizeof(Words) / sizeof(uint64_t)];
  std::memcpy(lanes, &sum, sizeof(lanes));
  uint64_t checksum = 0;
  for (const uint64_t lane : lanes) checksum ^= lane;
  return checksum;
}

PAGED_KV_ROOF_TARGET uint64_t ReadStreams(const uint8_t* data, size_t bytes,
                                          size_t streams, size_t ahead) {
  constexpr size_t kTurnBytes = 1024;
  Words sum{};
  const size_t part = bytes / streams / kTurnBytes * kTurnBytes;
  for (size_t i = 0; i < part; i += kTurnBytes) {
    for (size_t s = 0; s < streams; ++s) {
      const uint8_t* from = data + s * part + i;
      for (size_t b = 0; b < kTurnBytes; b += kLineBytes) {
        if (ahead != 0) __builtin_prefetch(from + b + ahead);
        for (size_t v = 0; v < kVectorsPerLine; ++v) {
          Words words;
          std::memcpy(&words, from + b + v * sizeof(Words), sizeof(Words));
          sum ^= words;
        }
      }
    }
  }
  uint64_t lanes[sizeof(Words) / sizeof(uint64_t)];
  std::memcpy(lanes, &sum, sizeof(lanes));
  uint64_t checksum = 0;
  for (const uint64_t lane : lanes) checksum ^= lane;
  return checksum;
}

// Twelve chains hide the latency of two multiply-add units and leave room in
// sixteen registers. Each chain depends on itself, so nothing moves out of the
// loop, and starts elsewhere, so that no two are merged.
PAGED_KV_ROOF_TARGET float MultiplyAdd(size_t iterations) {
  constexpr size_t kChains = 12;
  const Floats factor = Floats{} + 0.5f;
  const Floats addend = Floats{} + 1.0f;
  Floats chains[kChains];
  PAGED_KV_TOOL_UNROLL
  for (size_t c = 0; c < kChains; ++c) {
    chains[c] = Floats{} + static_cast<float>(c);
  }
  for (size_t i = 0; i < iterations; ++i) {
    PAGED_KV_TOOL_UNROLL
    for (size_t c = 0; c < kChains; ++c) {
      chains[c] = PAGED_KV_ROOF_MULTIPLY_ADD(chains[c], factor, addend);
    }
  }
  Floats sum{};
  PAGED_KV_TOOL_UNROLL
  for (size_t c = 0; c < kChains; ++c) sum += chains[c];
  float first;
  std::memcpy(&first, &sum, sizeof(first));
  return first;
}

RoofKernels Kernels() {
  constexpr size_t kFlops = 12 * 2 * sizeof(Floats) / sizeof(float);
  return {ReadRuns, ReadStreams, {{"f32_fma", MultiplyAdd, kFlops}}};
}

}  // namespace PAGED_KV_ROOF_NAMESPACE
}  // namespace
}  // namespace paged_kv::tool

#undef PAGED_KV_ROOF_NAMESPACE
#undef PAGED_KV_ROOF_TARGET
#undef PAGED_KV_ROOF_WORDS
#undef PAGED_KV_ROOF_FLOATS
#undef PAGED_KV_ROOF_MULTIPLY_ADD

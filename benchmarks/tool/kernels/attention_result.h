// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_RESULT_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_RESULT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/isa.h"
#include "benchmarks/tool/kernels/attention_case.h"
#include "benchmarks/tool/kernels/error_check.h"

namespace paged_kv::tool {

// Seconds of one step, which here is the attention of one layer for the whole
// batch, over the rounds that count.
struct StepSeconds {
  double min = 0;
  double median = 0;
  double p90 = 0;
};

// Rounds whose times count, and all of them. Disturbed: most were, so all of
// them count.
struct RoundCount {
  size_t counted = 0;
  size_t total = 0;
  bool disturbed = false;
};

// One kind of multiply-add.
struct PeakRate {
  std::string name;  // "f32_fma", "bf16_dot", "bf16_tile"
  double rate = 0;   // flops per second
};

// What was measured of one case. Rates are medians over rounds in which
// kernel, stream, gather and peak took turns.
struct AttentionResult {
  AttentionCase attention_case;
  attention::Isa isa = attention::Isa::kAuto;  // resolved
  uint32_t threads = 1;
  double pool_bytes = 0;   // of all pages and layers
  double huge_share = -1;  // of them in huge pages; -1: unknown

  double plan_seconds = 0;  // median, of the plan for all layers of a step
  StepSeconds step;
  RoundCount rounds;       // of the kernel
  double stream_rate = 0;  // bytes per second
  size_t streams = 1;      // read side by side
  size_t stream_ahead_bytes = 0;
  double gather_rate = 0;  // bytes per second
  size_t gather_ahead_bytes = 0;
  std::vector<PeakRate> peaks;  // of the instruction set and the pages' type
  double peak_rate = 0;         // the highest of them
  std::string peak_name;
  RoundCount stream_rounds, gather_rounds, peak_rounds;

  bool appended = false;
  double append_seconds = 0;  // median, of one layer

  ErrorCheck error;

  // Bytes and flops of the step, per second.
  double ReadRate() const {
    return attention_case.DistinctKvBytes() / step.median;
  }
  double FlopRate() const { return attention_case.Flops() / step.median; }
  double FlopsPerByte() const {
    return attention_case.Flops() / attention_case.DistinctKvBytes();
  }
  double ShareOfStream() const { return ReadRate() / stream_rate; }
  double ShareOfGather() const { return ReadRate() / gather_rate; }
  double ShareOfPeak() const { return FlopRate() / peak_rate; }

  // How fast K/V could be read if arithmetic ran at its peak and memory took
  // no time: the arithmetic's bound in bytes per second.
  double CeilingRate() const { return peak_rate / FlopsPerByte(); }
  // The lower one of the stream's and the arithmetic's roof is the bound.
  bool BoundByMemory() const { return stream_rate <= CeilingRate(); }
  double BoundRate() const {
    return BoundByMemory() ? stream_rate : CeilingRate();
  }
  double ShareOfBound() const { return ReadRate() / BoundRate(); }
  double TokensPerSecond() const {
    return static_cast<double>(attention_case.TotalQueries()) / step.median;
  }
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_RESULT_H_

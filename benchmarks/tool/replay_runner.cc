// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/replay_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmarks/tool/belady.h"
#include "benchmarks/tool/scheduler_replay.h"
#include "benchmarks/tool/serial_replay.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "benchmarks/tool/unbounded_pool.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

bool IsPaged(PolicyKind kind) {
  return kind == PolicyKind::kPaged || kind == PolicyKind::kPagedNoShare;
}

uint64_t UnboundedBlocks(const Trace& trace, const ReplayOptions& options) {
  const uint32_t running = options.concurrency == Concurrency::kSerial
                               ? 1
                               : options.serving.max_running;
  const uint64_t slots =
      UnboundedSlots(trace, options.policy, options.block_tokens, running);
  return (slots + options.block_tokens - 1) / options.block_tokens;
}

absl::StatusOr<ReplayResult> ReplayOnce(const Trace& trace,
                                        const ReplayOptions& options,
                                        uint64_t pool_blocks,
                                        Progress& progress) {
  PolicyOptions policy;
  policy.kind = options.policy;
  policy.block_tokens = options.block_tokens;
  policy.eviction = options.eviction;
  policy.capacity_slots = pool_blocks * options.block_tokens;
  const bool serial = options.concurrency == Concurrency::kSerial;
  if (!serial && IsPaged(options.policy)) {
    return ReplayWithScheduler(trace, options.serving, policy, progress);
  }
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<MemoryPolicy> memory,
                            MakeMemoryPolicy(policy, trace));
  if (!serial) {
    return ReplayConcurrently(trace, options.serving, *memory, progress);
  }
  SerialOptions serial_options;
  serial_options.model = options.serving.model;
  serial_options.decode_step_tokens = options.decode_step_tokens;
  return ReplaySerially(trace, serial_options, *memory, progress);
}

uint64_t PeakBlocks(const ReplayResult& result, uint32_t block_tokens) {
  return (result.usage.peak_allocated() + block_tokens - 1) / block_tokens;
}

absl::StatusOr<uint64_t> PeakDemand(const Trace& trace,
                                    const ReplayOptions& options,
                                    Progress& progress) {
  progress.Start("measuring peak demand");
  ReplayOptions unbounded = options;
  // Larger steps peak at the same length.
  unbounded.decode_step_tokens = std::numeric_limits<uint32_t>::max();
  PAGED_KV_ASSIGN_OR_RETURN(
      const ReplayResult result,
      ReplayOnce(trace, unbounded, UnboundedBlocks(trace, options), progress));
  return PeakBlocks(result, options.block_tokens);
}

// Nothing may be evicted from a pool that counts as unbounded, and nobody may
// wait for memory: else its size was computed wrongly.
absl::Status CheckUnbounded(const ReplayResult& result, uint64_t pool_blocks) {
  if (result.evicted_blocks == 0 && result.preemptions == 0 &&
      result.NeverFits() == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "the unbounded pool of ", pool_blocks, " blocks was too small: ",
      result.evicted_blocks, " blocks evicted, ", result.preemptions,
      " preemptions, ", result.NeverFits(), " requests refused"));
}

double BeladyHitRate(const Trace& trace, const ReplaySummary& summary) {
  if (summary.result.prompt_tokens == 0) return 0;
  std::vector<bool> served;
  for (const RequestOutcome& outcome : summary.result.outcomes) {
    served.push_back(outcome.completed);
  }
  const uint64_t tokens = BeladyHitTokens(
      trace, served, summary.options.block_tokens, summary.pool_blocks);
  return static_cast<double>(tokens) /
         static_cast<double>(summary.result.prompt_tokens);
}

std::vector<absl::Duration> Arrivals(const Trace& trace) {
  std::vector<absl::Duration> arrivals;
  arrivals.reserve(trace.requests.size());
  for (const Request& request : trace.requests) {
    arrivals.push_back(request.arrival);
  }
  return arrivals;
}

SensitivityRow MakeRow(std::string change, const Trace& trace,
                       const ReplayResult& result) {
  SensitivityRow row;
  row.change = std::move(change);
  row.effective_utilisation = result.usage.EffectiveUtilisation();
  row.hit_rate = result.HitRate();
  row.preemptions = result.preemptions;
  row.mean_running = result.usage.MeanRunning();
  row.simulated_seconds = absl::ToDoubleSeconds(result.duration);
  row.first_token_seconds_p50 = result.FirstTokenSeconds(0.5, Arrivals(trace));
  return row;
}

absl::Status AddSensitivity(const Trace& trace, ReplaySummary& summary,
                            Progress& progress) {
  summary.sensitivity.push_back(
      MakeRow("as documented", trace, summary.result));
  struct Constant {
    const char* name;
    double StepTimeModel::*value;
  };
  for (const Constant& constant :
       {Constant{"flops_per_second", &StepTimeModel::flops_per_second},
        Constant{"bytes_per_second", &StepTimeModel::bytes_per_second}}) {
    for (const double factor : {0.5, 2.0}) {
      const std::string change = absl::StrCat(constant.name, " x ", factor);
      progress.Start(absl::StrCat("replaying with ", change));
      ReplayOptions options = summary.options;
      options.serving.model.*constant.value *= factor;
      PAGED_KV_ASSIGN_OR_RETURN(
          const ReplayResult result,
          ReplayOnce(trace, options, summary.pool_blocks, progress));
      summary.sensitivity.push_back(MakeRow(change, trace, result));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view ConcurrencyName(Concurrency concurrency) {
  return concurrency == Concurrency::kSerial ? "serial" : "trace";
}

absl::StatusOr<Concurrency> ParseConcurrency(absl::string_view name) {
  for (const Concurrency c : {Concurrency::kSerial, Concurrency::kTrace}) {
    if (name == ConcurrencyName(c)) return c;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown concurrency ", QuoteForError(name), "; use serial or trace"));
}

absl::StatusOr<ReplaySummary> RunReplay(const Trace& trace,
                                        const ReplayOptions& options,
                                        Progress& progress) {
  const bool unbounded = options.pool_blocks == 0 && options.pool_fraction == 0;
  uint64_t pool_blocks =
      unbounded ? UnboundedBlocks(trace, options) : options.pool_blocks;
  uint64_t peak_demand = 0;
  if (!unbounded) {
    PAGED_KV_ASSIGN_OR_RETURN(peak_demand,
                              PeakDemand(trace, options, progress));
    if (options.pool_fraction > 0) {
      pool_blocks = std::max<uint64_t>(
          1, static_cast<uint64_t>(std::llround(
                 options.pool_fraction * static_cast<double>(peak_demand))));
    }
  }

  progress.Start("replaying");
  PAGED_KV_ASSIGN_OR_RETURN(ReplayResult result,
                            ReplayOnce(trace, options, pool_blocks, progress));
  ReplaySummary summary(options, std::move(result));
  summary.pool_blocks = pool_blocks;
  summary.unbounded = unbounded;
  if (unbounded) {
    PAGED_KV_RETURN_IF_ERROR(CheckUnbounded(summary.result, pool_blocks));
    peak_demand = PeakBlocks(summary.result, options.block_tokens);
  }
  summary.peak_demand_blocks = peak_demand;
  if (options.policy == PolicyKind::kPaged) {
    progress.Start("computing Belady's optimum");
    summary.belady_hit_rate = BeladyHitRate(trace, summary);
  }
  if (options.concurrency == Concurrency::kTrace && options.sensitivity) {
    PAGED_KV_RETURN_IF_ERROR(AddSensitivity(trace, summary, progress));
  }
  progress.Clear();
  return summary;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/measure_attention.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attention/parallel_for.h"
#include "benchmarks/tool/kernels/kv_batch.h"
#include "benchmarks/tool/kernels/roofs.h"
#include "benchmarks/tool/kernels/timing.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using attention::AttentionPlan;
using attention::Isa;
using attention::ThreadPool;

constexpr size_t kMinRounds = 3;
constexpr size_t kMaxRounds = 10'000;
constexpr double kPrefillTurnSeconds = 0.1;

RoundCount CountRounds(const QuietTimings& timings) {
  return {timings.counted(), timings.total(), timings.disturbed()};
}

class Measurement {
 public:
  Measurement(KvBatch& batch, AttentionPlan& plan,
              const MeasureOptions& options, ThreadPool& pool)
      : batch_(batch),
        plan_(plan),
        options_(options),
        pool_(pool),
        roofs_(batch, plan.isa(), pool),
        layers_(batch.attention_case().shape.layers),
        peaks_(roofs_.num_peaks(), QuietTimings(pool.num_workers())) {}

  absl::Status WarmUp() {
    PAGED_KV_RETURN_IF_ERROR(batch_.Attend(plan_, 0, pool_));
    turn_layers_ = layers_;
    if (batch_.attention_case().prefill) {
      PAGED_KV_ASSIGN_OR_RETURN(const Timing once, TimeLayers(1));
      const double turn =
          std::ceil(kPrefillTurnSeconds / std::max(once.wall_seconds, 1e-6));
      turn_layers_ =
          static_cast<uint32_t>(std::min(turn, static_cast<double>(layers_)));
    }
    PAGED_KV_RETURN_IF_ERROR(TimeLayers(turn_layers_).status());
    if (options_.append) return AppendAll();
    return absl::OkStatus();
  }

  void Calibrate() { roofs_.Calibrate(); }

  // Rounds until the time is used up, or twice that if most were disturbed. A
  // look at the kernel is followed by one at each roof, so that all see the
  // same machine.
  absl::Status Run(Progress& progress) {
    const auto start = std::chrono::steady_clock::now();
    for (size_t round = 0; round < kMaxRounds; ++round) {
      const std::chrono::duration<double> elapsed =
          std::chrono::steady_clock::now() - start;
      const double limit = options_.seconds * (Disturbed() ? 2 : 1);
      if (round >= kMinRounds && elapsed.count() >= limit) break;
      progress.Start(absl::StrCat("measuring, round ", round + 1));
      progress.Update(static_cast<uint64_t>(1000 * elapsed.count()),
                      static_cast<uint64_t>(1000 * options_.seconds) + 1);
      PAGED_KV_RETURN_IF_ERROR(Round());
    }
    progress.Clear();
    return absl::OkStatus();
  }

  void Report(AttentionResult* result) const {
    const double turn_layers = turn_layers_;
    result->step = {kernel_.Min() / turn_layers, kernel_.Median() / turn_layers,
                    kernel_.P90() / turn_layers};
    result->rounds = CountRounds(kernel_);
    result->stream_rate = roofs_.StreamBytes() / stream_.Median();
    result->streams = roofs_.streams();
    result->stream_ahead_bytes = roofs_.stream_ahead_bytes();
    result->gather_rate = roofs_.GatherBytes() / gather_.Median();
    result->gather_ahead_bytes = roofs_.gather_ahead_bytes();
    result->stream_rounds = CountRounds(stream_);
    result->gather_rounds = CountRounds(gather_);
    for (size_t kind = 0; kind < peaks_.size(); ++kind) {
      const double rate = roofs_.PeakFlops(kind) / peaks_[kind].Median();
      result->peaks.push_back({roofs_.peak_name(kind), rate});
      if (rate <= result->peak_rate) continue;
      result->peak_rate = rate;
      result->peak_name = roofs_.peak_name(kind);
      result->peak_rounds = CountRounds(peaks_[kind]);
    }
    result->appended = options_.append;
    if (options_.append) result->append_seconds = append_.Median() / layers_;
  }

 private:
  bool Disturbed() const {
    return kernel_.disturbed() || stream_.disturbed() || gather_.disturbed() ||
           std::any_of(peaks_.begin(), peaks_.end(),
                       [](const QuietTimings& p) { return p.disturbed(); });
  }

  // The next `count` layers, one after the other.
  absl::StatusOr<Timing> TimeLayers(uint32_t count) {
    absl::Status status;
    const Timing timing = TimeOf([&] {
      for (uint32_t i = 0; i < count && status.ok(); ++i) {
        status = batch_.Attend(plan_, next_layer_, pool_);
        next_layer_ = (next_layer_ + 1) % layers_;
      }
    });
    PAGED_KV_RETURN_IF_ERROR(status);
    return timing;
  }

  absl::Status AppendAll() {
    for (uint32_t layer = 0; layer < layers_; ++layer) {
      PAGED_KV_RETURN_IF_ERROR(batch_.Append(layer, pool_, options_.isa));
    }
    return absl::OkStatus();
  }

  absl::Status Round() {
    PAGED_KV_ASSIGN_OR_RETURN(const Timing kernel, TimeLayers(turn_layers_));
    kernel_.Add(kernel);
    if (options_.append) {
      absl::Status status;
      append_.Add(TimeOf([&] { status = AppendAll(); }));
      PAGED_KV_RETURN_IF_ERROR(status);
    }
    gather_.Add(TimeOf([&] { roofs_.Gather(); }));
    stream_.Add(TimeOf([&] { roofs_.Stream(); }));
    for (size_t kind = 0; kind < peaks_.size(); ++kind) {
      peaks_[kind].Add(TimeOf([&] { roofs_.Peak(kind); }));
    }
    return absl::OkStatus();
  }

  KvBatch& batch_;
  AttentionPlan& plan_;
  const MeasureOptions& options_;
  ThreadPool& pool_;
  Roofs roofs_;
  const uint32_t layers_;
  uint32_t turn_layers_ = 1;
  uint32_t next_layer_ = 0;

  QuietTimings kernel_{pool_.num_workers()};
  QuietTimings append_{pool_.num_workers()};
  QuietTimings stream_{pool_.num_workers()};
  QuietTimings gather_{pool_.num_workers()};
  std::vector<QuietTimings> peaks_;
};

// Median seconds of making the step's plan.
absl::StatusOr<double> PlanSeconds(const KvBatch& batch,
                                   const MeasureOptions& options) {
  constexpr int kRepeats = 21;
  QuietTimings timings(/*threads=*/1);
  for (int i = 0; i < kRepeats; ++i) {
    absl::Status status;
    timings.Add(TimeOf([&] {
      status = batch.Plan(options.isa, options.share_prefixes).status();
    }));
    PAGED_KV_RETURN_IF_ERROR(status);
  }
  return timings.Median();
}

}  // namespace

absl::StatusOr<AttentionResult> MeasureAttention(
    const AttentionCase& attention_case, const MeasureOptions& options,
    Progress& progress) {
  PAGED_KV_ASSIGN_OR_RETURN(KvBatch batch,
                            KvBatch::Create(attention_case, options.seed));
  PAGED_KV_ASSIGN_OR_RETURN(AttentionPlan plan,
                            batch.Plan(options.isa, options.share_prefixes));
  ThreadPool pool(options.threads);
  PAGED_KV_RETURN_IF_ERROR(batch.Fill(pool, progress));

  Measurement measurement(batch, plan, options, pool);
  progress.Start("warming up");
  progress.Update(0, 1);
  PAGED_KV_RETURN_IF_ERROR(measurement.WarmUp());
  measurement.Calibrate();
  PAGED_KV_RETURN_IF_ERROR(measurement.Run(progress));

  AttentionResult result;
  result.attention_case = batch.attention_case();
  result.isa = plan.isa();
  result.threads = options.threads;
  result.pool_bytes =
      static_cast<double>(PageBytes(batch.pages().shape).value()) *
      batch.pages().num_pages;
  result.huge_share = batch.memory().HugeShare();
  measurement.Report(&result);
  PAGED_KV_ASSIGN_OR_RETURN(result.plan_seconds, PlanSeconds(batch, options));
  progress.Start("checking against the reference");
  progress.Update(0, 1);
  PAGED_KV_ASSIGN_OR_RETURN(result.error,
                            CheckSampledHeads(batch, plan, pool, options.seed));
  progress.Clear();
  return result;
}

}  // namespace paged_kv::tool

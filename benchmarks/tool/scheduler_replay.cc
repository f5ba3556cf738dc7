// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/scheduler_replay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "benchmarks/tool/paged_policy.h"
#include "benchmarks/tool/token_source.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr GroupId kGroup(0);

class SchedulerRun {
 public:
  SchedulerRun(const Trace& trace, const ServingOptions& options,
               const TokenSource& tokens, ReplayResult& result)
      : trace_(trace),
        options_(options),
        tokens_(tokens),
        result_(result),
        generated_(trace.requests.size(), 0) {}

  absl::Status Create(const PolicyOptions& policy) {
    KvCacheOptions cache = ManagerOptions(
        trace_,
        static_cast<uint32_t>(policy.capacity_slots / policy.block_tokens),
        policy.block_tokens, policy.eviction,
        policy.kind == PolicyKind::kPaged);
    cache.max_sequences = std::max(cache.max_sequences, options_.max_running);
    PAGED_KV_ASSIGN_OR_RETURN(cache_, KvCacheManager::Create(cache));
    BatchSchedulerOptions scheduler;
    scheduler.max_batch_sequences = options_.max_running;
    scheduler.max_batch_tokens = options_.step_tokens;
    PAGED_KV_ASSIGN_OR_RETURN(
        scheduler_, BatchScheduler::Create(cache_.get(), &clock_, scheduler));
    return absl::OkStatus();
  }

  bool Done() const { return ended_ == trace_.requests.size(); }
  size_t ended() const { return ended_; }
  absl::Duration now() const { return clock_.Now() - absl::UnixEpoch(); }

  absl::Status Step() {
    PAGED_KV_RETURN_IF_ERROR(SubmitArrived());
    PAGED_KV_ASSIGN_OR_RETURN(const ScheduledStep step, scheduler_->Schedule());
    if (step.empty()) return WaitForArrival();

    StepWork work;
    for (const WorkItem& item : step.items) {
      work.Add(item.first_new.value(), item.new_tokens.value());
    }
    const absl::Duration duration = StepTime(options_.model, work);
    clock_.Advance(duration);
    const BatchSchedulerStats stats = scheduler_->Stats();
    const auto waiting =
        static_cast<uint32_t>(stats.waiting + (next_arrived_ - next_submit_));
    PAGED_KV_RETURN_IF_ERROR(
        result_.usage.Add({now(), Slots(), stats.running, waiting}, duration));
    PAGED_KV_RETURN_IF_ERROR(Complete(step));
    TakeFinished();
    return absl::OkStatus();
  }

  void AddTotals() {
    const BatchSchedulerStats stats = scheduler_->Stats();
    result_.preemptions = stats.preemptions;
    result_.recomputed_tokens = stats.recomputed_tokens;
    result_.evicted_blocks = cache_->Stats().blocks_evicted;
    result_.duration = now();
  }

 private:
  SlotCounts Slots() const { return cache_->Stats().pools[0].slots; }

  absl::Duration Arrival(size_t i) const {
    return options_.ignore_arrivals ? absl::ZeroDuration()
                                    : trace_.requests[i].arrival;
  }

  absl::Status SubmitArrived() {
    const size_t count = trace_.requests.size();
    while (next_arrived_ < count && Arrival(next_arrived_) <= now()) {
      ++next_arrived_;
    }
    for (; next_submit_ < next_arrived_; ++next_submit_) {
      const Request& request = trace_.requests[next_submit_];
      std::vector<TokenId> prompt(request.prompt_tokens);
      tokens_.Fill(next_submit_, 0, absl::MakeSpan(prompt));
      GenerationRequest generation;
      generation.id = RequestId(next_submit_);
      generation.prompt = prompt;
      generation.max_output_tokens = request.output_tokens;
      const absl::Status status = scheduler_->Submit(generation);
      if (absl::IsResourceExhausted(status)) break;
      if (absl::IsOutOfRange(status)) {
        ++ended_;  // never fits
        continue;
      }
      PAGED_KV_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

  absl::Status WaitForArrival() {
    if (Done()) return absl::OkStatus();
    if (next_arrived_ == trace_.requests.size()) {
      return absl::InternalError(absl::StrCat(
          "the scheduler has nothing to do, but ",
          trace_.requests.size() - ended_, " requests have not ended"));
    }
    clock_.Set(absl::UnixEpoch() + std::max(now(), Arrival(next_arrived_)));
    return absl::OkStatus();
  }

  // Slots that the sequences which end with this step hold, from the
  // manager's tables.
  void NoteEnding(const ScheduledStep& step) {
    ending_.clear();
    for (const WorkItem& item : step.items) {
      const size_t r = item.request.value();
      const Request& request = trace_.requests[r];
      const bool prompt_done = item.outputs > 0 || request.output_tokens == 0;
      const uint32_t computed =
          item.first_new.value() + item.new_tokens.value();
      const bool ends =
          request.output_tokens == 0
              ? prompt_done && computed == request.prompt_tokens
              : item.outputs > 0 && generated_[r] + 1 == request.output_tokens;
      if (!ends) continue;
      const uint64_t held = cache_->BlockTable(item.sequence, kGroup)->size() *
                            cache_->options().groups[0].shape.block_tokens;
      SlotCounts& slots = result_.outcomes[r].final_slots;
      slots.live = cache_->Describe(item.sequence)->tokens.value();
      slots.tail = held - slots.live;
      ending_.push_back(r);
    }
  }

  absl::Status Complete(const ScheduledStep& step) {
    NoteEnding(step);
    sampled_.clear();
    for (const WorkItem& item : step.items) {
      if (item.outputs == 0) continue;
      const size_t r = item.request.value();
      sampled_.emplace_back();
      tokens_.Fill(r, trace_.requests[r].prompt_tokens + generated_[r],
                   absl::MakeSpan(&sampled_.back(), 1));
      ++generated_[r];
    }
    const SlotCounts before = Slots();
    PAGED_KV_RETURN_IF_ERROR(scheduler_->Complete(step.id, sampled_));
    const SlotCounts after = Slots();
    // Two sources, one truth: the pool's slot states lose exactly the tails
    // of the sequences that ended.
    uint64_t tails = 0;
    for (const size_t r : ending_)
      tails += result_.outcomes[r].final_slots.tail;
    if (before.tail - after.tail != tails) {
      return absl::InternalError(
          absl::StrCat("the pool had ", before.tail, " tail slots before and ",
                       after.tail, " after ", ending_.size(), " requests with ",
                       tails, " tail slots ended"));
    }
    return absl::OkStatus();
  }

  void TakeFinished() {
    while (const std::optional<FinishedRequest> done =
               scheduler_->TakeFinished()) {
      RequestOutcome& outcome = result_.outcomes[done->id.value()];
      outcome.completed = done->status.ok();
      outcome.hit_tokens = done->costs.cached_tokens;
      outcome.preemptions = done->costs.preemptions;
      outcome.admitted = done->timing.first_scheduled - absl::UnixEpoch();
      outcome.first_token = done->timing.first_token - absl::UnixEpoch();
      outcome.finished = done->timing.finished - absl::UnixEpoch();
      result_.prompt_tokens += done->prompt_tokens;
      result_.hit_tokens += done->costs.cached_tokens;
      ++ended_;
    }
  }

  const Trace& trace_;
  const ServingOptions& options_;
  const TokenSource& tokens_;
  ReplayResult& result_;

  ManualClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<BatchScheduler> scheduler_;

  size_t next_arrived_ = 0;  // arrived, and perhaps still to be submitted
  size_t next_submit_ = 0;
  size_t ended_ = 0;
  std::vector<uint32_t> generated_;  // [requests]
  std::vector<size_t> ending_;       // requests that end with the step
  std::vector<TokenId> sampled_;
};

}  // namespace

absl::StatusOr<ReplayResult> ReplayWithScheduler(const Trace& trace,
                                                 const ServingOptions& options,
                                                 const PolicyOptions& policy,
                                                 Progress& progress) {
  PAGED_KV_ASSIGN_OR_RETURN(const TokenSource tokens,
                            TokenSource::Create(trace));
  ReplayResult result(policy.capacity_slots / policy.block_tokens *
                      policy.block_tokens);
  result.outcomes.resize(trace.requests.size());
  SchedulerRun run(trace, options, tokens, result);
  PAGED_KV_RETURN_IF_ERROR(run.Create(policy));
  while (!run.Done()) {
    PAGED_KV_RETURN_IF_ERROR(run.Step());
    progress.Update(run.ended(), trace.requests.size());
  }
  run.AddTotals();
  return result;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/concurrent_replay.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

struct Job {
  size_t request = 0;
  uint32_t prefill = 0;  // tokens to have before the next output token
  uint32_t length = 0;   // tokens in memory
  bool first_admission = true;
};

class ConcurrentRun {
 public:
  ConcurrentRun(const Trace& trace, const ServingOptions& options,
                MemoryPolicy& policy, ReplayResult& result)
      : trace_(trace), options_(options), policy_(policy), result_(result) {}

  bool Done() const {
    return running_.empty() && waiting_.empty() && Arrived() == trace_size();
  }
  size_t finished() const { return finished_; }
  absl::Duration now() const { return now_; }

  absl::Status Step() {
    TakeArrivals();
    if (running_.empty() && waiting_.empty()) return absl::OkStatus();
    work_ = StepWork();
    budget_ = options_.step_tokens;
    preempted_ = false;
    PAGED_KV_RETURN_IF_ERROR(Decode());
    PAGED_KV_RETURN_IF_ERROR(ContinuePrefills());
    PAGED_KV_RETURN_IF_ERROR(AdmitWaiting());
    if (running_.empty()) {
      return absl::InternalError(absl::StrCat("request ",
                                              waiting_.front().request,
                                              " fits but cannot be admitted"));
    }
    const absl::Duration duration = StepTime(options_.model, work_);
    now_ += duration;
    PAGED_KV_RETURN_IF_ERROR(result_.usage.Add(
        {now_, policy_.Slots(), static_cast<uint32_t>(running_.size()),
         static_cast<uint32_t>(waiting_.size())},
        duration));
    FinishJobs();
    return absl::OkStatus();
  }

 private:
  size_t trace_size() const { return trace_.requests.size(); }
  size_t Arrived() const { return next_arrival_; }
  const Request& request(const Job& job) const {
    return trace_.requests[job.request];
  }
  RequestOutcome& outcome(const Job& job) {
    return result_.outcomes[job.request];
  }

  void TakeArrivals() {
    const auto arrival = [this](size_t i) {
      return options_.ignore_arrivals ? absl::ZeroDuration()
                                      : trace_.requests[i].arrival;
    };
    if (running_.empty() && waiting_.empty() && next_arrival_ < trace_size()) {
      now_ = std::max(now_, arrival(next_arrival_));
    }
    for (; next_arrival_ < trace_size() && arrival(next_arrival_) <= now_;
         ++next_arrival_) {
      if (!policy_.CheckFits(next_arrival_).ok()) {
        ++finished_;
        continue;
      }
      Job job;
      job.request = next_arrival_;
      job.prefill = trace_.requests[next_arrival_].prompt_tokens;
      waiting_.push_back(job);
    }
  }

  // Grows running_[i] and, while that needs memory, lets the latest admitted
  // give way. False if running_[i] itself had to.
  absl::StatusOr<bool> GrowOrPreempt(size_t i, uint32_t length) {
    for (;;) {
      const absl::Status status = policy_.Grow(running_[i].request, length);
      if (status.ok()) return true;
      if (!absl::IsResourceExhausted(status)) return status;
      const bool itself = i + 1 == running_.size();
      if (itself && running_.size() == 1) {
        return absl::InternalError(absl::StrCat(
            "request ", running_[i].request, " cannot grow to ", length,
            " tokens though it runs alone: ", status.message()));
      }
      PreemptLast();
      if (itself) return false;
    }
  }

  void PreemptLast() {
    Job job = running_.back();
    running_.pop_back();
    policy_.Release(job.request);
    result_.recomputed_tokens += job.length;
    ++result_.preemptions;
    ++outcome(job).preemptions;
    job.prefill = std::max(job.prefill, job.length);
    job.length = 0;
    job.first_admission = false;
    waiting_.push_front(job);
    refused_at_available_ = 0;
    preempted_ = true;
  }

  absl::Status Decode() {
    for (size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].length < running_[i].prefill) continue;
      PAGED_KV_ASSIGN_OR_RETURN(const bool grown,
                                GrowOrPreempt(i, running_[i].length + 1));
      if (!grown) break;  // it was the last one
      Computed(running_[i], 1);
    }
    return absl::OkStatus();
  }

  absl::Status ContinuePrefills() {
    for (size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
      const Job& job = running_[i];
      if (job.length >= job.prefill) continue;
      const uint32_t chunk = std::min(budget_, job.prefill - job.length);
      if (work_.tokens > 0) {
        // The step has other work; a prompt that finds no memory can wait.
        const absl::Status status =
            policy_.Grow(job.request, job.length + chunk);
        if (absl::IsResourceExhausted(status)) break;
        PAGED_KV_RETURN_IF_ERROR(status);
      } else {
        PAGED_KV_ASSIGN_OR_RETURN(const bool grown,
                                  GrowOrPreempt(i, job.length + chunk));
        if (!grown) break;
      }
      Computed(running_[i], chunk);
    }
    return absl::OkStatus();
  }

  // Accounts for `tokens` that the step computes for the job.
  void Computed(Job& job, uint32_t tokens) {
    work_.Add(job.length, tokens);
    job.length += tokens;
    budget_ -= std::min(budget_, tokens);
  }

  uint64_t PrefillUnderWay() const {
    uint64_t tokens = 0;
    for (const Job& job : running_) {
      if (job.length < job.prefill) tokens += job.prefill - job.length;
    }
    return tokens;
  }

  absl::Status AdmitWaiting() {
    // A step that took memory back by force gives none away.
    while (!preempted_ && budget_ > 0 && !waiting_.empty() &&
           running_.size() < options_.max_running) {
      Job job = waiting_.front();
      const uint64_t available = policy_.AvailableSlots();
      if (!running_.empty()) {
        if (available <= refused_at_available_) break;  // nothing has changed
        refused_at_available_ = available;
        const uint64_t needed =
            PrefillUnderWay() + policy_.SlotsToAdmit(job.request, job.prefill);
        if (needed > available) break;
      }
      const absl::StatusOr<AdmittedTokens> tokens =
          policy_.Admit(job.request, job.prefill, budget_);
      if (absl::IsResourceExhausted(tokens.status())) break;
      if (!tokens.ok()) return tokens.status();
      refused_at_available_ = 0;
      waiting_.pop_front();
      if (job.first_admission) {
        outcome(job).admitted = now_;
        outcome(job).hit_tokens = tokens->cached;
        result_.prompt_tokens += request(job).prompt_tokens;
        result_.hit_tokens += tokens->cached;
      }
      job.length = tokens->cached;
      Computed(job, tokens->computed);
      running_.push_back(job);
    }
    return absl::OkStatus();
  }

  void FinishJobs() {
    const auto finish = [this](Job& job) {
      const Request& r = request(job);
      // The step that ends the prompt yields the first output token.
      if (job.length >= r.prompt_tokens &&
          outcome(job).first_token == absl::ZeroDuration()) {
        outcome(job).first_token = now_;
      }
      if (job.length < r.total_tokens()) return false;
      outcome(job).final_slots = policy_.Release(job.request);
      outcome(job).finished = now_;
      outcome(job).completed = true;
      ++finished_;
      return true;
    };
    running_.erase(std::remove_if(running_.begin(), running_.end(), finish),
                   running_.end());
  }

  const Trace& trace_;
  const ServingOptions& options_;
  MemoryPolicy& policy_;
  ReplayResult& result_;

  absl::Duration now_;
  size_t next_arrival_ = 0;
  size_t finished_ = 0;
  std::deque<Job> waiting_;
  std::vector<Job> running_;  // in order of admission
  // AvailableSlots() when the head of the queue was last refused; asking again
  // is not cheap for long prompts and pointless until there is more.
  uint64_t refused_at_available_ = 0;

  // Of the step being put together.
  StepWork work_;
  uint32_t budget_ = 0;
  bool preempted_ = false;
};

}  // namespace

absl::StatusOr<ReplayResult> ReplayConcurrently(const Trace& trace,
                                                const ServingOptions& options,
                                                MemoryPolicy& policy,
                                                Progress& progress) {
  ReplayResult result(policy.capacity_slots());
  result.outcomes.resize(trace.requests.size());
  ConcurrentRun run(trace, options, policy, result);
  while (!run.Done()) {
    PAGED_KV_RETURN_IF_ERROR(run.Step());
    progress.Update(run.finished(), trace.requests.size());
  }
  result.duration = run.now();
  result.evicted_blocks = policy.evicted_blocks();
  return result;
}

}  // namespace paged_kv::tool

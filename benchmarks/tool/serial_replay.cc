// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serial_replay.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// One request in an otherwise idle pool.
class SerialRun {
 public:
  SerialRun(const SerialOptions& options, MemoryPolicy& policy,
            ReplayResult& result)
      : options_(options), policy_(policy), result_(result) {}

  absl::Status Serve(size_t index, const Request& request) {
    RequestOutcome& outcome = result_.outcomes[index];
    if (!policy_.CheckFits(index).ok()) return absl::OkStatus();

    outcome.admitted = now_;
    PAGED_KV_ASSIGN_OR_RETURN(
        const AdmittedTokens tokens,
        policy_.Admit(index, request.prompt_tokens, request.prompt_tokens));
    if (tokens.cached + tokens.computed != request.prompt_tokens) {
      return absl::InternalError(
          absl::StrCat("request ", index, ": ", tokens.cached, " cached and ",
                       tokens.computed, " computed tokens for a prompt of ",
                       request.prompt_tokens));
    }
    PAGED_KV_RETURN_IF_ERROR(Step(tokens.cached, tokens.computed, 1));
    outcome.first_token = now_;

    uint32_t length = request.prompt_tokens;
    while (length < request.total_tokens()) {
      const uint32_t more = std::min(options_.decode_step_tokens,
                                     request.total_tokens() - length);
      PAGED_KV_RETURN_IF_ERROR(policy_.Grow(index, length + more));
      // One step per token, at the mean context of them.
      PAGED_KV_RETURN_IF_ERROR(Step(length + (more - 1) / 2, 1, more));
      length += more;
    }
    outcome.final_slots = policy_.Release(index);
    outcome.finished = now_;
    outcome.completed = true;
    outcome.hit_tokens = tokens.cached;
    result_.prompt_tokens += request.prompt_tokens;
    result_.hit_tokens += tokens.cached;
    return absl::OkStatus();
  }

  absl::Duration now() const { return now_; }

 private:
  // `repeats` equal steps end now, in the state that the policy is in.
  absl::Status Step(uint32_t context, uint32_t new_tokens, uint32_t repeats) {
    StepWork work;
    work.Add(context, new_tokens);
    const absl::Duration duration =
        StepTime(options_.model, work) * static_cast<int64_t>(repeats);
    now_ += duration;
    return result_.usage.Add({now_, policy_.Slots(), 1, 0}, duration);
  }

  const SerialOptions& options_;
  MemoryPolicy& policy_;
  ReplayResult& result_;
  absl::Duration now_;
};

}  // namespace

absl::StatusOr<ReplayResult> ReplaySerially(const Trace& trace,
                                            const SerialOptions& options,
                                            MemoryPolicy& policy,
                                            Progress& progress) {
  ReplayResult result(policy.capacity_slots());
  result.outcomes.resize(trace.requests.size());
  SerialRun run(options, policy, result);
  for (size_t i = 0; i < trace.requests.size(); ++i) {
    progress.Update(i, trace.requests.size());
    PAGED_KV_RETURN_IF_ERROR(run.Serve(i, trace.requests[i]));
  }
  result.duration = run.now();
  result.evicted_blocks = policy.evicted_blocks();
  return result;
}

}  // namespace paged_kv::tool

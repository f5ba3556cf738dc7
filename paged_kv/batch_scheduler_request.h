// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What goes into a scheduler and what comes out of it.

#ifndef PAGED_KV_BATCH_SCHEDULER_REQUEST_H_
#define PAGED_KV_BATCH_SCHEDULER_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "paged_kv/eviction_policy.h"
#include "paged_kv/key_extras.h"
#include "paged_kv/types.h"

namespace paged_kv {

// A request; chosen by the caller, unique among those not yet taken.
using RequestId = StrongId<struct RequestIdTag, uint64_t>;

// A prompt to be continued. Spans are borrowed until Submit() returns.
struct GenerationRequest {
  RequestId id;
  absl::Span<const TokenId> prompt;  // not empty
  // Tokens to generate per sample. 0 only fills the cache with the prompt.
  uint32_t max_output_tokens = 0;
  // Continuations to draw. The prompt is computed and stored once, for all.
  uint32_t samples = 1;
  // Larger goes first (BatchSchedulerOptions::priority_head_start).
  int32_t priority = 0;
  // A sample ends after the first of these; it is part of the output.
  absl::Span<const TokenId> stop_tokens;

  // Passed on to the cache (StepRequest).
  KeyExtras extras;
  uint32_t cache_priority = kDefaultPriority;
  bool share = true;
};

enum class FinishReason : uint8_t {
  kUnfinished,
  kMaxTokens,  // max_output_tokens were generated
  kStopToken,
  kStopped,    // BatchScheduler::Finish
  kCancelled,  // BatchScheduler::Cancel
  kFailed,     // the cache refused it for good: FinishedRequest::status
};
// "unfinished", "max_tokens", "stop_token", "stopped", "cancelled", "failed".
const char* FinishReasonName(FinishReason reason);

// absl::InfiniteFuture(): has not happened.
struct RequestTiming {
  absl::Time arrival = absl::InfiniteFuture();
  absl::Time first_scheduled = absl::InfiniteFuture();
  absl::Time first_token = absl::InfiniteFuture();
  absl::Time finished = absl::InfiniteFuture();
};

// What serving a request took, over all its samples.
struct RequestCosts {
  uint32_t cached_tokens = 0;  // of the prompt, at its first admission
  uint32_t preemptions = 0;
  uint64_t computed_tokens = 0;    // scheduled, recomputed ones included and
                                   //   drafts not
  uint64_t recomputed_tokens = 0;  // of these, a second time
  uint32_t prefix_wait_steps = 0;
  uint64_t drafted_tokens = 0;   // checked by decodes that completed
  uint64_t accepted_tokens = 0;  // of these, right
};

struct SampleResult {
  FinishReason reason = FinishReason::kUnfinished;
  std::vector<TokenId> tokens;  // prompt and output
};

struct FinishedRequest {
  RequestId id;
  absl::Status status;  // OK unless a sample kFailed
  uint32_t prompt_tokens = 0;
  std::vector<SampleResult> samples;
  RequestTiming timing;
  RequestCosts costs;

  // REQUIRES: sample < samples.size().
  absl::Span<const TokenId> Output(size_t sample) const {
    return absl::MakeConstSpan(samples[sample].tokens).subspan(prompt_tokens);
  }
};

// Where a living request stands.
struct RequestProgress {
  uint32_t samples_waiting = 0;  // in the queue, preempted ones included
  uint32_t samples_running = 0;
  uint32_t samples_ended = 0;
  RequestTiming timing;
  RequestCosts costs;
};

}  // namespace paged_kv

#endif  // PAGED_KV_BATCH_SCHEDULER_REQUEST_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_intake.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/batch_scheduler_fit.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/eviction_policy.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

absl::Status CheckForm(const GenerationRequest& request) {
  if (request.prompt.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", request.id.value(), " has an empty prompt"));
  }
  if (request.samples == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", request.id.value(), " asks for 0 samples"));
  }
  return absl::OkStatus();
}

// Tokens that a sample stores at most: the last output is never computed.
uint64_t MaxStoredTokens(const GenerationRequest& request) {
  return request.prompt.size() +
         uint64_t{std::max(request.max_output_tokens, 1u)} - 1;
}

absl::Status CheckLimits(const SchedulerState& state,
                         const GenerationRequest& request) {
  const uint64_t tokens = MaxStoredTokens(request);
  const uint32_t max_tokens = state.cache->options().max_tokens_per_sequence;
  if (tokens > max_tokens) {
    return absl::OutOfRangeError(absl::StrCat(
        "request ", request.id.value(), " stores up to ", tokens,
        " tokens: prompt ", request.prompt.size(), ", output ",
        request.max_output_tokens, "; a sequence holds ", max_tokens));
  }
  const uint32_t max_samples = state.options.max_batch_sequences;
  if (request.samples > max_samples) {
    return absl::OutOfRangeError(absl::StrCat(
        "request ", request.id.value(), " asks for ", request.samples,
        " samples, max_batch_sequences is ", max_samples));
  }
  const uint64_t in_flight = uint64_t{state.options.max_chunk_tokens} *
                             state.options.max_steps_in_flight;
  PAGED_KV_RETURN_IF_ERROR(
      CheckFitsEmptyCache(*state.cache, tokens, in_flight));
  // Behind the first output, which the prompt's step samples, come decodes.
  if (!state.on_device || request.max_output_tokens < 2) {
    return absl::OkStatus();
  }
  return CheckFitsEmptyDevice(*state.cache, tokens, in_flight,
                              request.samples > 1);
}

// What only the cache can say of a request.
absl::Status CheckKeys(const SchedulerState& state,
                       const GenerationRequest& request) {
  if (request.cache_priority >= kPriorities) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", request.id.value(), ": cache_priority is ",
                     request.cache_priority, ", must be below ", kPriorities));
  }
  return state.cache->Lookup(request.prompt, request.extras).status();
}

}  // namespace

absl::Status SubmitRequest(SchedulerState* state,
                           const GenerationRequest& request) {
  PAGED_KV_RETURN_IF_ERROR(CheckForm(request));
  PAGED_KV_RETURN_IF_ERROR(state->requests.CheckRoomFor(request.id));
  PAGED_KV_RETURN_IF_ERROR(CheckLimits(*state, request));
  PAGED_KV_RETURN_IF_ERROR(CheckKeys(*state, request));

  const uint32_t slot = state->requests.Insert(request);
  RequestState& stored = state->requests.at(slot);
  stored.timing.arrival = state->Now();
  stored.rank =
      Rank::Make(request.priority, stored.timing.arrival, ++state->last_number,
                 state->options.priority_head_start);
  ++state->stats.submitted;
  EnqueueSample(state, {slot, 0});
  return absl::OkStatus();
}

}  // namespace paged_kv::internal

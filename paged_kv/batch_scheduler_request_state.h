// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a scheduler knows of a request, and the arithmetic of its progress.

#ifndef PAGED_KV_BATCH_SCHEDULER_REQUEST_STATE_H_
#define PAGED_KV_BATCH_SCHEDULER_REQUEST_STATE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_request.h"
#include "paged_kv/key_extras.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// A prefix that a waiting sample waits for.
struct AwaitedPrefix {
  SampleRef leader;  // who computes it
  uint64_t leader_generation = 0;
  uint32_t tokens = 0;  // of the prefix; 0: waits for none
};

// One continuation of a prompt. Until the prompt is computed the first sample
// stands for all, and the others are unborn.
struct SampleState {
  enum class Phase : uint8_t { kUnborn, kWaiting, kRunning, kEnded };
  enum class Place : uint8_t { kHost, kArriving, kDevice };

  Phase phase = Phase::kUnborn;
  FinishReason reason = FinishReason::kUnfinished;

  // Prompt and output with known values; room for all is reserved.
  std::vector<TokenId> tokens;

  // kRunning: its sequence in the cache and how far that is.
  SequenceId sequence;
  uint32_t scheduled = 0;  // tokens computed or in flight
  uint32_t written = 0;    // of these, whose step completed
  uint32_t known = 0;      // values that the cache has; a prompt's run ahead

  // kRunning: where its sequence is at home; kArriving: on the device, when its
  // transfers have ended.
  Place place = Place::kHost;
  bool leaving = false;          // the device, once nothing of it is in flight
  bool lacks_pages = false;      // of the device: the last step left it out
  bool swapped_out = false;      // was on the device and had to go
  uint32_t swap_failures = 0;    // in a row
  bool distrusts_cache = false;  // what the cache has of it cannot be fetched

  // Items of this sample in steps in flight, and outputs that these sample.
  // A sample that is preempted in flight waits until they have arrived.
  uint32_t items_in_flight = 0;
  uint32_t outputs_in_flight = 0;

  // Guesses of the next outputs; gone with the next output. Room for all is
  // reserved. While a step checks some of them nothing else of the sample can
  // be scheduled, since nobody knows how long it will be.
  std::vector<TokenId> drafts;
  uint32_t drafts_in_flight = 0;

  uint32_t computed_before = 0;  // tokens whose K/V it once had
  uint32_t preemptions = 0;
  uint32_t stalls_in_a_row = 0;
  uint32_t prefix_wait_steps = 0;
  AwaitedPrefix awaited;

  // Tokens with a place: known ones and those being sampled.
  uint32_t Length() const {
    return static_cast<uint32_t>(tokens.size()) + outputs_in_flight;
  }
  // Tokens whose K/V nobody has yet scheduled.
  uint32_t Pending() const { return Length() - scheduled; }
};

struct RequestState {
  RequestId id;
  uint64_t generation = 0;  // of the slot; changes whenever it is reused
  bool in_use = false;

  uint32_t prompt_tokens = 0;
  uint32_t max_output_tokens = 0;
  uint32_t cache_priority = 0;
  bool share = true;
  std::vector<TokenId> stop_tokens;
  std::vector<KeyExtra> extras;  // values lie in extra_bytes
  std::string extra_bytes;

  Rank rank;  // of sample 0
  std::vector<SampleState> samples;
  // The prompt is computed and every sample stands for itself.
  bool forked = false;
  uint32_t ended_samples = 0;

  absl::Status status;
  RequestTiming timing;
  RequestCosts costs;

  uint32_t num_samples() const { return static_cast<uint32_t>(samples.size()); }
  bool finished() const { return ended_samples == samples.size(); }

  Rank RankOf(uint32_t sample) const {
    Rank result = rank;
    result.sample = sample;
    return result;
  }

  // Tokens that a sample stores at most: the last output is never computed.
  uint32_t MaxStoredTokens() const {
    return prompt_tokens + std::max(max_output_tokens, 1u) - 1;
  }

  // Sequences that a sample is or will become.
  uint32_t Seats() const { return forked ? 1 : num_samples(); }

  // Every output has a place, known or in flight.
  bool AllOutputsPlanned(const SampleState& s) const {
    return s.Length() - prompt_tokens == max_output_tokens;
  }

  // A step could take it on. The first sample of several pauses at the end of
  // the prompt: a fork needs the prompt written and nothing behind it.
  bool CanRun(const SampleState& s) const {
    if (s.phase != SampleState::Phase::kRunning || s.Pending() == 0) {
      return false;
    }
    if (!forked && s.outputs_in_flight > 0) return false;
    if (s.drafts_in_flight > 0) return false;
    return max_output_tokens == 0 || !AllOutputsPlanned(s);
  }

  // Running, and ends for certain with a step that is in flight.
  bool EndsInFlight(const SampleState& s) const {
    return s.phase == SampleState::Phase::kRunning && s.items_in_flight > 0 &&
           AllOutputsPlanned(s) && (max_output_tokens > 0 || s.Pending() == 0);
  }

  // Tokens to sample behind the last token of a sample.
  uint32_t OutputsAtEnd() const { return max_output_tokens == 0 ? 0 : Seats(); }
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_REQUEST_STATE_H_

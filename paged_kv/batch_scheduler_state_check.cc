// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_state_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

using Phase = SampleState::Phase;

uint64_t Key(SampleRef ref) { return uint64_t{ref.request} << 32 | ref.sample; }

// Context for an error of one sample.
template <typename... Args>
absl::Status Broken(const RequestState& request, uint32_t sample,
                    const Args&... args) {
  return absl::InternalError(absl::StrCat("request ", request.id.value(),
                                          " sample ", sample, ": ", args...));
}

absl::Status CheckFinishedQueue(const SchedulerState& state) {
  absl::flat_hash_set<uint32_t> queued;
  for (size_t i = 0; i < state.finished.size(); ++i) {
    const uint32_t slot = state.finished.at(i);
    if (!queued.insert(slot).second) {
      return absl::InternalError(
          absl::StrCat("slot ", slot, " finished twice"));
    }
    if (!state.requests.at(slot).in_use) {
      return absl::InternalError(
          absl::StrCat("finished slot ", slot, " is free"));
    }
  }
  for (uint32_t slot = 0; slot < state.requests.slots(); ++slot) {
    const RequestState& request = state.requests.at(slot);
    if (!request.in_use) continue;
    const auto ended = std::count_if(
        request.samples.begin(), request.samples.end(),
        [](const SampleState& s) { return s.phase == Phase::kEnded; });
    if (static_cast<uint32_t>(ended) != request.ended_samples) {
      return Broken(request, 0, ended, " samples ended, ",
                    request.ended_samples, " counted");
    }
    if (request.finished() != queued.contains(slot)) {
      return Broken(request, 0, "finished is ", request.finished(),
                    ", queued is ", queued.contains(slot));
    }
  }
  return absl::OkStatus();
}

// `entries` are sorted and are exactly the samples in `phase`.
template <typename Entries>
absl::Status CheckMembers(const SchedulerState& state, const Entries& entries,
                          Phase phase, const char* name) {
  size_t in_phase = 0;
  for (uint32_t slot = 0; slot < state.requests.slots(); ++slot) {
    const RequestState& request = state.requests.at(slot);
    if (!request.in_use) continue;
    for (const SampleState& sample : request.samples) {
      in_phase += sample.phase == phase ? 1 : 0;
    }
  }
  if (in_phase != entries.size()) {
    return absl::InternalError(absl::StrCat(in_phase, " samples are ", name,
                                            ", ", entries.size(), " listed"));
  }
  const RankedSample* last = nullptr;
  for (const RankedSample& entry : entries) {
    const RequestState& request = state.requests.at(entry.ref.request);
    if (!request.in_use || entry.ref.sample >= request.num_samples() ||
        request.samples[entry.ref.sample].phase != phase) {
      return absl::InternalError(
          absl::StrCat("slot ", entry.ref.request, " sample ", entry.ref.sample,
                       " is listed as ", name, " and is not"));
    }
    const RankedSample now = state.requests.Ranked(entry.ref);
    if (now < entry || entry < now) {
      return Broken(request, entry.ref.sample, "its rank changed");
    }
    if (last != nullptr && !(*last < entry)) {
      return Broken(request, entry.ref.sample, "out of order in ", name);
    }
    last = &entry;
  }
  return absl::OkStatus();
}

absl::Status CheckSeats(const SchedulerState& state) {
  uint32_t seats = 0;
  for (const RankedSample& entry : state.running) {
    seats += state.requests.at(entry.ref.request).Seats();
  }
  if (seats > state.options.max_batch_sequences) {
    return absl::InternalError(absl::StrCat(seats, " seats taken of ",
                                            state.options.max_batch_sequences));
  }
  return absl::OkStatus();
}

// What the cache says of a running sample.
absl::Status CheckSequence(const SchedulerState& state,
                           const RequestState& request, uint32_t index) {
  const SampleState& sample = request.samples[index];
  PAGED_KV_ASSIGN_OR_RETURN(const SequenceInfo info,
                            state.cache->Describe(sample.sequence));
  if (info.tokens.value() != sample.scheduled ||
      info.written.value() != sample.written ||
      info.known.value() != sample.known) {
    return Broken(request, index, "scheduled, written, known are ",
                  sample.scheduled, ", ", sample.written, ", ", sample.known,
                  ", in the cache ", info.tokens.value(), ", ",
                  info.written.value(), ", ", info.known.value());
  }
  if (info.lookahead.value() != sample.drafts_in_flight) {
    return Broken(request, index, sample.drafts_in_flight,
                  " drafts in flight, in the cache ", info.lookahead.value());
  }
  PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const TokenId> values,
                            state.cache->Tokens(sample.sequence));
  if (values.size() > sample.tokens.size() ||
      !std::equal(values.begin(), values.end(), sample.tokens.begin())) {
    return Broken(request, index, "the cache has other tokens");
  }
  return absl::OkStatus();
}

// Where the cache has a running sample's K/V.
absl::Status CheckPlace(const SchedulerState& state,
                        const RequestState& request, uint32_t index) {
  using Place = SampleState::Place;
  const SampleState& sample = request.samples[index];
  PAGED_KV_ASSIGN_OR_RETURN(const SequenceResidency residency,
                            state.cache->Residency(sample.sequence));
  const bool home_on_device = residency.home == Tier::kDevice;
  if (sample.place == Place::kDevice &&
      (!home_on_device ||
       residency.moving + residency.missing > BlockCount(0))) {
    return Broken(request, index, "should be on the device, but is not: ",
                  residency.moving.value(), " blocks on their way, ",
                  residency.missing.value(), " missing");
  }
  if (sample.place == Place::kHost && home_on_device && state.on_device) {
    return Broken(request, index, "should be in host memory");
  }
  if (sample.place == Place::kArriving && sample.items_in_flight > 0) {
    return Broken(request, index, "runs before it has arrived");
  }
  if (sample.place == Place::kHost && sample.leaving) {
    return Broken(request, index, "leaves the device, but is not there");
  }
  return absl::OkStatus();
}

absl::Status CheckTransfers(const SchedulerState& state) {
  size_t all = 0, for_room = 0;
  for (const TransferLedger::Entry& entry : state.transfers.entries()) {
    if (entry.id == TransferId(0)) continue;
    ++all;
    for_room += entry.for_room ? 1 : 0;
  }
  if (all == state.transfers.size() && for_room == state.transfers.for_room()) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      all, " transfers in flight, ", for_room, " of them for room; counted ",
      state.transfers.size(), " and ", state.transfers.for_room()));
}

absl::Status CheckSample(const SchedulerState& state,
                         const RequestState& request, uint32_t index) {
  const SampleState& sample = request.samples[index];
  if (sample.tokens.size() < request.prompt_tokens ||
      sample.Length() - request.prompt_tokens > request.max_output_tokens) {
    // An ended sample's tokens in flight are to be ignored.
    if (sample.phase != Phase::kEnded) {
      return Broken(request, index, sample.tokens.size(), " tokens and ",
                    sample.outputs_in_flight, " in flight; prompt ",
                    request.prompt_tokens, ", outputs at most ",
                    request.max_output_tokens);
    }
  }
  if (sample.drafts.size() > state.options.max_draft_tokens) {
    return Broken(request, index, sample.drafts.size(), " drafts, at most ",
                  state.options.max_draft_tokens);
  }
  if (sample.phase == Phase::kRunning) {
    if (sample.written > sample.scheduled ||
        sample.scheduled > sample.Length()) {
      return Broken(request, index, "written ", sample.written, ", scheduled ",
                    sample.scheduled, " of ", sample.Length());
    }
    PAGED_KV_RETURN_IF_ERROR(CheckPlace(state, request, index));
    return CheckSequence(state, request, index);
  }
  if (sample.place != SampleState::Place::kHost || sample.leaving ||
      sample.swapped_out) {
    return Broken(request, index, "has no sequence, but a place");
  }
  if (sample.scheduled != 0 || sample.written != 0 || sample.known != 0) {
    return Broken(request, index, "has no sequence, but ", sample.scheduled,
                  " tokens scheduled");
  }
  return absl::OkStatus();
}

absl::Status CheckInFlight(const SchedulerState& state) {
  struct Counts {
    uint32_t items = 0;
    uint32_t outputs = 0;
    size_t drafts = 0;
  };
  absl::flat_hash_map<uint64_t, Counts> counts;
  for (size_t i = 0; i < state.steps.size(); ++i) {
    const StepInFlight& step = state.steps.at(i);
    for (size_t j = 0; j < step.items.size(); ++j) {
      const ItemOwner& owner = step.owners[j];
      const RequestState& request = state.requests.at(owner.ref.request);
      if (request.generation != owner.generation) continue;
      Counts& of_sample = counts[Key(owner.ref)];
      ++of_sample.items;
      of_sample.outputs += step.items[j].outputs > 0 ? 1 : 0;
      of_sample.drafts += step.items[j].drafts.size();
    }
  }
  for (uint32_t slot = 0; slot < state.requests.slots(); ++slot) {
    const RequestState& request = state.requests.at(slot);
    if (!request.in_use) continue;
    for (uint32_t i = 0; i < request.num_samples(); ++i) {
      const SampleState& sample = request.samples[i];
      const Counts found = counts[Key({slot, i})];
      if (found.items != sample.items_in_flight ||
          found.outputs != sample.outputs_in_flight ||
          found.drafts != sample.drafts_in_flight) {
        return Broken(request, i, sample.items_in_flight, " items, ",
                      sample.outputs_in_flight, " outputs and ",
                      sample.drafts_in_flight, " drafts in flight; steps have ",
                      found.items, ", ", found.outputs, " and ", found.drafts);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckState(const SchedulerState& state) {
  PAGED_KV_RETURN_IF_ERROR(state.requests.CheckInvariants());
  PAGED_KV_RETURN_IF_ERROR(CheckFinishedQueue(state));
  PAGED_KV_RETURN_IF_ERROR(
      CheckMembers(state, state.waiting, Phase::kWaiting, "waiting"));
  PAGED_KV_RETURN_IF_ERROR(
      CheckMembers(state, state.running, Phase::kRunning, "running"));
  PAGED_KV_RETURN_IF_ERROR(CheckSeats(state));
  PAGED_KV_RETURN_IF_ERROR(CheckInFlight(state));
  PAGED_KV_RETURN_IF_ERROR(CheckTransfers(state));
  for (uint32_t slot = 0; slot < state.requests.slots(); ++slot) {
    const RequestState& request = state.requests.at(slot);
    if (!request.in_use) continue;
    for (uint32_t i = 0; i < request.num_samples(); ++i) {
      PAGED_KV_RETURN_IF_ERROR(CheckSample(state, request, i));
    }
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal

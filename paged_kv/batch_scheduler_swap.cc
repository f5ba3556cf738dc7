// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_swap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

using Phase = SampleState::Phase;
using Place = SampleState::Place;

absl::Status Annotated(const SchedulerState& state, SampleRef ref,
                       const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrCat("request ", state.requests.at(ref.request).id.value(),
                   " sample ", ref.sample,
                   " cannot go on: ", status.message()));
}

// Whether the steps of a sample run in host memory: all but those of one that
// waits for the device.
bool ComputesInHostMemory(const SchedulerState& state, SampleRef ref) {
  const SampleState& sample = state.requests.at(ref);
  return sample.place == Place::kHost &&
         (sample.items_in_flight > 0 || !WantsDevice(state, ref));
}

bool PreferRecompute(const SchedulerState& state, const SampleState& sample,
                     const SequenceResidency& residency) {
  if (sample.distrusts_cache) return true;
  // Down what host memory lacks, and later all of it up.
  const uint64_t moved =
      residency.device_only_bytes.value() + residency.bytes.value();
  const uint64_t rate = state.options.recompute_token_bytes;
  return rate > 0 && moved > 0 && sample.scheduled <= (moved - 1) / rate;
}

// Downloads again what a sample that computes in host memory needs there. Those
// on whom no step in flight waits recompute instead, in the end.
void RetryDownloads(SchedulerState* state) {
  std::optional<SampleRef> hopeless;
  for (const RankedSample& entry : state->running) {
    SampleState& sample = state->requests.at(entry.ref);
    if (!ComputesInHostMemory(*state, entry.ref)) continue;
    const auto residency = state->cache->Residency(sample.sequence);
    if (!residency.ok() || residency->missing == BlockCount(0)) continue;
    if (++sample.swap_failures > state->options.max_transfer_failures &&
        sample.items_in_flight == 0 && !hopeless.has_value()) {
      hopeless = entry.ref;
      continue;
    }
    const auto transfers =
        state->cache->SwapOut(absl::MakeConstSpan(&sample.sequence, 1));
    if (transfers.ok()) state->transfers.Add(*transfers, /*for_room=*/false);
  }
  if (hopeless.has_value()) PreemptSample(state, *hopeless);
}

// The end of the downloads that somebody waits for: whether any succeeded.
void CountRound(SchedulerState* state, bool moved) {
  state->round_moved = state->round_moved || moved;
  if (state->transfers.for_room() > 0) return;
  state->failed_rounds = state->round_moved ? 0 : state->failed_rounds + 1;
  state->round_moved = false;
}

// One of SettleArrivals(); true if the request was failed.
absl::StatusOr<bool> Settle(SchedulerState* state, SampleRef ref) {
  SampleState& sample = state->requests.at(ref);
  const auto residency = state->cache->Residency(sample.sequence);
  if (!residency.ok()) return Annotated(*state, ref, residency.status());
  const bool on_device = residency->home == Tier::kDevice;
  if (on_device && residency->missing == BlockCount(0)) {
    if (residency->moving > BlockCount(0)) return false;
    sample.place = Place::kDevice;
    sample.swapped_out = false;
    sample.swap_failures = 0;
    ++state->stats.swap_ins;
    return false;
  }
  // Waiting, it may not keep others from the pages that it has got.
  const auto transfers =
      state->cache->SwapOut(absl::MakeConstSpan(&sample.sequence, 1));
  if (!transfers.ok()) return Annotated(*state, ref, transfers.status());
  state->transfers.Add(*transfers, /*for_room=*/true);
  sample.place = Place::kHost;
  if (++sample.swap_failures <= state->options.max_transfer_failures) {
    return false;
  }
  FailRequest(
      state, ref.request,
      absl::UnavailableError(absl::StrCat(
          "sample ", ref.sample, " could not be moved to the device ",
          sample.swap_failures,
          " times in a row (BatchSchedulerOptions::max_transfer_failures)")));
  return true;
}

}  // namespace

bool WantsDevice(const SchedulerState& state, SampleRef ref) {
  if (!state.on_device) return false;
  const RequestState& request = state.requests.at(ref.request);
  const SampleState& sample = request.samples[ref.sample];
  return request.CanRun(sample) && sample.Pending() == 1 &&
         sample.scheduled >= request.prompt_tokens;
}

absl::Status SwapSampleIn(SchedulerState* state, SampleRef ref) {
  SampleState& sample = state->requests.at(ref);
  PAGED_KV_CHECK(sample.place == Place::kHost);
  PAGED_KV_CHECK(sample.items_in_flight == 0);
  PAGED_KV_ASSIGN_OR_RETURN(
      const absl::Span<const TierTransfer> transfers,
      state->cache->SwapIn(absl::MakeConstSpan(&sample.sequence, 1)));
  state->transfers.Add(transfers, /*for_room=*/false);
  sample.place = Place::kArriving;
  sample.leaving = false;
  return Settle(state, ref).status();
}

absl::Status SettleArrivals(SchedulerState* state) {
  if (!state->transfers_ended) return absl::OkStatus();
  for (size_t i = 0; i < state->running.size(); ++i) {
    const SampleRef ref = state->running.at(i).ref;
    if (state->requests.at(ref).place != Place::kArriving) continue;
    PAGED_KV_ASSIGN_OR_RETURN(const bool failed, Settle(state, ref));
    if (failed) i = static_cast<size_t>(-1);  // others have moved up
  }
  state->transfers_ended = false;
  return absl::OkStatus();
}

void LeaveDevice(SchedulerState* state, SampleRef ref) {
  SampleState& sample = state->requests.at(ref);
  PAGED_KV_CHECK(sample.phase == Phase::kRunning);
  PAGED_KV_CHECK(sample.place != Place::kHost);
  PAGED_KV_CHECK(sample.items_in_flight == 0);
  state->device_changed = true;
  const auto residency = state->cache->Residency(sample.sequence);
  if (!residency.ok() || PreferRecompute(*state, sample, *residency)) {
    PreemptSample(state, ref);
    return;
  }
  const auto transfers =
      state->cache->SwapOut(absl::MakeConstSpan(&sample.sequence, 1));
  if (!transfers.ok()) {  // others have a step in flight for it
    PreemptSample(state, ref);
    return;
  }
  state->transfers.Add(*transfers, /*for_room=*/true);
  sample.place = Place::kHost;
  sample.leaving = false;
  sample.lacks_pages = false;
  sample.swapped_out = true;
  sample.stalls_in_a_row = 0;
  ++state->stats.swap_outs;
  CountPreemption(state, ref);
}

absl::Status EndTransfer(SchedulerState* state, TransferId id, bool moved) {
  TransferLedger::Entry* found = state->transfers.Find(id);
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("no transfer ", id.value(),
                                            " of the scheduler is in flight"));
  }
  if (!found->taken) {
    return absl::FailedPreconditionError(
        absl::StrCat("transfer ", id.value(),
                     " cannot have ended: TakeTransfers() has not given it"));
  }
  const TransferLedger::Entry entry = *found;
  const absl::Status status = state->cache->FinishTransfer(id, moved);
  state->transfers.Remove(found);
  state->transfers_ended = true;
  state->device_open = true;
  state->admission_open = true;  // blocks may have waited for it
  if (entry.for_room) CountRound(state, moved);
  if (!status.ok()) return status;
  if (!moved) {
    ++state->stats.failed_transfers;
    if (entry.download) RetryDownloads(state);
  } else {
    ++(entry.download ? state->stats.pages_out : state->stats.pages_in);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IsReadyToRun(const SchedulerState& state, StepId id) {
  for (size_t i = 0; i < state.steps.size(); ++i) {
    const StepInFlight& step = state.steps.at(i);
    if (step.id != id) continue;
    if (state.transfers.empty()) return true;
    for (const WorkItem& item : step.items) {
      const auto residency = state.cache->Residency(item.sequence);
      if (!residency.ok()) continue;  // ended meanwhile: nobody wants it
      if (residency->moving + residency->missing > BlockCount(0)) return false;
    }
    return true;
  }
  return absl::NotFoundError(
      absl::StrCat("step ", id.value(), " is not in flight"));
}

}  // namespace paged_kv::internal

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_loss.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

using Place = SampleState::Place;

absl::Status CheckNothingIsUnderWay(const SchedulerState& state) {
  if (!state.on_device) {
    return absl::FailedPreconditionError(
        "decodes run in host memory (BatchSchedulerOptions::decode_tier)");
  }
  if (!state.steps.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        state.steps.size(),
        " steps are in flight: complete or abandon them, then report what the "
        "device has lost"));
  }
  const auto entries = state.transfers.entries();
  const auto taken = std::count_if(
      entries.begin(), entries.end(),
      [](const TransferLedger::Entry& entry) { return entry.taken; });
  if (taken == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      taken,
      " transfers were taken and are in flight: report how they ended, then "
      "what the device has lost"));
}

// Nobody has begun to carry them out.
void CallOffTransfers(SchedulerState* state) {
  for (const TransferLedger::Entry& entry : state->transfers.entries()) {
    if (entry.id == TransferId(0)) continue;
    // Unknown only if somebody has reported it to the cache himself.
    state->cache->FinishTransfer(entry.id, /*moved=*/false).IgnoreError();
    ++state->stats.failed_transfers;
  }
  state->transfers.Clear();
  state->round_moved = false;
  state->failed_rounds = 0;
}

}  // namespace

absl::StatusOr<DeviceLoss> LoseDevice(SchedulerState* state) {
  PAGED_KV_RETURN_IF_ERROR(CheckNothingIsUnderWay(*state));
  CallOffTransfers(state);
  // Not to be taken for arrivals of which some have failed.
  state->transfers_ended = true;
  PAGED_KV_ASSIGN_OR_RETURN(DeviceLoss loss, state->cache->LoseDevice());
  const absl::flat_hash_set<SequenceId> lost(loss.sequences.begin(),
                                             loss.sequences.end());
  std::vector<SampleRef> recompute;
  for (const RankedSample& entry : state->running) {
    SampleState& sample = state->requests.at(entry.ref);
    if (lost.contains(sample.sequence)) recompute.push_back(entry.ref);
    sample.swapped_out |= sample.place == Place::kDevice;
    sample.place = Place::kHost;
    sample.leaving = false;
    sample.lacks_pages = false;
    sample.stalls_in_a_row = 0;
  }
  for (const SampleRef ref : recompute) PreemptSample(state, ref);
  state->transfers_ended = false;
  state->pages_when_closed = 0;
  NoteRelease(state);
  ++state->stats.device_losses;
  return loss;
}

}  // namespace paged_kv::internal

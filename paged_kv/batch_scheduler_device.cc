// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_device.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_admission.h"
#include "paged_kv/batch_scheduler_fit.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/batch_scheduler_swap.h"
#include "paged_kv/shortage.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

using Place = SampleState::Place;

// Pages of each split written back at a time: enough for one packed transfer,
// few enough not to delay whoever waits for the first of them.
constexpr uint32_t kWriteBackPages = 16;
// Steps that a sample waits for pages which steps in flight still read.
constexpr uint32_t kMaxPatience = 4;

struct DeviceCounts {
  uint64_t available = 0;
  uint64_t moving = 0;
  uint64_t quarantined = 0;
  uint64_t dirty = 0;
};

DeviceCounts CountDevice(const SchedulerState& state) {
  DeviceCounts counts;
  const CacheStats stats = state.cache->Stats();
  for (const DevicePoolStats& pool : stats.device_pools) {
    counts.available += pool.free.value() + pool.clean.value();
    counts.moving += pool.moving.value();
    counts.quarantined += pool.quarantined.value();
    counts.dirty += pool.dirty.value();
  }
  return counts;
}

bool AnyoneElseOnDevice(const SchedulerState& state, SampleRef ref) {
  return std::any_of(state.running.begin(), state.running.end(),
                     [&](const RankedSample& entry) {
                       return !(entry.ref == ref) &&
                              state.requests.at(entry.ref).place !=
                                  Place::kHost;
                     });
}

// Blocks of `group` by which a sample grows within `tokens` tokens.
uint64_t GrowthBlocks(const SchedulerState& state, SampleRef ref,
                      const LayerGroup& group, uint32_t tokens) {
  const RequestState& request = state.requests.at(ref.request);
  const uint32_t scheduled = request.samples[ref.sample].scheduled;
  const uint32_t left = request.MaxStoredTokens() -
                        std::min(scheduled, request.MaxStoredTokens());
  const uint64_t growth = std::min(tokens, left);
  const uint64_t block_tokens = group.shape.block_tokens;
  const uint64_t blocks = (growth + block_tokens - 1) / block_tokens;
  // Behind a window as many are released.
  return group.window > 0 ? std::min<uint64_t>(blocks, 1) : blocks;
}

// Pages of each split to be left for the growth of all on the device, `ref`
// included, when that one joins them.
BlockCount Headroom(const SchedulerState& state, SampleRef ref) {
  const uint32_t tokens =
      GrowthReserveTokens(state.options, state.requests.at(ref).preemptions);
  const std::vector<LayerGroup>& groups = state.cache->options().groups;
  uint64_t most = 0;
  for (const LayerGroup& of_pool : groups) {
    uint64_t blocks = 0;
    for (const LayerGroup& group : groups) {
      if (!ShareOnePool(group.shape, of_pool.shape)) continue;
      for (const RankedSample& entry : state.running) {
        if (entry.ref == ref ||
            state.requests.at(entry.ref).place != Place::kHost) {
          blocks += GrowthBlocks(state, entry.ref, group, tokens);
        }
      }
    }
    most = std::max(most, blocks);
  }
  const uint64_t splits = state.cache->options().device.splits;
  return BlockCount(static_cast<uint32_t>(
      std::min<uint64_t>((most + splits - 1) / splits, UINT32_MAX / 2)));
}

// Where a sample that should move to the device found room or did not.
enum class Entry : uint8_t { kIn, kGone, kNotNow };

absl::StatusOr<Entry> TryToEnter(SchedulerState* state,
                                 const RankedSample& entry) {
  for (;;) {
    const SampleState& sample = state->requests.at(entry.ref);
    const bool alone = !AnyoneElseOnDevice(*state, entry.ref);
    const BlockCount headroom =
        alone ? BlockCount(0) : Headroom(*state, entry.ref);
    absl::Status room = state->cache->CheckSwapIn(
        absl::MakeConstSpan(&sample.sequence, 1), headroom);
    if (room.ok()) room = SwapSampleIn(state, entry.ref);
    if (room.ok()) return Entry::kIn;
    if (absl::IsOutOfRange(room) && alone) {
      FailRequest(state, entry.ref.request, room);
      return Entry::kGone;
    }
    if (!absl::IsOutOfRange(room) &&
        ShortageOf(room) != Shortage::kDevicePages) {
      return absl::Status(
          room.code(),
          absl::StrCat(
              "request ", state->requests.at(entry.ref.request).id.value(),
              " sample ", entry.ref.sample, " cannot go on: ", room.message()));
    }
    const Relief relief = MakeDeviceRoom(state, entry);
    if (relief.kind == Relief::Kind::kNow) {
      if (state->requests.at(entry.ref).phase != SampleState::Phase::kRunning) {
        return Entry::kGone;
      }
      continue;
    }
    // Until something changes, asking again would only repeat the answer.
    state->device_open = relief.kind == Relief::Kind::kLater;
    return Entry::kNotNow;
  }
}

bool IsCandidate(const SchedulerState& state, SampleRef ref) {
  const SampleState& sample = state.requests.at(ref);
  return sample.place == Place::kHost && sample.items_in_flight == 0 &&
         WantsDevice(state, ref);
}

absl::Status BringIn(SchedulerState* state) {
  for (size_t i = 0; i < state->running.size(); ++i) {
    const RankedSample entry = state->running.at(i);
    // What there is comes to those on the device first.
    if (state->requests.at(entry.ref).lacks_pages) return absl::OkStatus();
    if (!IsCandidate(*state, entry.ref)) continue;
    if (!state->device_open && entry.ref == state->refused &&
        CountDevice(*state).available <= state->pages_when_closed) {
      return absl::OkStatus();
    }
    PAGED_KV_ASSIGN_OR_RETURN(const Entry outcome, TryToEnter(state, entry));
    if (outcome == Entry::kNotNow) {
      state->refused = entry.ref;
      state->pages_when_closed = CountDevice(*state).available;
      return absl::OkStatus();
    }
    state->device_open = true;
    // Victims were worse and come later; a request that is gone is not there.
    if (outcome == Entry::kGone) i = static_cast<size_t>(-1);
  }
  return absl::OkStatus();
}

void TakeOffLeaving(SchedulerState* state) {
  for (size_t i = state->running.size(); i-- > 0;) {
    const SampleRef ref = state->running.at(i).ref;
    const SampleState& sample = state->requests.at(ref);
    if (!sample.leaving || sample.items_in_flight > 0) continue;
    LeaveDevice(state, ref);
    state->device_open = true;
  }
}

// The worst-ranked sample on the device, if it is worse than `beneficiary`.
std::optional<SampleRef> WorstOnDevice(const SchedulerState& state,
                                       const RankedSample& beneficiary) {
  for (size_t i = state.running.size(); i-- > 0;) {
    const RankedSample& entry = state.running.at(i);
    if (!(beneficiary < entry)) break;
    if (state.requests.at(entry.ref).place != Place::kHost) return entry.ref;
  }
  return std::nullopt;
}

// Whether pages will become available without anybody leaving.
bool PagesComeBack(const SchedulerState& state, const SampleState& waiting,
                   const DeviceCounts& counts) {
  if (state.transfers.for_room() > 0) return true;
  if (counts.moving > 0 && !state.transfers.empty()) return true;
  for (const RankedSample& entry : state.running) {
    if (state.requests.at(entry.ref).leaving) return true;
  }
  return counts.quarantined > 0 && !state.steps.empty() &&
         waiting.stalls_in_a_row < kMaxPatience;
}

}  // namespace

absl::Status ServeDevice(SchedulerState* state) {
  if (!state->on_device) return absl::OkStatus();
  PAGED_KV_RETURN_IF_ERROR(SettleArrivals(state));
  TakeOffLeaving(state);
  return BringIn(state);
}

Relief MakeDeviceRoom(SchedulerState* state, const RankedSample& beneficiary) {
  SampleState& sample = state->requests.at(beneficiary.ref);
  const DeviceCounts counts = CountDevice(*state);
  if (PagesComeBack(*state, sample, counts)) {
    return {Relief::Kind::kLater, std::nullopt};
  }
  if (state->failed_rounds > state->options.max_transfer_failures) {
    state->failed_rounds = 0;
    state->device_changed = true;
    FailRequest(state, beneficiary.ref.request,
                absl::UnavailableError(absl::StrCat(
                    "no room on the device: nothing could be written back ",
                    state->options.max_transfer_failures + 1,
                    " times in a row "
                    "(BatchSchedulerOptions::max_transfer_failures)")));
    return {Relief::Kind::kNow, beneficiary.ref};
  }
  if (counts.dirty > 0) {
    const auto transfers = state->cache->WriteBack(BlockCount(kWriteBackPages));
    if (transfers.ok() && !transfers->empty()) {
      state->transfers.Add(*transfers, /*for_room=*/true);
      return {Relief::Kind::kLater, std::nullopt};
    }
  }
  const std::optional<SampleRef> victim = WorstOnDevice(*state, beneficiary);
  if (!victim.has_value()) return {Relief::Kind::kNone, std::nullopt};
  sample.stalls_in_a_row = 0;
  SampleState& leaver = state->requests.at(*victim);
  if (leaver.items_in_flight > 0) {
    leaver.leaving = true;
    return {Relief::Kind::kLater, victim};
  }
  LeaveDevice(state, *victim);
  const bool now = state->steps.empty() && state->transfers.for_room() == 0;
  return {now ? Relief::Kind::kNow : Relief::Kind::kLater, victim};
}

}  // namespace paged_kv::internal

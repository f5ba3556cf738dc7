// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_admission.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/batch_scheduler_prefix_wait.h"
#include "paged_kv/shortage.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

// Waiting samples looked at per step, so that a long queue behind one awaited
// prefix does not make a step slow.
constexpr size_t kMaxScan = 256;

uint32_t SeatsTaken(const SchedulerState& state) {
  uint32_t seats = 0;
  for (const RankedSample& entry : state.running) {
    seats += state.requests.at(entry.ref.request).Seats();
  }
  return seats;
}

// Adds those waiting samples that could join but for blocks.
class CandidateScan {
 public:
  CandidateScan(SchedulerState* state, StepDraft* draft, uint32_t token_budget)
      : state_(state),
        draft_(draft),
        first_(draft->size()),
        tokens_left_(token_budget),
        seats_left_(state->options.max_batch_sequences - SeatsTaken(*state)) {}

  absl::Status Run() {
    size_t scanned = 0;
    for (const RankedSample& entry : state_->waiting) {
      if (tokens_left_ == 0 || ++scanned > kMaxScan) break;
      PAGED_KV_ASSIGN_OR_RETURN(const bool others_may_follow, Take(entry.ref));
      if (!others_may_follow) break;
    }
    return absl::OkStatus();
  }

  uint32_t growth_reserve() const { return growth_reserve_; }

 private:
  // Adds a sample or passes over it; false if nobody may overtake it.
  absl::StatusOr<bool> Take(SampleRef ref) {
    const RequestState& request = state_->requests.at(ref.request);
    const SampleState& sample = request.samples[ref.sample];
    if (sample.items_in_flight > 0) return false;
    if (request.Seats() > seats_left_) return false;
    const uint32_t growth =
        GrowthReserveTokens(state_->options, sample.preemptions);
    const bool is_first = draft_->size() == first_;
    if (!is_first && growth > growth_reserve_) return false;
    if (StillWaitsForPrefix(state_, ref)) return true;

    PAGED_KV_ASSIGN_OR_RETURN(
        const Prefix prefix,
        state_->cache->Lookup(sample.tokens, request.extras));
    const bool share = request.share && !sample.distrusts_cache;
    const uint32_t hit = share ? prefix.hit_tokens.value() : 0;
    if (WaitsForPrefix(state_, ref, hit, draft_->items().subspan(first_))) {
      return true;
    }
    const uint32_t tokens =
        std::min({tokens_left_, state_->options.max_chunk_tokens,
                  static_cast<uint32_t>(sample.tokens.size()) - hit});
    if (is_first) growth_reserve_ = growth;
    draft_->Add({ref, tokens});
    tokens_left_ -= tokens;
    seats_left_ -= request.Seats();
    return true;
  }

  SchedulerState* const state_;
  StepDraft* const draft_;
  const size_t first_;
  uint32_t tokens_left_;
  uint32_t seats_left_;
  uint32_t growth_reserve_ = 0;
};

// How many of the draft's items from `first` on may join. Who joins takes no
// pages on the device, and so need not wait until others could grow there.
size_t CountFitting(const StepDraft& draft, size_t first) {
  size_t i = 0;
  while (i < draft.size() &&
         (draft.outcome(i).ok() ||
          ShortageOf(draft.outcome(i)) == Shortage::kDevicePages)) {
    ++i;
  }
  return i < first ? 0 : i - first;
}

}  // namespace

uint32_t GrowthReserveTokens(const BatchSchedulerOptions& options,
                             uint32_t preemptions) {
  if (preemptions == 0) return options.growth_reserve_tokens;
  const uint64_t base = std::max(options.growth_reserve_tokens, 1u);
  return static_cast<uint32_t>(
      std::min<uint64_t>(base << std::min(preemptions, 31u), UINT32_MAX));
}

bool AdmissionWorthwhile(const SchedulerState& state) {
  if (state.waiting.empty()) return false;
  if (state.admission_open || state.running.empty()) return true;
  return state.AvailableBlocks() > state.blocks_when_closed;
}

absl::StatusOr<bool> AddAdmissions(SchedulerState* state, StepDraft* draft,
                                   uint32_t token_budget) {
  const size_t first = draft->size();
  for (bool asked = false;; asked = true) {
    CandidateScan scan(state, draft, token_budget);
    PAGED_KV_RETURN_IF_ERROR(scan.Run());
    if (draft->size() == first) return asked;

    PAGED_KV_RETURN_IF_ERROR(draft->Probe(scan.growth_reserve()));
    size_t admitted = CountFitting(*draft, first);
    if (admitted == 0 &&
        (state->running.empty() || absl::IsOutOfRange(draft->outcome(first)))) {
      // Room for growth is not to be had: alone, or in a tiny pool.
      draft->Truncate(first + 1);
      PAGED_KV_RETURN_IF_ERROR(draft->Plan().status());
      admitted = CountFitting(*draft, first);
    }
    if (admitted > 0) {
      draft->Truncate(first + admitted);
      return true;
    }
    const absl::Status& why = draft->outcome(first);
    const uint32_t slot = draft->item(first).ref.request;
    draft->Truncate(first);
    if (why.ok() || absl::IsResourceExhausted(why)) {
      state->admission_open = false;
      state->blocks_when_closed = state->AvailableBlocks();
      return true;
    }
    FailRequest(state, slot, why);  // and look again without it
  }
}

}  // namespace paged_kv::internal

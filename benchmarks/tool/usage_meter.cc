// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/usage_meter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace paged_kv::tool {
namespace {

constexpr size_t kMaxSamples = 1024;

SlotShares Scaled(const SlotShares& s, double factor) {
  return {s.live * factor,        s.tail * factor,   s.lookahead * factor,
          s.reserved * factor,    s.cached * factor, s.duplicate * factor,
          s.quarantined * factor, s.free * factor};
}

void AddScaled(const SlotCounts& counts, double factor, SlotShares* sum) {
  sum->live += factor * static_cast<double>(counts.live);
  sum->tail += factor * static_cast<double>(counts.tail);
  sum->lookahead += factor * static_cast<double>(counts.lookahead);
  sum->reserved += factor * static_cast<double>(counts.reserved);
  sum->cached += factor * static_cast<double>(counts.cached);
  sum->duplicate += factor * static_cast<double>(counts.duplicate);
  sum->quarantined += factor * static_cast<double>(counts.quarantined);
  sum->free += factor * static_cast<double>(counts.free);
}

}  // namespace

absl::Status UsageMeter::Add(const UsageSample& sample,
                             absl::Duration duration) {
  if (sample.slots.Total() != capacity_slots_) {
    return absl::InternalError(absl::StrCat(
        "slot states add up to ", sample.slots.Total(), ", the capacity is ",
        capacity_slots_, " (step ", steps_, ")"));
  }
  const double seconds = absl::ToDoubleSeconds(duration);
  all_.Add(sample, seconds);
  if (sample.waiting > 0) loaded_.Add(sample, seconds);
  peak_running_ = std::max(peak_running_, sample.running);
  peak_allocated_ = std::max(peak_allocated_, sample.slots.Allocated());

  // Once there are too many samples, every other one goes.
  if (steps_ % sample_every_ == 0) {
    samples_.push_back(sample);
    if (samples_.size() == kMaxSamples) {
      for (size_t i = 0; i < kMaxSamples / 2; ++i)
        samples_[i] = samples_[2 * i];
      samples_.resize(kMaxSamples / 2);
      sample_every_ *= 2;
    }
  }
  ++steps_;
  return absl::OkStatus();
}

void UsageMeter::Sums::Add(const UsageSample& sample, double duration_s) {
  AddScaled(sample.slots, duration_s, &slot_seconds);
  running_seconds += duration_s * sample.running;
  seconds += duration_s;
}

SlotShares UsageMeter::SharesOfAllocated(When when) const {
  const SlotShares& slot_seconds = SumsOf(when).slot_seconds;
  const double allocated = slot_seconds.Allocated();
  if (allocated == 0) return {};
  SlotShares shares = Scaled(slot_seconds, 1 / allocated);
  shares.cached = shares.quarantined = shares.free = 0;
  return shares;
}

SlotShares UsageMeter::SharesOfCapacity(When when) const {
  const Sums& sums = SumsOf(when);
  const double total = sums.seconds * static_cast<double>(capacity_slots_);
  return total == 0 ? SlotShares{} : Scaled(sums.slot_seconds, 1 / total);
}

double UsageMeter::MeanRunning(When when) const {
  const Sums& sums = SumsOf(when);
  return sums.seconds == 0 ? 0 : sums.running_seconds / sums.seconds;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/usage_meter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace paged_kv::tool {
namespace {

constexpr size_t kMaxSamples = 4096;

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
  AddScaled(sample.slots, seconds, &slot_seconds_);
  running_seconds_ += seconds * sample.running;
  seconds_ += seconds;
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

SlotShares UsageMeter::SharesOfAllocated() const {
  const double allocated = slot_seconds_.Allocated();
  if (allocated == 0) return {};
  SlotShares shares = Scaled(slot_seconds_, 1 / allocated);
  shares.cached = shares.quarantined = shares.free = 0;
  return shares;
}

SlotShares UsageMeter::SharesOfCapacity() const {
  const double total = seconds_ * static_cast<double>(capacity_slots_);
  return total == 0 ? SlotShares{} : Scaled(slot_seconds_, 1 / total);
}

double UsageMeter::MeanRunning() const {
  return seconds_ == 0 ? 0 : running_seconds_ / seconds_;
}

}  // namespace paged_kv::tool

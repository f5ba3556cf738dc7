// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_VIRTUAL_TIMELINE_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_VIRTUAL_TIMELINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "fpga_dma/card_model/fault_plan.h"
#include "fpga_dma/card_model/timing_model.h"
#include "fpga_dma/device_types.h"
#include "fpga_dma/modelled_times.h"

namespace paged_kv::fpga_dma {

// What is to happen to a call, drawn when it is announced.
struct CallPlan {
  std::optional<Fault> fault;
  double slowdown = 1;
  bool card_lost = false;  // the card had dropped off before

  // It does not return before a reset.
  bool hangs() const {
    return !card_lost && fault.has_value() &&
           (fault->kind == FaultKind::kHang ||
            fault->kind == FaultKind::kLoseCompletion);
  }
};

// What a call moved and computed, known once it was made.
struct CallLoad {
  bool instant = false;  // it failed at once; nothing below matters
  BankId target = kNoBank;
  BankId source = kNoBank;  // of copies
  uint64_t bytes = 0;
  uint32_t unit = 0;  // of kernel runs
  KernelLoad kernel;
};

inline CallLoad InstantLoad() {
  CallLoad load;
  load.instant = true;
  return load;
}

// When announced calls start and finish in virtual time: the queues of DMA
// channels, copy engine and compute units in front of a TimingModel. See
// ModelledTimes for the words.
//
// Thread safety: thread-compatible.
class VirtualTimeline {
 public:
  // `timing` outlives the timeline.
  explicit VirtualTimeline(TimingModel* timing) : timing_(timing) {}

  uint64_t Announce(CallKind kind, uint32_t index, const CallPlan& plan);
  // Null for an unknown ticket, such as one that was given up.
  const CallPlan* Find(uint64_t ticket) const;
  // Ignored for an unknown ticket.
  void SetLoad(uint64_t ticket, CallLoad load);
  std::optional<ModelledTimes::Finish> NextFinish(absl::Time now);
  void Retire(uint64_t ticket);
  void GiveUp(absl::Time now);

 private:
  using LaneKey = std::pair<CallKind, uint32_t>;
  struct Entry {
    LaneKey lane;
    CallPlan plan;
    std::optional<CallLoad> load;
    bool begun = false;
    absl::Time started;
    absl::Time finished;
  };

  void Begin(absl::Time now, Entry* entry);
  TimeSpan TimeOf(const Entry& entry, absl::Time now);

  TimingModel* const timing_;
  uint64_t next_ticket_ = 1;
  std::map<uint64_t, Entry> entries_;
  std::map<LaneKey, std::deque<uint64_t>> lanes_;  // of tickets
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_VIRTUAL_TIMELINE_H_

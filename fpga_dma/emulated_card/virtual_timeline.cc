// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/emulated_card/virtual_timeline.h"

#include "paged_kv/check.h"

namespace paged_kv::fpga_dma {

uint64_t VirtualTimeline::Announce(CallKind kind, uint32_t index,
                                   const CallPlan& plan) {
  const uint64_t ticket = next_ticket_++;
  Entry entry;
  entry.lane = {kind, index};
  entry.plan = plan;
  lanes_[entry.lane].push_back(ticket);
  entries_.emplace(ticket, std::move(entry));
  return ticket;
}

const CallPlan* VirtualTimeline::Find(uint64_t ticket) const {
  const auto found = entries_.find(ticket);
  return found == entries_.end() ? nullptr : &found->second.plan;
}

void VirtualTimeline::SetLoad(uint64_t ticket, CallLoad load) {
  const auto found = entries_.find(ticket);
  if (found != entries_.end()) found->second.load = std::move(load);
}

TimeSpan VirtualTimeline::TimeOf(const Entry& entry, absl::Time now) {
  const CallLoad& load = *entry.load;
  if (load.instant) return {now, now};
  const double slowdown = entry.plan.slowdown;
  switch (entry.lane.first) {
    case CallKind::kUpload:
      return timing_->Transfer(DmaDirection::kUpload, entry.lane.second,
                               load.target, load.bytes, now, slowdown);
    case CallKind::kDownload:
      return timing_->Transfer(DmaDirection::kDownload, entry.lane.second,
                               load.target, load.bytes, now, slowdown);
    case CallKind::kCopy:
      return timing_->Copy(load.target, load.source, load.bytes, now, slowdown);
    case CallKind::kKernel:
      break;
  }
  return timing_->Kernel(entry.lane.second, load.kernel, now, slowdown);
}

void VirtualTimeline::Begin(absl::Time now, Entry* entry) {
  entry->begun = true;
  entry->started = now;
  entry->finished = TimeOf(*entry, now).end;
  const auto& fault = entry->plan.fault;
  if (!entry->plan.card_lost && fault.has_value() &&
      fault->kind == FaultKind::kDelay) {
    entry->finished += fault->delay;
  }
}

std::optional<ModelledTimes::Finish> VirtualTimeline::NextFinish(
    absl::Time now) {
  // Free lanes take up their next calls in the order of submission, since they
  // share the link and the banks.
  std::map<uint64_t, Entry*> waiting;
  for (const auto& [key, queue] : lanes_) {
    if (queue.empty()) continue;
    Entry& entry = entries_.at(queue.front());
    if (entry.load.has_value() && !entry.begun && !entry.plan.hangs()) {
      waiting.emplace(queue.front(), &entry);
    }
  }
  for (const auto& [ticket, entry] : waiting) Begin(now, entry);

  std::optional<ModelledTimes::Finish> next;
  for (const auto& [key, queue] : lanes_) {
    if (queue.empty()) continue;
    const uint64_t ticket = queue.front();
    const Entry& entry = entries_.at(ticket);
    if (!entry.begun) continue;
    const bool earlier =
        !next.has_value() || entry.finished < next->finished ||
        (entry.finished == next->finished && ticket < next->ticket);
    if (earlier) next = {ticket, entry.started, entry.finished};
  }
  return next;
}

void VirtualTimeline::Retire(uint64_t ticket) {
  const auto found = entries_.find(ticket);
  if (found == entries_.end()) return;
  std::deque<uint64_t>& queue = lanes_.at(found->second.lane);
  PAGED_KV_CHECK(queue.front() == ticket);
  queue.pop_front();
  entries_.erase(found);
}

void VirtualTimeline::GiveUp(absl::Time now) {
  entries_.clear();
  lanes_.clear();
  timing_->Reset(now);
}

}  // namespace paged_kv::fpga_dma

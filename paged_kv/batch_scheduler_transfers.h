// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_TRANSFERS_H_
#define PAGED_KV_BATCH_SCHEDULER_TRANSFERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "paged_kv/check.h"
#include "paged_kv/tier_transfer.h"

namespace paged_kv::internal {

// The transfers that a scheduler has started: first those that the engine has
// not fetched, then those that it is carrying out. A page on the device has one
// transfer at a time, so that there are at most as many as pages, and nothing
// is allocated after construction. Thread safety: thread-compatible.
class TransferLedger {
 public:
  struct Entry {
    TransferId id{0};  // 0: none
    bool download = false;
    bool for_room = false;  // somebody waits for the page to become evictable
    bool taken = false;
  };

  // `pages`: on the device, over all pools.
  explicit TransferLedger(size_t pages) : entries_(pages) {
    outgoing_.reserve(pages);
    taken_.reserve(pages);
  }

  void Add(absl::Span<const TierTransfer> transfers, bool for_room) {
    for (const TierTransfer& transfer : transfers) {
      // An older transfer of the page can only be one that somebody has
      // reported to the cache behind the scheduler's back.
      Remove(&EntryOf(transfer.id));
      EntryOf(transfer.id) = {transfer.id,
                              transfer.source_tier == Tier::kDevice, for_room,
                              /*taken=*/false};
      ++size_;
      for_room_ += for_room ? 1 : 0;
      outgoing_.push_back(transfer);
    }
  }

  // What was added since the last call, in order; valid until the next one.
  absl::Span<const TierTransfer> Take() {
    taken_.swap(outgoing_);
    outgoing_.clear();
    for (const TierTransfer& transfer : taken_) {
      Entry& entry = EntryOf(transfer.id);
      entry.taken = entry.taken || entry.id == transfer.id;
    }
    return taken_;
  }

  // nullptr if unknown or finished.
  Entry* Find(TransferId id) {
    const auto page = static_cast<uint32_t>(id.value());
    if (page >= entries_.size() || entries_[page].id != id) return nullptr;
    return id == TransferId(0) ? nullptr : &entries_[page];
  }
  void Remove(Entry* entry) {
    if (entry->id == TransferId(0)) return;
    --size_;
    for_room_ -= entry->for_room ? 1 : 0;
    *entry = Entry{};
  }

  // Forgets all.
  void Clear() {
    for (Entry& entry : entries_) Remove(&entry);
    outgoing_.clear();
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  size_t for_room() const { return for_room_; }
  absl::Span<const Entry> entries() const { return entries_; }

 private:
  // A transfer's id names its page in the low half.
  Entry& EntryOf(TransferId id) {
    const auto page = static_cast<uint32_t>(id.value());
    PAGED_KV_CHECK(page < entries_.size());
    return entries_[page];
  }

  std::vector<Entry> entries_;  // by page
  std::vector<TierTransfer> outgoing_;
  std::vector<TierTransfer> taken_;
  size_t size_ = 0;
  size_t for_room_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_TRANSFERS_H_

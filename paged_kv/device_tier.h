// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DEVICE_TIER_H_
#define PAGED_KV_DEVICE_TIER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "paged_kv/cache_stats.h"
#include "paged_kv/device_page_list.h"
#include "paged_kv/device_page_pool.h"
#include "paged_kv/lazy_array.h"
#include "paged_kv/tier_transfer.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// Which blocks of one pool have a page on the device, whether it or the page in
// host memory is valid, and what may happen to it. The hierarchy is inclusive:
// a block with a page on the device still has its page in host memory.
//
// A *seat* is the reference of a sequence that is on the device with a page;
// seated pages stay where they are. A page without seats is kept as long as
// nobody needs its place: clean ones are evicted oldest first, dirty ones once
// they are written back. A page that steps in flight may read waits in
// quarantine, one with a transfer in flight for its end.
//
//            Take, AddSeat                DropSeat
//   kFree ----------------> kSeated -------------------> kMoving, kQuarantined,
//     ^                        ^                          kClean or kDirty
//     |  Drop, eviction        |  AddSeat                     |
//     +------------------------+------------------------------+
//
// Knows nothing of sequences or steps. Thread safety: thread-compatible.
// Invariants: a page is in exactly one state, and the states add up to the
// capacity; a page has at most one transfer in flight; clean, dirty and
// quarantined pages are on exactly one list. Every call is O(1) but
// EndQuarantine, which is O(pages that it ends for).
class DeviceTier {
 public:
  static constexpr uint32_t kNoList = 0xFFFFFFFFu;

  // `blocks`: of the pool. `step_lists`: quarantines, one per step in flight.
  absl::Status Create(uint32_t blocks, uint32_t pages, uint32_t splits,
                      uint32_t step_lists);

  uint32_t capacity() const { return pool_.capacity(); }
  uint32_t splits() const { return pool_.splits(); }
  uint32_t pages_per_split() const { return pool_.pages_per_split(); }
  // Pages that can be taken now, and those that could after a write-back.
  uint32_t available(uint32_t split) const {
    return pool_.free(split) + clean_[split].size();
  }
  uint32_t dirty(uint32_t split) const { return dirty_[split].size(); }
  DevicePoolStats Stats() const;

  // kNoPage if the block has none on the device.
  uint32_t PageOf(BlockId block) const { return page_of_[block.value()] - 1; }
  const DevicePage& page(uint32_t page) const { return pages_[page]; }

  // The block's K/V is valid in the tier. A block without K/V is in both.
  bool HostValid(BlockId block) const {
    const uint32_t page = PageOf(block);
    return page == kNoPage || !pages_[page].dirty;
  }
  bool DeviceValid(BlockId block) const {
    const uint32_t page = PageOf(block);
    return page != kNoPage && pages_[page].transfer != PageTransfer::kUpload;
  }
  bool InTransfer(BlockId block) const {
    const uint32_t page = PageOf(block);
    return page != kNoPage && pages_[page].transfer != PageTransfer::kNone;
  }

  // ---- Pages ----

  // Evicts the oldest clean pages until `pages` are free.
  // REQUIRES: available(split) >= pages.
  void MakeFree(uint32_t split, uint32_t pages);
  // A clean page becomes the last to be evicted.
  void Touch(uint32_t page);
  // Takes a page of split `logical` % splits for `block`, with one seat.
  // `after` and `run`: see DevicePagePool::Take.
  // REQUIRES: the block has none, available(split) > 0.
  uint32_t Take(BlockId block, GroupId group, uint32_t logical, uint32_t after,
                uint32_t run);
  void AddSeat(uint32_t page);
  // `step_list`: where the page waits if nobody is seated on it any more;
  // kNoList: no step is in flight.
  void DropSeat(uint32_t page, uint32_t step_list);
  // The device writes K/V of its own. REQUIRES: seated, no transfer in flight.
  void MarkDirty(uint32_t page);
  // The page holds nothing worth keeping. REQUIRES: no transfer in flight.
  void MarkClean(uint32_t page);
  // Host memory is going to be newer, or the block gives its content up.
  // REQUIRES: nobody is seated, no transfer in flight.
  void Drop(BlockId block);
  // The step that names the list has retired.
  void EndQuarantine(uint32_t step_list);

  // Dirty pages that nobody is seated on, oldest first; kNoPage at the end.
  uint32_t FirstDirty(uint32_t split) const { return dirty_[split].front(); }
  uint32_t NextDirty(uint32_t page) const {
    return DevicePageList::Next(pages_.data(), page);
  }

  // ---- Transfers ----

  // Starts one and returns its number among those of this page.
  // REQUIRES: none is in flight; a download is of a dirty page.
  uint32_t StartTransfer(uint32_t page, PageTransfer direction);
  // Ends a download, or an upload that succeeded. A download that failed leaves
  // the page dirty.
  void FinishTransfer(uint32_t page, bool moved, uint32_t step_list);
  // Ends an upload that failed: the page never was valid and is free.
  // REQUIRES: nobody is seated.
  void AbandonUpload(uint32_t page);

  // Marks a block, to count it once; false if it is marked. ClearMarks() is
  // O(1).
  bool Mark(BlockId block);
  void ClearMarks() { ++mark_; }

  const DevicePagePool& pool() const { return pool_; }
  // Oldest first.
  uint32_t FirstClean(uint32_t split) const { return clean_[split].front(); }
  uint32_t NextClean(uint32_t page) const {
    return DevicePageList::Next(pages_.data(), page);
  }
  uint64_t evictions() const { return evictions_; }

  // First broken invariant; leaves seats to the caller. O(blocks + pages).
  absl::Status CheckInvariants() const;

 private:
  void SetState(DevicePage* page, DevicePageState state);
  // Takes a page without seats off its list.
  void Unlink(uint32_t page);
  // Where a page without seats and transfers belongs.
  void Settle(uint32_t page, uint32_t step_list);
  void Forget(uint32_t page);
  uint32_t SplitOf(uint32_t page) const { return pool_.SplitOf(page); }

  DevicePagePool pool_;
  LazyArray<DevicePage> pages_;
  LazyArray<uint32_t> page_of_;  // by block; page + 1, 0: none
  LazyArray<uint32_t> marks_;    // by block
  uint32_t mark_ = 1;
  std::vector<DevicePageList> clean_;       // by split
  std::vector<DevicePageList> dirty_;       // by split
  std::vector<DevicePageList> quarantine_;  // by step
  uint32_t counts_[kDevicePageStates] = {};
  uint64_t evictions_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_DEVICE_TIER_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Metadata of a page on the device and intrusive lists of pages over it.

#ifndef PAGED_KV_DEVICE_PAGE_LIST_H_
#define PAGED_KV_DEVICE_PAGE_LIST_H_

#include <cstdint>

#include "paged_kv/tier_transfer.h"

namespace paged_kv::internal {

// What a page on the device is used for.
enum class DevicePageState : uint8_t {
  kFree,
  kSeated,       // sequences are on the device with it
  kMoving,       // nobody is seated; a transfer reads or writes it
  kQuarantined,  // nobody is seated; steps in flight may read it
  kClean,        // nobody is seated; host memory has the same
  kDirty,        // nobody is seated; the only valid copy
};
inline constexpr uint32_t kDevicePageStates = 6;

enum class PageTransfer : uint8_t { kNone, kUpload, kDownload };

// All-zero memory is a free page that was never used.
struct DevicePage {
  uint32_t block;  // id + 1; 0: none, or one that has given it up
  uint32_t prev;   // list links; page + 1, 0: none
  uint32_t next;
  uint32_t seats;
  uint32_t transfers;  // started so far
  uint32_t logical;    // place of the block in its sequence
  uint8_t group;
  DevicePageState state;
  PageTransfer transfer;  // in flight
  bool dirty;             // newer than the page in host memory
  uint32_t list;          // kQuarantined: which
};

// A doubly linked list of pages. A page is on at most one list. O(1).
class DevicePageList {
 public:
  uint32_t front() const { return front_ - 1; }  // kNoPage if empty
  uint32_t size() const { return size_; }
  static uint32_t Next(const DevicePage* pages, uint32_t page) {
    return pages[page].next - 1;
  }

  void PushBack(DevicePage* pages, uint32_t page) {
    pages[page].prev = back_;
    pages[page].next = 0;
    (back_ == 0 ? front_ : pages[back_ - 1].next) = page + 1;
    back_ = page + 1;
    ++size_;
  }
  void Remove(DevicePage* pages, uint32_t page) {
    const uint32_t prev = pages[page].prev;
    const uint32_t next = pages[page].next;
    (prev == 0 ? front_ : pages[prev - 1].next) = next;
    (next == 0 ? back_ : pages[next - 1].prev) = prev;
    --size_;
  }

 private:
  uint32_t front_ = 0;  // page + 1; 0: none
  uint32_t back_ = 0;
  uint32_t size_ = 0;
};
static_assert(kNoPage + 1 == 0, "links of no page are 0");

}  // namespace paged_kv::internal

#endif  // PAGED_KV_DEVICE_PAGE_LIST_H_

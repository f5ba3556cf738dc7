// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DEVICE_PAGE_POOL_H_
#define PAGED_KV_DEVICE_PAGE_POOL_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "paged_kv/lazy_array.h"
#include "paged_kv/tier_transfer.h"

namespace paged_kv::internal {

// Which pages of a device are free. Prefers extents: pages that are read
// together lie side by side, so that one descriptor moves many.
//
// A page goes behind the one before it of the same sequence if that place is
// free. Otherwise a new run begins, where it can grow: in the shortest of some
// free runs that have room for it, and in the middle of a run that begins
// behind somebody else's pages, so that both have room in front of them. (File
// systems spread growing files for the same reason: McKusick et al. 1984, "A
// Fast File System for UNIX".)
//
// The pages of each split are a range of their own, cut into words of 64 bits.
// Words with free pages are on lists by the length class of their longest free
// run, floor(log2), so that every call is O(1) and none allocates memory.
//
// Thread safety: thread-compatible.
// Invariants: a word with free pages is on exactly the list of its class; free
// counts equal the bits that are set.
class DevicePagePool {
 public:
  // Pages of split s: [s * pages / splits, (s + 1) * pages / splits).
  // REQUIRES: splits > 0, pages is a multiple of splits.
  absl::Status Create(uint32_t pages, uint32_t splits);

  uint32_t capacity() const { return pages_per_split_ * splits(); }
  uint32_t splits() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t pages_per_split() const { return pages_per_split_; }
  uint32_t free(uint32_t split) const { return free_[split]; }
  uint32_t SplitOf(uint32_t page) const { return page / pages_per_split_; }
  bool IsFree(uint32_t page) const;

  // Takes a page of a split: `after` + 1 if that is a free page of it, else the
  // first of a new run of up to `run` pages, which the caller is going to ask
  // for one after the other. `after` may be kNoPage.
  // REQUIRES: free(split) > 0, run > 0.
  uint32_t Take(uint32_t split, uint32_t after, uint32_t run);
  // REQUIRES: the page is taken.
  void Give(uint32_t page);

  // Calls f(uint32_t) for numbers that decide all further answers.
  template <typename F>
  void VisitState(F f) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      f(static_cast<uint32_t>(words_[w].free));
      f(static_cast<uint32_t>(words_[w].free >> 32));
      f(words_[w].next);
    }
    for (const Classes& classes : classes_) {
      for (const List& list : classes) f(list.front);
    }
  }

  // First broken invariant. O(pages).
  absl::Status CheckInvariants() const;

 private:
  static constexpr uint32_t kWordPages = 64;
  static constexpr uint32_t kClasses = 7;  // runs of 1, 2-3, ..., 64 pages
  // Words of a class among which the best fit is looked for. With the first one
  // alone descriptors move a fifth less.
  static constexpr uint32_t kWordsToSearch = 16;

  struct Word {
    uint64_t free;  // bit i: page i of the word is free
    uint32_t prev;  // on the list of its class; word + 1, 0: none
    uint32_t next;
  };
  struct List {
    uint32_t front = 0;  // word + 1, 0: none
    uint32_t back = 0;
  };
  using Classes = std::array<List, kClasses>;

  struct Run {
    uint32_t first = 0;  // bit of a word
    uint32_t length = 0;
  };
  // The first of the longest runs of ones in bits != 0.
  static Run LongestRun(uint64_t bits);
  // floor(log2) of the longest run of ones in bits != 0; *starts: where runs of
  // so many begin.
  static uint32_t LongestRunClass(uint64_t bits, uint64_t* starts);
  static uint32_t ClassOf(const Word& word);

  uint32_t WordOf(uint32_t page) const;
  uint64_t BitOf(uint32_t page) const;
  uint32_t PageAt(uint32_t word, uint32_t bit) const;
  // First page of a new run.
  uint32_t Place(uint32_t split, uint32_t run) const;
  // Changes a word's bits and moves it to the list where it belongs then.
  void SetFree(uint32_t word, uint64_t free);
  void Link(uint32_t word, List* list);
  void Unlink(uint32_t word, List* list);

  uint32_t pages_per_split_ = 1;
  uint32_t words_per_split_ = 1;
  LazyArray<Word> words_;
  std::vector<uint32_t> free_;    // per split
  std::vector<Classes> classes_;  // per split
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_DEVICE_PAGE_POOL_H_

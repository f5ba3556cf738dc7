// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/device_page_pool.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::internal {

absl::Status DevicePagePool::Create(uint32_t pages, uint32_t splits) {
  PAGED_KV_CHECK(splits > 0 && pages % splits == 0 && pages > 0);
  pages_per_split_ = pages / splits;
  words_per_split_ = (pages_per_split_ + kWordPages - 1) / kWordPages;
  absl::Status status = words_.Create(size_t{words_per_split_} * splits);
  if (!status.ok()) return status;
  free_.assign(splits, pages_per_split_);
  classes_.assign(splits, Classes{});
  for (uint32_t word = 0; word < words_.size(); ++word) {
    const uint32_t first = word % words_per_split_ * kWordPages;
    const uint32_t pages_here = std::min(kWordPages, pages_per_split_ - first);
    SetFree(word, ~uint64_t{0} >> (kWordPages - pages_here));
  }
  return absl::OkStatus();
}

uint32_t DevicePagePool::LongestRunClass(uint64_t bits, uint64_t* starts) {
  // After k rounds bit i says that the 2^k bits from i on are set.
  uint32_t run_class = 0;
  for (uint32_t length = 1; length < kWordPages; length *= 2) {
    const uint64_t longer = bits & (bits >> length);
    if (longer == 0) break;
    bits = longer;
    ++run_class;
  }
  *starts = bits;
  return run_class;
}

uint32_t DevicePagePool::ClassOf(const Word& word) {
  uint64_t starts = 0;
  return LongestRunClass(word.free, &starts);
}

uint32_t DevicePagePool::WordOf(uint32_t page) const {
  const uint32_t split = SplitOf(page);
  return split * words_per_split_ +
         (page - split * pages_per_split_) / kWordPages;
}

uint64_t DevicePagePool::BitOf(uint32_t page) const {
  return uint64_t{1} << (page % pages_per_split_ % kWordPages);
}

uint32_t DevicePagePool::PageAt(uint32_t word, uint32_t bit) const {
  return word / words_per_split_ * pages_per_split_ +
         word % words_per_split_ * kWordPages + bit;
}

bool DevicePagePool::IsFree(uint32_t page) const {
  return (words_[WordOf(page)].free & BitOf(page)) != 0;
}

uint32_t DevicePagePool::Take(uint32_t split, uint32_t after, uint32_t run) {
  PAGED_KV_CHECK(free_[split] > 0 && run > 0);
  uint32_t page = kNoPage;
  if (after != kNoPage) {
    PAGED_KV_DCHECK(after < capacity());
    const uint32_t next = after + 1;
    if (next < capacity() && SplitOf(next) == split && IsFree(next)) {
      page = next;
    }
  }
  if (page == kNoPage) page = Place(split, run);
  const uint32_t word = WordOf(page);
  SetFree(word, words_[word].free & ~BitOf(page));
  --free_[split];
  return page;
}

uint32_t DevicePagePool::Place(uint32_t split, uint32_t run) const {
  // The shortest class that has room for the run and some growth. The long
  // ones are kept for prompts: a decode that starts a run fills a page or two
  // of it before it ends.
  const Classes& classes = classes_[split];
  const uint32_t wanted = std::min(run, kWordPages) + kGrowthPages;
  uint32_t run_class = std::min(
      static_cast<uint32_t>(absl::bit_width(wanted - 1)), kClasses - 1);
  while (run_class < kClasses && classes[run_class].front == 0) ++run_class;
  if (run_class == kClasses) {
    do {
      PAGED_KV_CHECK(run_class > 0);
      --run_class;
    } while (classes[run_class].front == 0);
  }
  const uint32_t word = classes[run_class].front - 1;
  uint64_t starts = 0;
  LongestRunClass(words_[word].free, &starts);
  const auto first = static_cast<uint32_t>(absl::countr_zero(starts));
  const uint64_t rest = words_[word].free >> first;
  // `rest` has zeroes shifted in unless the word is wholly free.
  const uint32_t length =
      ~rest == 0 ? kWordPages : static_cast<uint32_t>(absl::countr_one(rest));
  const bool behind_others = first > 0;
  if (!behind_others || run >= length) return PageAt(word, first);
  return PageAt(word, first + (length - run) / 2);
}

void DevicePagePool::Give(uint32_t page) {
  PAGED_KV_CHECK(page < capacity() && !IsFree(page));
  const uint32_t word = WordOf(page);
  SetFree(word, words_[word].free | BitOf(page));
  ++free_[SplitOf(page)];
}

void DevicePagePool::SetFree(uint32_t word, uint64_t free) {
  Word& entry = words_[word];
  Classes& classes = classes_[word / words_per_split_];
  const uint32_t none = kClasses;
  const uint32_t before = entry.free == 0 ? none : ClassOf(entry);
  entry.free = free;
  const uint32_t after = entry.free == 0 ? none : ClassOf(entry);
  if (before == after) return;
  if (before != none) Unlink(word, &classes[before]);
  if (after != none) Link(word, &classes[after]);
}

void DevicePagePool::Link(uint32_t word, List* list) {
  words_[word].prev = list->back;
  words_[word].next = 0;
  (list->back == 0 ? list->front : words_[list->back - 1].next) = word + 1;
  list->back = word + 1;
}

void DevicePagePool::Unlink(uint32_t word, List* list) {
  const Word& entry = words_[word];
  (entry.prev == 0 ? list->front : words_[entry.prev - 1].next) = entry.next;
  (entry.next == 0 ? list->back : words_[entry.next - 1].prev) = entry.prev;
}

absl::Status DevicePagePool::CheckInvariants() const {
  std::vector<uint32_t> listed(words_.size(), 0);
  for (uint32_t split = 0; split < splits(); ++split) {
    for (uint32_t c = 0; c < kClasses; ++c) {
      for (uint32_t w = classes_[split][c].front; w != 0;
           w = words_[w - 1].next) {
        const Word& word = words_[w - 1];
        if (word.free == 0 || ClassOf(word) != c ||
            (w - 1) / words_per_split_ != split || ++listed[w - 1] > 1) {
          return absl::InternalError(
              absl::StrCat("device pages: word ", w - 1, " with free pages ",
                           absl::Hex(word.free), " is on the list of class ", c,
                           " of split ", split));
        }
      }
    }
    uint32_t counted = 0;
    for (uint32_t i = 0; i < words_per_split_; ++i) {
      const uint32_t w = split * words_per_split_ + i;
      counted += static_cast<uint32_t>(absl::popcount(words_[w].free));
      if ((words_[w].free != 0) != (listed[w] == 1)) {
        return absl::InternalError(absl::StrCat(
            "device pages: word ", w, " is on ", listed[w],
            " lists, its free pages are ", absl::Hex(words_[w].free)));
      }
    }
    if (counted != free_[split]) {
      return absl::InternalError(absl::StrCat("device pages: split ", split,
                                              " counts ", free_[split],
                                              " free pages, has ", counted));
    }
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal

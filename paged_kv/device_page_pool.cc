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

DevicePagePool::Run DevicePagePool::LongestRun(uint64_t bits) {
  uint64_t starts = 0;
  Run run;
  run.length = 1u << LongestRunClass(bits, &starts);
  // Bit i of `starts`: the run.length bits from i on are set.
  for (uint64_t longer = starts & (starts >> 1); longer != 0;
       longer = starts & (starts >> 1)) {
    starts = longer;
    ++run.length;
  }
  run.first = static_cast<uint32_t>(absl::countr_zero(starts));
  return run;
}

uint32_t DevicePagePool::Place(uint32_t split, uint32_t run) const {
  // The shortest free run that has room for these pages, or else the longest,
  // of the first few words of a class. Room to grow is not looked for: to leave
  // long runs whole is worth more (5 pages per descriptor instead of 3, of the
  // conversation trace with forks on four splits).
  const Classes& classes = classes_[split];
  const uint32_t wanted = std::min(run, kWordPages);
  const auto waste = [&](uint32_t length) {
    return length >= wanted ? length - wanted : 2 * kWordPages - length;
  };
  uint32_t best_word = 0;
  Run best;
  const auto look = [&](uint32_t run_class) {
    uint32_t word = classes[run_class].front;
    for (uint32_t i = 0; word != 0 && i < kWordsToSearch; ++i) {
      const Run found = LongestRun(words_[word - 1].free);
      if (best.length == 0 || waste(found.length) < waste(best.length)) {
        best_word = word - 1;
        best = found;
      }
      word = words_[word - 1].next;
    }
  };
  const auto lowest = static_cast<uint32_t>(absl::bit_width(wanted)) - 1;
  for (uint32_t c = lowest; c < kClasses && best.length < wanted; ++c) look(c);
  for (uint32_t c = lowest; c > 0 && best.length == 0;) look(--c);
  PAGED_KV_CHECK(best.length > 0);
  const bool behind_others = best.first > 0;
  const uint32_t before =
      behind_others && run < best.length ? (best.length - run) / 2 : 0;
  return PageAt(best_word, best.first + before);
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

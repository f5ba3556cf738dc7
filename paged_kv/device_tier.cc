// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/device_tier.h"

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {

absl::Status DeviceTier::Create(uint32_t blocks, uint32_t pages,
                                uint32_t splits, uint32_t step_lists) {
  PAGED_KV_RETURN_IF_ERROR(pool_.Create(pages, splits));
  PAGED_KV_RETURN_IF_ERROR(pages_.Create(pages));
  PAGED_KV_RETURN_IF_ERROR(page_of_.Create(blocks));
  PAGED_KV_RETURN_IF_ERROR(marks_.Create(blocks));
  clean_.resize(splits);
  dirty_.resize(splits);
  quarantine_.resize(step_lists);
  counts_[static_cast<size_t>(DevicePageState::kFree)] = pages;
  return absl::OkStatus();
}

DevicePoolStats DeviceTier::Stats() const {
  const auto count = [this](DevicePageState state) {
    return BlockCount(counts_[static_cast<size_t>(state)]);
  };
  DevicePoolStats stats;
  stats.capacity = BlockCount(capacity());
  stats.seated = count(DevicePageState::kSeated);
  stats.moving = count(DevicePageState::kMoving);
  stats.quarantined = count(DevicePageState::kQuarantined);
  stats.clean = count(DevicePageState::kClean);
  stats.dirty = count(DevicePageState::kDirty);
  stats.free = count(DevicePageState::kFree);
  return stats;
}

void DeviceTier::SetState(DevicePage* page, DevicePageState state) {
  --counts_[static_cast<size_t>(page->state)];
  page->state = state;
  ++counts_[static_cast<size_t>(state)];
}

void DeviceTier::Unlink(uint32_t page) {
  const DevicePage& entry = pages_[page];
  switch (entry.state) {
    case DevicePageState::kClean:
      clean_[SplitOf(page)].Remove(pages_.data(), page);
      return;
    case DevicePageState::kDirty:
      dirty_[SplitOf(page)].Remove(pages_.data(), page);
      return;
    case DevicePageState::kQuarantined:
      quarantine_[entry.list].Remove(pages_.data(), page);
      return;
    case DevicePageState::kFree:
    case DevicePageState::kSeated:
    case DevicePageState::kMoving:
      return;
  }
}

void DeviceTier::Settle(uint32_t page, uint32_t step_list) {
  DevicePage& entry = pages_[page];
  PAGED_KV_DCHECK(entry.seats == 0 && entry.transfer == PageTransfer::kNone);
  if (step_list != kNoList) {
    SetState(&entry, DevicePageState::kQuarantined);
    entry.list = step_list;
    quarantine_[step_list].PushBack(pages_.data(), page);
  } else if (entry.block == 0) {
    Forget(page);
  } else if (entry.dirty) {
    SetState(&entry, DevicePageState::kDirty);
    dirty_[SplitOf(page)].PushBack(pages_.data(), page);
  } else {
    SetState(&entry, DevicePageState::kClean);
    clean_[SplitOf(page)].PushBack(pages_.data(), page);
  }
}

// Makes a page free that is on no list.
void DeviceTier::Forget(uint32_t page) {
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.seats == 0 && entry.transfer == PageTransfer::kNone);
  if (entry.block != 0) page_of_[entry.block - 1] = 0;
  entry.block = 0;
  entry.dirty = false;
  SetState(&entry, DevicePageState::kFree);
  pool_.Give(page);
}

void DeviceTier::MakeFree(uint32_t split, uint32_t pages) {
  while (pool_.free(split) < pages) {
    const uint32_t victim = clean_[split].front();
    PAGED_KV_CHECK(victim != kNoPage);
    Unlink(victim);
    Forget(victim);
    ++evictions_;
  }
}

void DeviceTier::Touch(uint32_t page) {
  PAGED_KV_DCHECK(pages_[page].state == DevicePageState::kClean);
  Unlink(page);
  clean_[SplitOf(page)].PushBack(pages_.data(), page);
}

uint32_t DeviceTier::Take(BlockId block, GroupId group, uint32_t logical,
                          uint32_t after, uint32_t run) {
  PAGED_KV_CHECK(PageOf(block) == kNoPage);
  const uint32_t split = logical % splits();
  MakeFree(split, 1);
  const uint32_t page = pool_.Take(split, after, run);
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.state == DevicePageState::kFree);
  SetState(&entry, DevicePageState::kSeated);
  entry.block = block.value() + 1;
  entry.seats = 1;
  entry.logical = logical;
  PAGED_KV_DCHECK(group.value() <= 0xFF);
  entry.group = static_cast<uint8_t>(group.value());
  page_of_[block.value()] = page + 1;
  return page;
}

void DeviceTier::AddSeat(uint32_t page) {
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.state != DevicePageState::kFree);
  if (entry.seats++ > 0) return;
  Unlink(page);
  SetState(&entry, DevicePageState::kSeated);
}

void DeviceTier::DropSeat(uint32_t page, uint32_t step_list) {
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.seats > 0);
  if (--entry.seats > 0) return;
  if (entry.transfer != PageTransfer::kNone) {
    SetState(&entry, DevicePageState::kMoving);
  } else {
    Settle(page, step_list);
  }
}

void DeviceTier::MarkDirty(uint32_t page) {
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.seats > 0 && entry.transfer == PageTransfer::kNone);
  entry.dirty = true;
}

void DeviceTier::MarkClean(uint32_t page) {
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.transfer == PageTransfer::kNone);
  if (!entry.dirty) return;
  entry.dirty = false;
  if (entry.state != DevicePageState::kDirty) return;
  dirty_[SplitOf(page)].Remove(pages_.data(), page);
  Settle(page, kNoList);
}

void DeviceTier::Drop(BlockId block) {
  const uint32_t page = PageOf(block);
  if (page == kNoPage) return;
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.seats == 0 && entry.transfer == PageTransfer::kNone);
  if (entry.state == DevicePageState::kQuarantined) {
    // Nobody's from now on; free when its step retires.
    page_of_[block.value()] = 0;
    entry.block = 0;
    return;
  }
  Unlink(page);
  Forget(page);
}

void DeviceTier::EndQuarantine(uint32_t step_list) {
  DevicePageList& list = quarantine_[step_list];
  while (list.size() > 0) {
    const uint32_t page = list.front();
    Unlink(page);
    Settle(page, kNoList);
  }
}

uint32_t DeviceTier::StartTransfer(uint32_t page, PageTransfer direction) {
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.block != 0 && entry.transfer == PageTransfer::kNone);
  PAGED_KV_CHECK(entry.dirty == (direction == PageTransfer::kDownload));
  if (entry.seats == 0) {
    Unlink(page);
    SetState(&entry, DevicePageState::kMoving);
  }
  entry.transfer = direction;
  return ++entry.transfers;
}

void DeviceTier::FinishTransfer(uint32_t page, bool moved, uint32_t step_list) {
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.transfer != PageTransfer::kNone);
  PAGED_KV_CHECK(moved || entry.transfer == PageTransfer::kDownload);
  if (moved) entry.dirty = false;
  entry.transfer = PageTransfer::kNone;
  if (entry.seats == 0) Settle(page, step_list);
}

void DeviceTier::AbandonUpload(uint32_t page) {
  DevicePage& entry = pages_[page];
  PAGED_KV_CHECK(entry.transfer == PageTransfer::kUpload);
  entry.transfer = PageTransfer::kNone;
  Forget(page);
}

bool DeviceTier::Mark(BlockId block) {
  if (marks_[block.value()] == mark_) return false;
  marks_[block.value()] = mark_;
  return true;
}

absl::Status DeviceTier::CheckInvariants() const {
  PAGED_KV_RETURN_IF_ERROR(pool_.CheckInvariants());
  uint32_t counted[kDevicePageStates] = {};
  uint32_t mapped = 0;
  for (uint32_t i = 0; i < capacity(); ++i) {
    const DevicePage& page = pages_[i];
    const auto broken = [&](const auto&... what) {
      return absl::InternalError(absl::StrCat(
          "device page ", i, " in state ", static_cast<int>(page.state), ", ",
          page.seats, " seats, transfer ", static_cast<int>(page.transfer),
          page.dirty ? ", dirty: " : ", clean: ", what...));
    };
    ++counted[static_cast<size_t>(page.state)];
    if ((page.state == DevicePageState::kFree) != pool_.IsFree(i)) {
      return broken("the free pages say otherwise");
    }
    if ((page.state == DevicePageState::kSeated) != (page.seats > 0)) {
      return broken("seats");
    }
    const bool moves = page.transfer != PageTransfer::kNone;
    if (moves != (page.state == DevicePageState::kMoving) && page.seats == 0) {
      return broken("transfer");
    }
    if (moves && page.dirty != (page.transfer == PageTransfer::kDownload)) {
      return broken("direction");
    }
    if ((page.state == DevicePageState::kDirty && !page.dirty) ||
        (page.state == DevicePageState::kClean && page.dirty)) {
      return broken("dirty");
    }
    if (page.block == 0) {
      if (page.state != DevicePageState::kFree &&
          page.state != DevicePageState::kQuarantined) {
        return broken("nobody's");
      }
      continue;
    }
    ++mapped;
    if (PageOf(BlockId(page.block - 1)) != i) {
      return broken("block ", page.block - 1, " has another page");
    }
    if (page.logical % splits() != SplitOf(i)) {
      return broken("logical block ", page.logical, " in split ", SplitOf(i));
    }
  }
  uint32_t pages = 0;
  for (size_t b = 0; b < page_of_.size(); ++b) pages += page_of_[b] != 0;
  if (pages != mapped) {
    return absl::InternalError(absl::StrCat("blocks have ", pages,
                                            " device pages, which have ",
                                            mapped, " blocks"));
  }
  uint32_t listed[3] = {};
  for (const auto& list : clean_) listed[0] += list.size();
  for (const auto& list : dirty_) listed[1] += list.size();
  for (const auto& list : quarantine_) listed[2] += list.size();
  for (size_t s = 0; s < kDevicePageStates; ++s) {
    if (counted[s] == counts_[s]) continue;
    return absl::InternalError(absl::StrCat("counts ", counts_[s],
                                            " device pages in state ", s,
                                            ", has ", counted[s]));
  }
  if (listed[0] != counted[static_cast<size_t>(DevicePageState::kClean)] ||
      listed[1] != counted[static_cast<size_t>(DevicePageState::kDirty)] ||
      listed[2] !=
          counted[static_cast<size_t>(DevicePageState::kQuarantined)]) {
    return absl::InternalError(absl::StrCat("device lists have ", listed[0],
                                            " clean, ", listed[1], " dirty, ",
                                            listed[2], " quarantined pages"));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal

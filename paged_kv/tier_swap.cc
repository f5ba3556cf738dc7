// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/tier_swap.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "paged_kv/block_lifecycle.h"
#include "paged_kv/check.h"
#include "paged_kv/residency.h"
#include "paged_kv/shortage.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

TransferId NameOf(const CacheState& state, uint32_t pool, uint32_t page) {
  const uint32_t number = state.device_first_page[pool] + page;
  return TransferId(uint64_t{state.tiers[pool]->page(page).transfers} << 32 |
                    number);
}

// Starts the transfer of a block's page and describes it.
TierTransfer Start(CacheState* state, uint32_t pool_number, uint32_t page,
                   PageTransfer direction) {
  DeviceTier& tier = *state->tiers[pool_number];
  tier.StartTransfer(page, direction);
  const DevicePage& entry = tier.page(page);
  const BlockId block(entry.block - 1);
  TierTransfer transfer;
  transfer.id = NameOf(*state, pool_number, page);
  transfer.group = GroupId(entry.group);
  transfer.logical = entry.logical;
  transfer.filled_tokens = ContentSlots(*state->pools[pool_number], block);
  if (direction == PageTransfer::kUpload) {
    transfer.source_page = block.value();
    transfer.target_page = page;
    ++state->uploads_started;
  } else {
    transfer.source_tier = Tier::kDevice;
    transfer.target_tier = Tier::kHost;
    transfer.source_page = page;
    transfer.target_page = block.value();
    ++state->downloads_started;
  }
  return transfer;
}

// The blocks that a swap-in seats a sequence on, first ones first:
// f(g, logical, block).
template <typename F>
void ForEachBlockToSeat(const CacheState& state, uint32_t slot, uint32_t tokens,
                        F f) {
  const Sequence& sequence = state.sequences.at(slot);
  for (uint32_t g = 0; g < state.groups.size(); ++g) {
    const GroupGeometry& group = state.groups[g];
    const BlockId* table = state.sequences.blocks(slot, group);
    const uint32_t blocks = state.sequences.extent(slot, g).size;
    for (uint32_t i = 0; i < blocks; ++i) {
      if ((uint64_t{i} + 1) * group.block_tokens > tokens) break;
      if (table[i] == kNoBlock || IsSeated(sequence, group, i)) continue;
      f(g, i, table[i]);
    }
  }
}

// `tokens` as far as the sequence has blocks that no step will write again.
uint32_t WholeTokens(const CacheState& state, uint32_t slot, uint32_t tokens) {
  return tokens == kAllTokens
             ? tokens
             : std::min(tokens, state.sequences.at(slot).tokens);
}

// Counts, per pool and split, pages that the swap would take, evictable ones
// that it would keep, and blocks that the sequences have in all, each once.
void CountPages(CacheState* state, absl::Span<const SequenceId> ids,
                uint32_t tokens) {
  for (auto* counts :
       {&state->split_missing, &state->split_reused, &state->split_distinct}) {
    std::fill(counts->begin(), counts->end(), 0);
  }
  for (const auto& tier : state->tiers) tier->ClearMarks();
  for (SequenceId id : ids) {
    const uint32_t slot = state->sequences.Find(id);
    ForEachBlockToSeat(
        *state, slot, WholeTokens(*state, slot, tokens),
        [&](uint32_t g, uint32_t logical, BlockId block) {
          const uint32_t pool = state->groups[g].pool;
          DeviceTier& tier = *state->tiers[pool];
          if (!tier.Mark(block)) return;
          const size_t split =
              size_t{pool} * tier.splits() + logical % tier.splits();
          ++state->split_distinct[split];
          const uint32_t page = tier.PageOf(block);
          if (page == kNoPage) {
            ++state->split_missing[split];
          } else if (tier.page(page).state == DevicePageState::kClean) {
            ++state->split_reused[split];
          }
        });
  }
}

// Whether there is room for what CountPages() counted, with `watermark` pages
// of each split to spare.
absl::Status CheckRoom(const CacheState& state, uint64_t watermark) {
  absl::Status not_now;
  for (uint32_t pool = 0; pool < state.tiers.size(); ++pool) {
    const DeviceTier& tier = *state.tiers[pool];
    for (uint32_t split = 0; split < tier.splits(); ++split) {
      const size_t i = size_t{pool} * tier.splits() + split;
      const uint32_t missing = state.split_missing[i];
      if (missing == 0) continue;
      const uint32_t distinct = state.split_distinct[i];
      if (distinct + watermark > tier.pages_per_split()) {
        return absl::OutOfRangeError(absl::StrCat(
            "never fits: ", distinct, " pages of split ", split, " of pool ",
            pool, ", which has ", tier.pages_per_split(), " and keeps ",
            watermark, " as watermark"));
      }
      // Evictable pages that the sequences themselves need are no room.
      const uint32_t available = tier.available(split) - state.split_reused[i];
      if (missing + watermark > available && not_now.ok()) {
        not_now = ShortageError(
            Shortage::kDevicePages,
            absl::StrCat("not now: need ", missing, " device pages of split ",
                         split, " of pool ", pool, ", ", available,
                         " available (", tier.dirty(split),
                         " more once written back), watermark ", watermark));
      }
    }
  }
  return not_now;
}

// Makes room, evicting nothing that the sequences need themselves.
void MakeRoom(CacheState* state, absl::Span<const SequenceId> ids,
              uint32_t tokens) {
  for (SequenceId id : ids) {
    const uint32_t slot = state->sequences.Find(id);
    ForEachBlockToSeat(*state, slot, WholeTokens(*state, slot, tokens),
                       [&](uint32_t g, uint32_t, BlockId block) {
                         DeviceTier& tier =
                             *state->tiers[state->groups[g].pool];
                         const uint32_t page = tier.PageOf(block);
                         if (page == kNoPage) return;
                         if (tier.page(page).state == DevicePageState::kClean) {
                           tier.Touch(page);
                         }
                       });
  }
  for (uint32_t pool = 0; pool < state->tiers.size(); ++pool) {
    DeviceTier& tier = *state->tiers[pool];
    for (uint32_t split = 0; split < tier.splits(); ++split) {
      tier.MakeFree(split,
                    state->split_missing[size_t{pool} * tier.splits() + split]);
    }
  }
}

void SeatSequence(CacheState* state, uint32_t slot, uint32_t tokens) {
  Sequence& sequence = state->sequences.at(slot);
  const bool in_flight = sequence.last_step > state->retired_step;
  ForEachBlockToSeat(
      *state, slot, tokens, [&](uint32_t g, uint32_t logical, BlockId block) {
        const GroupGeometry& group = state->groups[g];
        const BlockPool& pool = state->PoolOf(group);
        DeviceTier& tier = *state->tiers[group.pool];
        uint32_t page = tier.PageOf(block);
        if (page != kNoPage) {
          tier.AddSeat(page);
          return;
        }
        uint32_t& missing =
            state->split_missing[size_t{group.pool} * tier.splits() +
                                 logical % tier.splits()];
        page = tier.Take(block, GroupId(g), logical,
                         PageBefore(*state, slot, g, logical), missing--);
        if (ContentSlots(pool, block) == 0) {
          tier.MarkDirty(page);  // whatever it is, no step has read it
          return;
        }
        TierTransfer transfer =
            Start(state, group.pool, page, PageTransfer::kUpload);
        const uint32_t end =
            logical * group.block_tokens + transfer.filled_tokens;
        if (in_flight && end > sequence.written) {
          transfer.after_step = StepId(sequence.last_step);
        }
        state->transfers.push_back(transfer);
      });
  sequence.seated_tokens = std::max(sequence.seated_tokens, tokens);
  sequence.settling = true;
}

// Who is seated on a block whose upload failed keeps what comes before it.
void UnseatAll(CacheState* state, uint32_t pool, BlockId block) {
  for (uint32_t slot = 0; slot < state->sequences.slots(); ++slot) {
    const Sequence& sequence = state->sequences.at(slot);
    if (!sequence.alive || sequence.seated_tokens == 0) continue;
    for (uint32_t g = 0; g < state->groups.size(); ++g) {
      const GroupGeometry& group = state->groups[g];
      if (group.pool != pool) continue;
      const BlockId* table = state->sequences.blocks(slot, group);
      const uint32_t blocks = state->sequences.extent(slot, g).size;
      for (uint32_t i = 0; i < blocks; ++i) {
        if (table[i] != block || !IsSeated(sequence, group, i)) continue;
        state->sequences.at(slot).settling = true;
        UnseatFrom(state, slot, i * group.block_tokens);
        break;
      }
    }
  }
}

}  // namespace

absl::Status CheckSwap(CacheState* state, absl::Span<const SequenceId> ids) {
  if (state->tiers.empty()) {
    return absl::FailedPreconditionError(
        "no device tier: KvCacheOptions::device.pages is 0");
  }
  const uint64_t ticket = ++state->last_swap;
  for (SequenceId id : ids) {
    const uint32_t slot = state->sequences.Find(id);
    if (slot == SequenceTable::kNone) {
      return absl::NotFoundError(absl::StrCat("no sequence ", id.value()));
    }
    Sequence& sequence = state->sequences.at(slot);
    if (sequence.swap_ticket == ticket) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", id.value(), " appears twice in one swap"));
    }
    sequence.swap_ticket = ticket;
  }
  state->transfers.clear();
  return absl::OkStatus();
}

absl::Status CheckSwapInRoom(CacheState* state,
                             absl::Span<const SequenceId> ids,
                             uint32_t headroom) {
  CountPages(state, ids, kAllTokens);
  return CheckRoom(*state, uint64_t{headroom} +
                               state->options.device.watermark_pages.value());
}

absl::Status SwapSequencesIn(CacheState* state,
                             absl::Span<const SequenceId> ids,
                             uint32_t tokens) {
  CountPages(state, ids, tokens);
  PAGED_KV_RETURN_IF_ERROR(
      CheckRoom(*state, state->options.device.watermark_pages.value()));
  MakeRoom(state, ids, tokens);
  for (SequenceId id : ids) {
    const uint32_t slot = state->sequences.Find(id);
    SeatSequence(state, slot, WholeTokens(*state, slot, tokens));
  }
  return absl::OkStatus();
}

absl::Status SwapSequencesOut(CacheState* state,
                              absl::Span<const SequenceId> ids) {
  for (SequenceId id : ids) {
    const Sequence& sequence = state->sequences.at(state->sequences.Find(id));
    if (!IsOnDevice(sequence) || sequence.last_step <= state->retired_step) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "sequence ", id.value(), " is written on the device by ", "step ",
        sequence.last_step, ", which is in flight; retire it first"));
  }
  for (SequenceId id : ids) {
    const uint32_t slot = state->sequences.Find(id);
    StartDownloads(state, slot, &state->transfers);
    UnseatFrom(state, slot, 0);
  }
  return absl::OkStatus();
}

void StartDownloads(CacheState* state, uint32_t slot,
                    LazyStack<TierTransfer>* transfers) {
  if (state->tiers.empty()) return;
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    const BlockPool& pool = state->PoolOf(group);
    DeviceTier& tier = *state->tiers[group.pool];
    const BlockId* table = state->sequences.blocks(slot, group);
    ForEachHeldBlockBackwards(*state, slot, g, [&](uint32_t logical) {
      const BlockId block = table[logical];
      if (tier.HostValid(block)) return;
      state->sequences.at(slot).settling = true;
      if (tier.InTransfer(block)) return;
      const uint32_t page = tier.PageOf(block);
      if (ContentSlots(pool, block) > 0) {
        transfers->push_back(
            Start(state, group.pool, page, PageTransfer::kDownload));
      } else {
        tier.MarkClean(page);
      }
    });
  }
}

void StartWriteBack(CacheState* state, uint32_t pages) {
  for (uint32_t pool = 0; pool < state->tiers.size(); ++pool) {
    DeviceTier& tier = *state->tiers[pool];
    for (uint32_t split = 0; split < tier.splits(); ++split) {
      for (uint32_t i = 0; i < pages && tier.dirty(split) > 0; ++i) {
        const uint32_t page = tier.FirstDirty(split);
        const BlockId block(tier.page(page).block - 1);
        state->transfers.push_back(
            Start(state, pool, page, PageTransfer::kDownload));
        // Its page in host memory is being written: not to be evicted, but to
        // keep its place in the order, behind what follows it.
        BlockPool& blocks = *state->pools[pool];
        if (blocks.state(block) == BlockState::kCached) blocks.HoldBack();
      }
    }
  }
}

absl::Status EndTransfer(CacheState* state, TransferId id, bool moved) {
  const auto number = static_cast<uint32_t>(id.value());
  uint32_t pool_number = static_cast<uint32_t>(state->tiers.size());
  while (pool_number > 0 &&
         state->device_first_page[pool_number - 1] > number) {
    --pool_number;
  }
  const uint32_t page =
      pool_number == 0 ? 0 : number - state->device_first_page[--pool_number];
  if (state->tiers.empty() || page >= state->tiers[pool_number]->capacity() ||
      NameOf(*state, pool_number, page) != id ||
      state->tiers[pool_number]->page(page).transfer == PageTransfer::kNone) {
    return absl::NotFoundError(
        absl::StrCat("no transfer ", id.value(), " is in flight"));
  }
  DeviceTier& tier = *state->tiers[pool_number];
  BlockPool& pool = *state->pools[pool_number];
  const BlockId block(tier.page(page).block - 1);
  if (!moved) ++state->transfers_failed;
  if (!moved && tier.page(page).transfer == PageTransfer::kUpload) {
    UnseatAll(state, pool_number, block);
    tier.AbandonUpload(page);
  } else {
    tier.FinishTransfer(page, moved, state->CurrentQuarantine());
  }
  if (pool.state(block) == BlockState::kCached) pool.EndHoldBack();
  // Freed meanwhile, it was waiting for this.
  if (pool.state(block) == BlockState::kQuarantined &&
      pool.QuarantineList(block) == state->TransferQuarantine()) {
    pool.EndQuarantine(block);
    SettleBlock(state, &pool, block);
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal

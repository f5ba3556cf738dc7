// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/page_table_export.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/residency.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

static_assert(sizeof(BlockId) == sizeof(int32_t),
              "tables are copied to the caller as they are");

absl::Status CheckLength(const char* array, size_t have, size_t need) {
  if (have >= need) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("array ", array, " has ", have, " entries, needs ", need));
}

uint32_t FirstOf(const CacheState& state, uint32_t slot,
                 const GroupGeometry& group) {
  const auto g = static_cast<uint32_t>(&group - state.groups.data());
  return state.sequences.extent(slot, g).first;
}

// Position of the first page behind the sinks; 0 if nothing was released.
int32_t FirstToken(const GroupGeometry& group, uint32_t first) {
  return first <= group.sink_blocks
             ? 0
             : static_cast<int32_t>(first * group.block_tokens);
}

// A block's page in the tier. REQUIRES: CheckResidency().
uint32_t PageIn(Tier tier, const DeviceTier* device, BlockId block) {
  return tier == Tier::kHost ? block.value() : device->PageOf(block);
}

// Whether the pages of all rows may be read in the tier.
absl::Status CheckResidency(const CacheState& state, const TableRows& rows,
                            const GroupGeometry& group, Tier tier) {
  const DeviceTier* device = state.TierOf(state.PoolOf(group));
  if (device == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < rows.size(); ++i) {
    const TableRow row = rows[i];
    const BlockId* table = state.sequences.blocks(row.slot, group);
    const uint64_t id = state.sequences.IdOf(row.slot).value();
    if (tier == Tier::kDevice && !IsOnDevice(state.sequences.at(row.slot))) {
      return absl::FailedPreconditionError(absl::StrCat(
          "sequence ", id, " is not at home on the device; SwapIn it"));
    }
    uint32_t pages = 0, moving = 0, missing = 0;
    group.ForEachHeldRun(
        FirstOf(state, row.slot, group), group.BlocksFor(row.tokens),
        [&](uint32_t begin, uint32_t end) {
          for (uint32_t b = begin; b < end; ++b) {
            const BlockId block = table[b];
            ++pages;
            if (tier == Tier::kHost ? device->HostValid(block)
                                    : device->DeviceValid(block)) {
              continue;
            }
            ++(device->InTransfer(block) ? moving : missing);
          }
        });
    if (moving + missing == 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "sequence ", id, ": of its ", pages, " pages ", moving + missing,
        tier == Tier::kHost ? " are newer on the device, "
                            : " are not valid on the device, ",
        moving, " of these on their way"));
  }
  return absl::OkStatus();
}

// Copies a row's pages to `target`; the caller has checked the room.
void CopyPages(const CacheState& state, const TableRow& row,
               const GroupGeometry& group, Tier tier, int32_t* target) {
  const BlockId* table = state.sequences.blocks(row.slot, group);
  const DeviceTier* device = state.TierOf(state.PoolOf(group));
  group.ForEachHeldRun(
      FirstOf(state, row.slot, group), group.BlocksFor(row.tokens),
      [&](uint32_t begin, uint32_t end) {
        if (tier == Tier::kHost) {
          std::memcpy(target, table + begin, (end - begin) * sizeof(int32_t));
          target += end - begin;
          return;
        }
        for (; begin < end; ++begin) {
          *target++ = static_cast<int32_t>(device->PageOf(table[begin]));
        }
      });
}

uint32_t PagesOf(const CacheState& state, const TableRow& row,
                 const GroupGeometry& group) {
  return group.HeldBlocks(FirstOf(state, row.slot, group),
                          group.BlocksFor(row.tokens));
}

int32_t LastPageTokens(const TableRow& row, const GroupGeometry& group,
                       uint32_t pages) {
  if (pages == 0) return 0;  // empty, or all released
  return static_cast<int32_t>((row.tokens - 1) % group.block_tokens + 1);
}

}  // namespace

absl::StatusOr<TableRows> TableRows::OfStep(const CacheState& state,
                                            StepId step) {
  const PlanRecord* record = state.FindStep(step);
  if (record == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("step ", step.value(), " is not in flight"));
  }
  for (size_t i = 0; i < record->entries.size(); ++i) {
    const SequenceId id = record->sequences[i].id;
    const uint32_t slot = state.sequences.Find(id);
    if (slot != SequenceTable::kNone && state.sequences.at(slot).table_epoch ==
                                            record->entries[i].table_epoch) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "tables of step ", step.value(), ": sequence ", id.value(),
        slot == SequenceTable::kNone ? " was freed" : " was changed",
        " since; export before you commit the next step"));
  }
  TableRows rows(state);
  rows.record_ = record;
  return rows;
}

absl::StatusOr<TableRows> TableRows::OfSequences(
    const CacheState& state, absl::Span<const SequenceId> ids) {
  for (SequenceId id : ids) {
    if (state.sequences.Find(id) == SequenceTable::kNone) {
      return absl::NotFoundError(absl::StrCat("no sequence ", id.value()));
    }
  }
  TableRows rows(state);
  rows.ids_ = ids;
  return rows;
}

TableRow TableRows::operator[](size_t i) const {
  if (record_ != nullptr) {
    return {record_->entries[i].slot, record_->sequences[i].Context().value()};
  }
  const uint32_t slot = state_->sequences.Find(ids_[i]);
  const Sequence& sequence = state_->sequences.at(slot);
  return {slot, sequence.tokens + sequence.lookahead};
}

PageTableSize SizeOf(const CacheState& state, const TableRows& rows,
                     const GroupGeometry& group) {
  PageTableSize size;
  size.sequences = rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t pages = PagesOf(state, rows[i], group);
    size.pages += pages;
    size.pages_per_row = std::max(size.pages_per_row, pages);
  }
  return size;
}

absl::StatusOr<PageTable> ExportCsr(const CacheState& state,
                                    const TableRows& rows,
                                    const GroupGeometry& group, Tier tier,
                                    const PageTableBuffers& buffers) {
  PAGED_KV_RETURN_IF_ERROR(CheckResidency(state, rows, group, tier));
  const size_t n = rows.size();
  PAGED_KV_RETURN_IF_ERROR(CheckLength("indptr", buffers.indptr.size(), n + 1));
  PAGED_KV_RETURN_IF_ERROR(
      CheckLength("last_page_tokens", buffers.last_page_tokens.size(), n));
  PAGED_KV_RETURN_IF_ERROR(
      CheckLength("first_token", buffers.first_token.size(), n));
  PAGED_KV_RETURN_IF_ERROR(CheckLength("page_indices",
                                       buffers.page_indices.size(),
                                       SizeOf(state, rows, group).pages));
  size_t pages = 0;
  for (size_t i = 0; i < n; ++i) {
    const TableRow row = rows[i];
    buffers.indptr[i] = static_cast<int32_t>(pages);
    CopyPages(state, row, group, tier, buffers.page_indices.data() + pages);
    const uint32_t row_pages = PagesOf(state, row, group);
    pages += row_pages;
    buffers.last_page_tokens[i] = LastPageTokens(row, group, row_pages);
    buffers.first_token[i] = FirstToken(group, FirstOf(state, row.slot, group));
  }
  buffers.indptr[n] = static_cast<int32_t>(pages);

  PageTable table;
  table.indptr = buffers.indptr.first(n + 1);
  table.page_indices = buffers.page_indices.first(pages);
  table.last_page_tokens = buffers.last_page_tokens.first(n);
  table.first_token = buffers.first_token.first(n);
  table.block_tokens = static_cast<int32_t>(group.block_tokens);
  table.sink_pages = static_cast<int32_t>(group.sink_blocks);
  return table;
}

absl::Status ExportPadded(const CacheState& state, const TableRows& rows,
                          const GroupGeometry& group, Tier tier,
                          const PaddedPageTableBuffers& buffers) {
  PAGED_KV_RETURN_IF_ERROR(CheckResidency(state, rows, group, tier));
  const size_t n = rows.size();
  const size_t needed = SizeOf(state, rows, group).pages_per_row;
  const auto width = static_cast<size_t>(std::max(buffers.width, 0));
  PAGED_KV_RETURN_IF_ERROR(CheckLength("width", width, needed));
  PAGED_KV_RETURN_IF_ERROR(
      CheckLength("page_indices", buffers.page_indices.size(), n * width));
  PAGED_KV_RETURN_IF_ERROR(CheckLength("tokens", buffers.tokens.size(), n));
  PAGED_KV_RETURN_IF_ERROR(
      CheckLength("first_token", buffers.first_token.size(), n));
  for (size_t i = 0; i < n; ++i) {
    const TableRow row = rows[i];
    int32_t* target = buffers.page_indices.data() + i * width;
    CopyPages(state, row, group, tier, target);
    std::fill(target + PagesOf(state, row, group), target + width,
              buffers.padding);
    buffers.tokens[i] = static_cast<int32_t>(row.tokens);
    buffers.first_token[i] = FirstToken(group, FirstOf(state, row.slot, group));
  }
  return absl::OkStatus();
}

absl::Status ExportSlots(const CacheState& state, const TableRows& rows,
                         const GroupGeometry& group, Tier tier,
                         absl::Span<int64_t> slots) {
  PAGED_KV_RETURN_IF_ERROR(CheckResidency(state, rows, group, tier));
  const DeviceTier* device = state.TierOf(state.PoolOf(group));
  const PlanRecord& record = *rows.record();
  size_t needed = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    needed += record.sequences[i].Rows().value();
  }
  PAGED_KV_RETURN_IF_ERROR(CheckLength("slots", slots.size(), needed));
  int64_t* target = slots.data();
  for (size_t i = 0; i < rows.size(); ++i) {
    const TableRow row = rows[i];
    const BlockId* table = state.sequences.blocks(row.slot, group);
    const uint32_t first = record.sequences[i].first_new.value();
    for (uint32_t position = first; position < row.tokens; ++position) {
      const BlockId block = table[position / group.block_tokens];
      *target++ = int64_t{PageIn(tier, device, block)} * group.block_tokens +
                  position % group.block_tokens;
    }
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal

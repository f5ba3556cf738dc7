// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The device tier's part of the facade.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/device_loss.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/residency.h"
#include "paged_kv/status_macros.h"
#include "paged_kv/tier_swap.h"

namespace paged_kv {
namespace {

using internal::CacheState;

// The transfers of a swap that has just been made, or its error.
absl::StatusOr<absl::Span<const TierTransfer>> Transfers(
    CacheState* state, const absl::Status& status) {
  if (!status.ok()) return status;
  ++state->version;
  return absl::MakeConstSpan(state->transfers.data(), state->transfers.size());
}

}  // namespace

absl::StatusOr<absl::Span<const TierTransfer>> KvCacheManager::SwapIn(
    absl::Span<const SequenceId> ids) {
  const auto swap = [&]() -> absl::Status {
    PAGED_KV_RETURN_IF_ERROR(CheckSwap(state_.get(), ids));
    return SwapSequencesIn(state_.get(), ids, internal::kAllTokens);
  };
  const auto transfers = Transfers(state_.get(), swap());
  state_->recorder.SwapIn(ids, internal::kAllTokens, transfers);
  return transfers;
}

absl::Status KvCacheManager::CheckSwapIn(absl::Span<const SequenceId> ids,
                                         BlockCount headroom) {
  PAGED_KV_RETURN_IF_ERROR(CheckSwap(state_.get(), ids));
  return internal::CheckSwapInRoom(state_.get(), ids, headroom.value());
}

absl::StatusOr<absl::Span<const TierTransfer>> KvCacheManager::SwapInPrefix(
    absl::Span<const SequenceId> ids, TokenCount tokens) {
  // However long, a prefix is not a home.
  const uint32_t limit = std::min(tokens.value(), internal::kAllTokens - 1);
  const auto swap = [&]() -> absl::Status {
    PAGED_KV_RETURN_IF_ERROR(CheckSwap(state_.get(), ids));
    return SwapSequencesIn(state_.get(), ids, limit);
  };
  const auto transfers = Transfers(state_.get(), swap());
  state_->recorder.SwapIn(ids, limit, transfers);
  return transfers;
}

absl::StatusOr<absl::Span<const TierTransfer>> KvCacheManager::SwapOut(
    absl::Span<const SequenceId> ids) {
  const auto swap = [&]() -> absl::Status {
    PAGED_KV_RETURN_IF_ERROR(CheckSwap(state_.get(), ids));
    return SwapSequencesOut(state_.get(), ids);
  };
  const auto transfers = Transfers(state_.get(), swap());
  state_->recorder.SwapOut(ids, transfers);
  return transfers;
}

absl::StatusOr<absl::Span<const TierTransfer>> KvCacheManager::WriteBack(
    BlockCount pages) {
  const auto write_back = [&]() -> absl::Status {
    PAGED_KV_RETURN_IF_ERROR(CheckSwap(state_.get(), {}));
    StartWriteBack(state_.get(), pages.value());
    return absl::OkStatus();
  };
  const auto transfers = Transfers(state_.get(), write_back());
  state_->recorder.WriteBack(pages, transfers);
  return transfers;
}

absl::Status KvCacheManager::FinishTransfer(TransferId id, bool moved) {
  const absl::Status status = EndTransfer(state_.get(), id, moved);
  if (status.ok()) ++state_->version;
  state_->recorder.FinishTransfer(id, moved, status);
  return status;
}

absl::StatusOr<DeviceLoss> KvCacheManager::LoseDevice() {
  absl::StatusOr<DeviceLoss> loss = internal::LoseDevice(state_.get());
  if (loss.ok()) ++state_->version;
  state_->recorder.LoseDevice(loss);
  return loss;
}

absl::StatusOr<SequenceResidency> KvCacheManager::Residency(
    SequenceId id) const {
  const uint32_t slot = state_->sequences.Find(id);
  if (slot == internal::SequenceTable::kNone) {
    return absl::NotFoundError(absl::StrCat("no sequence ", id.value()));
  }
  return internal::DescribeResidency(*state_, slot);
}

absl::StatusOr<size_t> KvCacheManager::ExportResidency(
    SequenceId id, GroupId group, absl::Span<BlockResidency> blocks) const {
  PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const BlockId> table,
                            BlockTable(id, group));
  if (blocks.size() < table.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "array blocks has ", blocks.size(), " entries, needs ", table.size()));
  }
  const CacheState& state = *state_;
  const internal::GroupGeometry& geometry = state.groups[group.value()];
  const internal::DeviceTier* tier = state.TierOf(state.PoolOf(geometry));
  const internal::Sequence& sequence =
      state.sequences.at(state.sequences.Find(id));
  for (uint32_t i = 0; i < table.size(); ++i) {
    BlockResidency& block = blocks[i];
    block = BlockResidency{};
    if (table[i] == kNoBlock) continue;
    block.host_valid = tier == nullptr || tier->HostValid(table[i]);
    if (tier == nullptr) continue;
    block.device_page = tier->PageOf(table[i]);
    block.device_valid = tier->DeviceValid(table[i]);
    block.seated = IsSeated(sequence, geometry, i);
    block.in_transfer = tier->InTransfer(table[i]);
  }
  return table.size();
}

}  // namespace paged_kv

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Moving sequences between host memory and the device. Transfers are appended
// to CacheState::transfers, which a swap empties first.

#ifndef PAGED_KV_TIER_SWAP_H_
#define PAGED_KV_TIER_SWAP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/tier_transfer.h"

namespace paged_kv::internal {

// FailedPrecondition without a device tier, NotFound or InvalidArgument for ids
// that are unknown or named twice.
absl::Status CheckSwap(CacheState* state, absl::Span<const SequenceId> ids);

// Seats the sequences on the device: on all their blocks, for which it then is
// their home, or (tokens < kAllTokens) on the whole blocks below `tokens`, and
// starts uploads of what it lacks. ResourceExhausted or OutOfRange if there are
// not enough pages, in any split, for all of them; then nothing has changed.
// REQUIRES: CheckSwap().
absl::Status SwapSequencesIn(CacheState* state,
                             absl::Span<const SequenceId> ids, uint32_t tokens);

// Whether SwapSequencesIn() of the whole sequences would find room and leave
// `headroom` pages of each split besides. REQUIRES: CheckSwap().
absl::Status CheckSwapInRoom(CacheState* state,
                             absl::Span<const SequenceId> ids,
                             uint32_t headroom);

// Gives up the seats and makes host memory the home, and starts downloads of
// what is valid on the device alone. FailedPrecondition if a step in flight
// writes to the device. REQUIRES: CheckSwap().
absl::Status SwapSequencesOut(CacheState* state,
                              absl::Span<const SequenceId> ids);

// Starts downloads of at most `pages` dirty pages of each split, oldest first,
// that nobody is seated on.
void StartWriteBack(CacheState* state, uint32_t pages);

// NotFound if no such transfer is in flight. An upload that failed leaves the
// block without a page, and whoever was seated there with what comes before it;
// a download that failed leaves the page dirty.
absl::Status EndTransfer(CacheState* state, TransferId id, bool moved);

// Starts moving to host memory what the sequence holds and is valid on the
// device alone; appends to *transfers.
void StartDownloads(CacheState* state, uint32_t slot,
                    LazyStack<TierTransfer>* transfers);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_TIER_SWAP_H_

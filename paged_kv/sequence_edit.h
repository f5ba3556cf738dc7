// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens to a sequence outside of steps.

#ifndef PAGED_KV_SEQUENCE_EDIT_H_
#define PAGED_KV_SEQUENCE_EDIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/prefix_lookup.h"

namespace paged_kv::internal {

// Gives an open, empty sequence (or pin) the blocks of a cached prefix.
void HoldPrefix(CacheState* state, uint32_t slot, const PrefixHit& hit);

// Recounts the slots of the blocks that may hold positions from `first` up to
// the sequence's end or `old_end`, whichever is later. Shared blocks keep
// their count. Cost: the blocks between.
void UpdateFill(CacheState* state, uint32_t slot, uint32_t first,
                uint32_t old_end);

absl::Status SetTokenValues(CacheState* state, uint32_t slot, uint32_t first,
                            absl::Span<const TokenId> tokens);
absl::Status AcceptDrafts(CacheState* state, uint32_t slot,
                          absl::Span<const TokenId> tokens);
absl::Status TruncateSequence(CacheState* state, uint32_t slot,
                              uint32_t tokens);
// The new sequence's slot.
absl::StatusOr<uint32_t> ForkSequence(CacheState* state, uint32_t parent);
// Frees a sequence or pin.
void CloseSequence(CacheState* state, uint32_t slot);
// The pin's slot.
absl::StatusOr<uint32_t> PinPrefix(CacheState* state,
                                   absl::Span<const TokenId> prompt,
                                   KeyExtras extras);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_SEQUENCE_EDIT_H_

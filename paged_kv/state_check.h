// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_STATE_CHECK_H_
#define PAGED_KV_STATE_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "paged_kv/cache_state.h"

namespace paged_kv::internal {

// The first broken invariant, or OK:
//  1. the parts' own invariants (BlockPool, PrefixIndex);
//  2. a block's references are its occurrences in block tables;
//  3. a sequence holds exactly the blocks that its length, reserve and windows
//     ask for; only blocks at its end are partly filled;
//  4. a held block's filled slots are those its owners have tokens for, where
//     it can be written (others may keep more);
//  5. a sequence's indexed chunks hold its own tokens, chunk by chunk;
//  6. written <= tokens, drafts only behind the last token.
absl::Status CheckState(const CacheState& state);

// Hash of all that an engine could ever observe.
uint64_t FingerprintOf(const CacheState& state);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_STATE_CHECK_H_

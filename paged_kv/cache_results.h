// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What calls of the manager answer.

#ifndef PAGED_KV_CACHE_RESULTS_H_
#define PAGED_KV_CACHE_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "paged_kv/tier_transfer.h"
#include "paged_kv/types.h"

namespace paged_kv {

// Answer of Lookup(): prompt tokens whose K/V the cache has.
struct Prefix {
  TokenCount hit_tokens;
};

struct SequenceInfo {
  TokenCount tokens;         // computed or in flight
  TokenCount written;        // of these, retired
  TokenCount known;          // whose values are known (a prompt's may be ahead)
  TokenCount lookahead;      // unaccepted draft slots
  TokenCount cached_tokens;  // found in the cache at admission
};

struct PageTableSize {
  size_t sequences = 0;
  size_t pages = 0;          // entries of the CSR form
  size_t pages_per_row = 0;  // width of the padded form
};

// Answer of Allocate() and Append(): one sequence, one committed step.
struct Admission {
  SequenceId id;
  StepId step;
  TokenCount cached_tokens;
};

// Where the K/V of a block is.
struct BlockResidency {
  uint32_t device_page = kNoPage;  // its page on the device, if it has one
  bool host_valid = false;         // host memory has the latest
  bool device_valid = false;       // the device has
  bool seated = false;             // its sequence keeps the page there
  bool in_transfer = false;
};

// Where the K/V of a sequence is, over all layer groups.
struct SequenceResidency {
  Tier home = Tier::kHost;  // where its steps read and write
  BlockCount blocks;        // that it holds
  // Of these, not valid at home: on their way there, and neither valid nor on
  // their way (a transfer failed: swap in or out again).
  BlockCount moving;
  BlockCount missing;
  Bytes bytes;              // of all its pages in one tier
  Bytes device_only_bytes;  // of those that host memory has not
};

// Answer of LoseDevice(): what was on the device and nowhere else.
struct DeviceLoss {
  std::vector<SequenceId> sequences;  // freed, because they held some of it
  std::vector<PinId> pins;            // ended for the same reason
  BlockCount blocks;                  // whose K/V it was, cached ones included
};

}  // namespace paged_kv

#endif  // PAGED_KV_CACHE_RESULTS_H_

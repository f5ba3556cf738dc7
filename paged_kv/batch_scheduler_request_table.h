// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_REQUEST_TABLE_H_
#define PAGED_KV_BATCH_SCHEDULER_REQUEST_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_request.h"
#include "paged_kv/batch_scheduler_request_state.h"

namespace paged_kv::internal {

// The requests that a scheduler knows, in slots made at the start. A request
// stays in its slot until it is released. Thread safety: thread-compatible.
class RequestTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  // `max_draft_tokens`: drafts that a sample keeps.
  explicit RequestTable(uint32_t max_requests, uint32_t max_draft_tokens = 0);

  // ResourceExhausted if full, AlreadyExists if the id is known.
  absl::Status CheckRoomFor(RequestId id) const;

  // Copies a request into a free slot, with all its samples unborn.
  // REQUIRES: CheckRoomFor(request.id) is OK.
  uint32_t Insert(const GenerationRequest& request);
  // Forgets a request.
  void Release(uint32_t slot);

  // kNone if unknown.
  uint32_t Find(RequestId id) const;

  uint32_t slots() const { return static_cast<uint32_t>(requests_.size()); }
  uint32_t size() const { return slots() - free_slots(); }
  uint32_t free_slots() const { return static_cast<uint32_t>(free_.size()); }

  RequestState& at(uint32_t slot) { return requests_[slot]; }
  const RequestState& at(uint32_t slot) const { return requests_[slot]; }
  SampleState& at(SampleRef ref) {
    return requests_[ref.request].samples[ref.sample];
  }
  const SampleState& at(SampleRef ref) const {
    return requests_[ref.request].samples[ref.sample];
  }
  RankedSample Ranked(SampleRef ref) const {
    return {requests_[ref.request].RankOf(ref.sample), ref};
  }

  // Slots, ids and states agree.
  absl::Status CheckInvariants() const;

 private:
  const uint32_t max_draft_tokens_;
  std::vector<RequestState> requests_;
  std::vector<uint32_t> free_;  // slots, last taken first
  absl::flat_hash_map<RequestId, uint32_t> slots_;
  uint64_t last_generation_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_REQUEST_TABLE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The naive model: KvCacheManager's contract told again, in the plainest
// containers, with no code of paged_kv behind it. It predicts the status, the
// hits, the blocks and the order of eviction of every call. The one thing that
// it cannot know is which free block the manager takes; it learns that from
// the plan and checks that the block was free.

#ifndef PAGED_KV_TESTS_SUPPORT_REFERENCE_KV_CACHE_H_
#define PAGED_KV_TESTS_SUPPORT_REFERENCE_KV_CACHE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "paged_kv/cache_event.h"
#include "paged_kv/cache_stats.h"
#include "paged_kv/key_extras.h"
#include "paged_kv/kv_cache_options.h"
#include "paged_kv/step.h"
#include "paged_kv/types.h"
#include "tests/support/reference_content.h"
#include "tests/support/reference_pool.h"
#include "tests/support/reference_types.h"

namespace paged_kv::testing {

// Rules where the public contract leaves a choice are in the comments of the
// methods. Calls return the status code that the manager has to give; unless
// it is OK, nothing changes. Thread safety: none.
class ReferenceKvCache {
 public:
  // REQUIRES: Validate(options) is OK.
  explicit ReferenceKvCache(const KvCacheOptions& options);

  // ---- Questions ----

  struct Hit {
    uint32_t tokens = 0;
    ReferenceContent* content = nullptr;
  };
  absl::StatusCode Lookup(absl::Span<const TokenId> prompt, KeyExtras extras,
                          Hit* hit);

  // Checks, per request and in this order: (extend) the id, twice in one step,
  // no rows, the length limit, more values than the step has positions;
  // (admit) empty prompt, priority, length limit, extras, room for a
  // sequence; then, both, that the sequence alone fits every pool, then that
  // every pool has the blocks now.
  // - Hits are those of the cache as it is, short of a block that an earlier
  //   request of the step extends in place; a hit of any request is not
  //   evicted for another one.
  // - A prompt that is prefilled in chunks has to fit as a whole in the groups
  //   without a window.
  // - Growth that needs no block of a pool is never refused.
  void Plan(absl::Span<const StepRequest> requests, bool fitting,
            ReferencePlan* plan);
  // Empty if the blocks that `view` names are a right choice for `plan`: free
  // ones first, then cached ones in the order of eviction, none twice.
  std::string CheckChoice(const ReferencePlan& plan, const StepView& view);

  const ReferenceSequence* Find(SequenceId id) const;
  bool HasPin(PinId pin) const { return pins_.contains(pin); }
  const std::deque<ReferenceStep>& in_flight() const { return in_flight_; }
  const ReferenceStep* FindStep(StepId step) const;
  // True if the tables of a step in flight are still those it was made with.
  bool TablesUnchanged(const ReferenceStep& step) const;
  const std::vector<SequenceId>& living() const { return living_; }
  std::vector<PinId> PinIds() const;

  const KvCacheOptions& options() const { return options_; }
  const std::vector<ReferenceGroup>& groups() const { return groups_; }
  const ReferencePool& pool(uint32_t i) const { return pools_[i]; }
  size_t pools() const { return pools_.size(); }
  uint32_t chunk_tokens() const { return chunk_tokens_; }
  CacheStats Stats() const;
  // Events not drained yet, the oldest first; digests are left out.
  const std::deque<CacheEvent>& events() const { return events_; }

  // Recounts everything from the tables; empty if the numbers kept agree.
  std::string Recount() const;

  // ---- Changes ----

  // `view` is the committed one; `requests` those of the plan.
  void Commit(const ReferencePlan& plan, absl::Span<const StepRequest> requests,
              const StepView& view, StepId step);
  absl::StatusCode Retire(StepId step);
  absl::StatusCode MarkWritten(StepId step, uint32_t layer);
  // Values may be given ahead of the tokens, up to the length limit.
  absl::StatusCode SetTokens(SequenceId id, uint32_t first,
                             absl::Span<const TokenId> tokens);
  absl::StatusCode Accept(SequenceId id, absl::Span<const TokenId> tokens);
  absl::StatusCode Truncate(SequenceId id, uint32_t tokens);
  // The child is named after the manager has; `code` before.
  absl::StatusCode CanFork(SequenceId parent) const;
  void Fork(SequenceId parent, SequenceId child);
  absl::StatusCode Free(SequenceId id);
  void FreeAll();
  absl::StatusCode Reset();
  absl::StatusCode CanPin(absl::Span<const TokenId> prompt, KeyExtras extras,
                          Hit* hit);
  void Pin(const Hit& hit, PinId pin);
  absl::StatusCode Unpin(PinId pin);
  void DrainEvents(size_t moved);

  // The write number of the next row that a commit plans; rows are numbered
  // in the order of the slot mapping.
  uint64_t next_write() const { return next_write_; }

 private:
  friend class ReferencePlanner;

  // ---- Content ----
  absl::StatusCode MakeExtras(KeyExtras extras, size_t prompt_tokens,
                              ReferenceExtras* by_chunk) const;
  Hit FindPrefix(absl::Span<const TokenId> prompt,
                 const ReferenceExtras& extras) const;
  bool Usable(const ReferenceContent* tip, uint32_t tokens) const;
  // f(group, logical, block) for the blocks that continuing behind `hit` needs.
  template <typename F>
  void ForEachHitBlock(const Hit& hit, F f) const;
  void ShareWritten(ReferenceSequence* sequence);
  void Emit(CacheEvent::Kind kind, uint32_t place);
  void DropContent(uint32_t pool, uint32_t block);

  // ---- Blocks ----
  void TakeBlock(uint32_t pool, uint32_t block);
  void ReleaseBlock(uint32_t pool, uint32_t block, uint32_t priority);
  void SettleBlock(uint32_t pool, uint32_t block);
  void ReleaseFrom(ReferenceSequence* sequence, uint32_t g, uint32_t keep);
  void ReleaseOutsideWindow(ReferenceSequence* sequence);
  void UpdateFill(ReferenceSequence* sequence, uint32_t first);

  // ---- Sequences ----
  ReferenceSequence* Mutable(SequenceId id);
  ReferenceSequence* Open(SequenceId id);
  void HoldPrefix(const Hit& hit, ReferenceSequence* sequence);
  void Close(ReferenceSequence* sequence);
  void CommitPart(const PlannedSequence& planned, const StepRequest& request);
  std::string RecountReferences() const;

  KvCacheOptions options_;
  std::vector<ReferenceGroup> groups_;
  std::vector<ReferencePool> pools_;
  uint32_t chunk_tokens_ = 1;
  struct Place {
    uint32_t group, block_in_chunk;
  };
  std::vector<Place> places_;
  std::unique_ptr<ReferenceContents> contents_;
  bool quiet_ = false;  // no events

  using Sequences =
      absl::flat_hash_map<SequenceId, std::unique_ptr<ReferenceSequence>>;
  Sequences sequences_;
  std::vector<SequenceId> living_;  // by the slot that the id names
  absl::flat_hash_map<PinId, std::unique_ptr<ReferenceSequence>> pins_;
  std::vector<std::unique_ptr<ReferenceSequence>> spare_;  // to save malloc
  std::deque<ReferenceStep> in_flight_;
  std::deque<CacheEvent> events_;
  uint64_t next_write_ = 1;
  CacheStats counters_;  // its pools are unused
};

template <typename F>
void ReferenceKvCache::ForEachHitBlock(const Hit& hit, F f) const {
  const ReferenceContent* content = hit.content;
  for (uint32_t chunk = hit.tokens / chunk_tokens_; chunk-- > 0;) {
    for (uint32_t place = 0; place < places_.size(); ++place) {
      const uint32_t g = places_[place].group;
      const ReferenceGroup& group = groups_[g];
      const uint32_t logical = chunk * (chunk_tokens_ / group.block_tokens) +
                               places_[place].block_in_chunk;
      if (logical >= group.sink_blocks &&
          logical < group.FirstNeeded(hit.tokens)) {
        continue;
      }
      f(g, logical, content->copies[place].front());
    }
    content = content->parent;
  }
}

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_REFERENCE_KV_CACHE_H_

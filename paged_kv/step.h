// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A step: what one forward pass of the engine does to the cache.

#ifndef PAGED_KV_STEP_H_
#define PAGED_KV_STEP_H_

#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "paged_kv/eviction_policy.h"
#include "paged_kv/key_extras.h"
#include "paged_kv/tier_transfer.h"
#include "paged_kv/types.h"

namespace paged_kv {

// One sequence's wish for a step. Spans are borrowed until Plan() returns.
struct StepRequest {
  enum class Kind : uint8_t { kAdmit, kExtend };

  Kind kind = Kind::kExtend;

  // kExtend: the sequence to grow.
  SequenceId id;

  // kAdmit: the whole prompt, not empty.
  // kExtend: values of the next tokens whose values are not known yet; may be
  // shorter than new_tokens or empty (SetTokens fills them in later).
  absl::Span<const TokenId> tokens;

  // kExtend: tokens to compute, at least 1 unless lookahead is.
  // kAdmit: at most so many prompt tokens (chunked prefill); 0: all that the
  // cache does not have.
  TokenCount new_tokens{0};

  // Slots for draft tokens behind the new ones. They belong to the sequence
  // only after Accept(); the next step on it drops the others.
  TokenCount lookahead{0};

  // Hold blocks for at least this many tokens in all; 0: only what is needed.
  TokenCount reserve_tokens{0};

  // kAdmit only.
  KeyExtras extras;
  uint32_t priority = kDefaultPriority;  // of its blocks once they are cached
  bool share = true;  // false: neither uses nor enters the prefix index

  static StepRequest Admit(absl::Span<const TokenId> prompt,
                           KeyExtras extras = {}) {
    StepRequest request;
    request.kind = Kind::kAdmit;
    request.tokens = prompt;
    request.extras = extras;
    return request;
  }
  static StepRequest Extend(SequenceId id, TokenCount new_tokens) {
    StepRequest request;
    request.id = id;
    request.new_tokens = new_tokens;
    return request;
  }
  static StepRequest Extend(SequenceId id, absl::Span<const TokenId> tokens) {
    StepRequest request;
    request.id = id;
    request.tokens = tokens;
    request.new_tokens = TokenCount(static_cast<uint32_t>(tokens.size()));
    return request;
  }
};

// One sequence's part in a planned step, in the order of the requests.
struct PlannedSequence {
  SequenceId id;  // of an admission: valid once the plan is committed
  StepRequest::Kind kind = StepRequest::Kind::kExtend;
  uint32_t request = 0;      // index in the requests given to Plan()
  TokenCount cached_tokens;  // kAdmit: prompt tokens found in the cache
  TokenPos first_new;        // position of the first token to compute
  TokenCount new_tokens;     // to compute
  TokenCount lookahead;      // draft slots behind them

  // Rows of queries that the step computes for this sequence.
  TokenCount Rows() const { return new_tokens + lookahead; }
  // Tokens whose K/V the step's attention sees.
  TokenCount Context() const { return TokenCount(first_new.value()) + Rows(); }
};

// A block that the step gives to a sequence.
struct NewBlock {
  uint32_t sequence = 0;  // index in StepView::sequences
  GroupId group;
  uint32_t logical = 0;  // place in the sequence's block table
  BlockId block;
  // Of a sequence on the device: its page there, once the step is committed.
  uint32_t device_page = kNoPage;
};

// Copy-on-write: before the step writes, copy the filled slots of `source` to
// `target` in every layer of the group. All copies of a step may run in any
// order, but before its first write.
struct BlockCopy {
  uint32_t sequence = 0;
  GroupId group;
  BlockId source;
  BlockId target;
  uint32_t filled_tokens = 0;
  // Where the copy is made, known once the step is committed. In host memory
  // the pages are those of the blocks, which is what they are here.
  Tier tier = Tier::kHost;
  uint32_t source_page = kNoPage;
  uint32_t target_page = kNoPage;
};

// Plain data of a step. The arrays belong to the manager and live until the
// plan is dropped or its step retires.
struct StepView {
  absl::Span<const PlannedSequence> sequences;
  absl::Span<const NewBlock> new_blocks;
  absl::Span<const BlockCopy> copies;
  // Once committed: what an admission found in the cache that is valid on the
  // device alone. To be moved before the step runs (KvCacheManager::SwapIn).
  absl::Span<const TierTransfer> transfers;
};

namespace internal {
struct PlanRecord;
}  // namespace internal

// An uncommitted step. Dropping it rolls it back: planning has no visible
// effect. Becomes stale when the cache changes or another plan is made.
class StepPlan {
 public:
  StepPlan() = default;
  StepPlan(StepPlan&& other) noexcept { *this = std::move(other); }
  StepPlan& operator=(StepPlan&& other) noexcept {
    record_ = std::exchange(other.record_, nullptr);
    ticket_ = std::exchange(other.ticket_, 0);
    view_ = std::exchange(other.view_, StepView{});
    return *this;
  }
  StepPlan(const StepPlan&) = delete;
  StepPlan& operator=(const StepPlan&) = delete;

  const StepView& view() const { return view_; }

 private:
  friend class KvCacheManager;

  internal::PlanRecord* record_ = nullptr;
  uint64_t ticket_ = 0;
  StepView view_;
};

}  // namespace paged_kv

#endif  // PAGED_KV_STEP_H_

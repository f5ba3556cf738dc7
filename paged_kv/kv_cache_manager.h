// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The only header an engine needs. An engine's step:
//
//   auto plan = cache->Plan(requests);            // who computes what
//   auto step = cache->Commit(*std::move(plan));  // blocks are theirs now
//   cache->ExportPageTable(*step, group, tables); // where K/V lies
//   ... copy StepView::copies, run the model, which writes K/V ...
//   cache->Retire(*step);                         // K/V is written, shareable
//
// docs/examples/embed.cc is a whole program.

#ifndef PAGED_KV_KV_CACHE_MANAGER_H_
#define PAGED_KV_KV_CACHE_MANAGER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/cache_event.h"
#include "paged_kv/cache_results.h"
#include "paged_kv/cache_stats.h"
#include "paged_kv/key_extras.h"
#include "paged_kv/kv_cache_options.h"
#include "paged_kv/page_table.h"
#include "paged_kv/shortage.h"
#include "paged_kv/step.h"
#include "paged_kv/tier_transfer.h"
#include "paged_kv/types.h"

namespace paged_kv {

namespace internal {
struct CacheState;
}  // namespace internal

// Manages the blocks of many sequences in fixed pools: who holds which block,
// which content is shared, what is evicted. Knows tokens and ids, never
// touches K or V. Every mutator is all-or-nothing: on error nothing changed.
// Common errors: NotFound (unknown or freed id), ResourceExhausted (not now:
// free, preempt or wait, as ShortageOf() tells), OutOfRange (never fits),
// FailedPrecondition (not in this state), Aborted (stale plan: plan again),
// InvalidArgument.
//
// Thread safety: const methods may run concurrently with each other, mutators
// may not; ThreadSafeKvCache (thread_safe_kv_cache.h) adds a lock.
// Invariants: CheckInvariants() lists them.
class KvCacheManager {
 public:
  static absl::StatusOr<std::unique_ptr<KvCacheManager>> Create(
      const KvCacheOptions& options);
  ~KvCacheManager();
  KvCacheManager(const KvCacheManager&) = delete;
  KvCacheManager& operator=(const KvCacheManager&) = delete;

  // ---- The step ----

  // How much of `prompt` a sequence admitted now would find. Takes nothing
  // and does not touch the eviction order. At least one token is left to
  // compute. InvalidArgument for extras that do not fit the options.
  absl::StatusOr<Prefix> Lookup(absl::Span<const TokenId> prompt,
                                KeyExtras extras = {}) const;

  // Works out a step without visible effect. All requests or none.
  // ResourceExhausted: blocks, sequences or steps are lacking now.
  // OutOfRange: a request would not fit an empty cache.
  // Replaces any uncommitted plan.
  absl::StatusOr<StepPlan> Plan(absl::Span<const StepRequest> requests);

  // Like Plan(), but leaves out the requests that are refused, in order:
  // earlier ones have the first claim. outcomes[i] says why request i was
  // left out, or is OK. REQUIRES: outcomes.size() == requests.size().
  absl::StatusOr<StepPlan> PlanFitting(absl::Span<const StepRequest> requests,
                                       absl::Span<absl::Status> outcomes);

  // Publishes a plan. Aborted if the cache changed since it was made or the
  // plan was replaced or committed before. A failed commit drops the plan.
  absl::StatusOr<StepId> Commit(StepPlan plan);

  // The K/V of `step` is written: its full blocks become shareable, blocks
  // outside windows and blocks freed while it ran are released. Steps retire
  // in commit order; FailedPrecondition otherwise, NotFound if unknown.
  absl::Status Retire(StepId step);

  // Layers [0, layer] of all groups are written, for layer-wise hand-off.
  // Monotone; Retire() completes it.
  absl::Status MarkWritten(StepId step, uint32_t layer);
  absl::StatusOr<uint32_t> LayersWritten(StepId step) const;

  // The data of a committed step that has not retired.
  absl::StatusOr<StepView> View(StepId step) const;

  // Values of tokens that were planned without them. `first` must be the first
  // position whose value is unknown.
  absl::Status SetTokens(SequenceId id, TokenPos first,
                         absl::Span<const TokenId> tokens);

  // Makes the first tokens.size() draft slots of the sequence's last step
  // tokens of the sequence and drops the other drafts. FailedPrecondition
  // until that step retired and all earlier values are known.
  absl::Status Accept(SequenceId id, absl::Span<const TokenId> tokens);

  // Keeps the first `tokens` tokens; drops the rest, drafts and reserve.
  // FailedPrecondition if a windowed group has already released a block that
  // the kept tokens' successors would need.
  absl::Status Truncate(SequenceId id, TokenCount tokens);

  // A new sequence with the same tokens, sharing every block. Takes no block:
  // whoever first writes into a shared partial block gets a copy then.
  // FailedPrecondition unless all tokens are written and no drafts are open.
  absl::StatusOr<SequenceId> Fork(SequenceId parent);

  absl::Status Free(SequenceId id);
  // Frees every sequence (pins stay).
  void FreeAll();

  // Drops all cached content. FailedPrecondition while anything is held or in
  // flight.
  absl::Status Reset();

  // ---- One-call conveniences: Plan + Commit of one request ----

  absl::StatusOr<Admission> Allocate(absl::Span<const TokenId> prompt,
                                     KeyExtras extras = {});
  absl::StatusOr<Admission> Append(SequenceId id,
                                   absl::Span<const TokenId> tokens);

  // ---- Pins ----

  // Keeps what the cache has of `prompt` from eviction. NotFound if it has
  // nothing. Pinned slots count as live.
  absl::StatusOr<PinId> Pin(absl::Span<const TokenId> prompt,
                            KeyExtras extras = {});
  absl::Status Unpin(PinId pin);

  // ---- The device tier (KvCacheOptions::device) ----
  //
  // A sequence is at home in host memory, where it begins, or on the device:
  // there its steps write and read. The calls return transfers to be carried
  // out, in any order; the span is valid until the next of them. Each is to be
  // reported to FinishTransfer(), also if its sequence was freed: until then
  // its pages are nobody else's. FailedPrecondition without a device tier.

  // Makes the device the home of the sequences; uploads what it lacks. "Not
  // now" answers steps planned on them until their uploads have finished.
  // Steps that still write them in host memory may be in flight (hand-off:
  // TierTransfer::after_step).
  absl::StatusOr<absl::Span<const TierTransfer>> SwapIn(
      absl::Span<const SequenceId> ids);
  // What SwapIn(ids) would answer, if beside the watermark `headroom` pages of
  // each split had to stay free. Changes nothing, but is no const method.
  absl::Status CheckSwapIn(absl::Span<const SequenceId> ids,
                           BlockCount headroom);
  // Keeps copies of the whole blocks of their first `tokens` tokens on the
  // device, while host memory stays their home: for prompts that are still
  // being computed, and for attention by device and host together.
  absl::StatusOr<absl::Span<const TierTransfer>> SwapInPrefix(
      absl::Span<const SequenceId> ids, TokenCount tokens);
  // Makes host memory the home of the sequences and gives their pages on the
  // device up; downloads what only these hold. FailedPrecondition while a step
  // that writes them there is in flight. Also repeats downloads that failed.
  absl::StatusOr<absl::Span<const TierTransfer>> SwapOut(
      absl::Span<const SequenceId> ids);
  // Downloads at most so many pages of each split, oldest first, which no
  // sequence on the device uses and which cannot be evicted because nothing
  // else holds their K/V.
  absl::StatusOr<absl::Span<const TierTransfer>> WriteBack(BlockCount pages);

  // The transfer has ended; `moved`: all its bytes are where they should be. If
  // not, an upload takes its block, and those after it, from the device (swap
  // in again); a download leaves the K/V on the device (swap out again).
  // NotFound if none is in flight.
  absl::Status FinishTransfer(TransferId id, bool moved);

  // What the device held is gone (a reset, a crash). Blocks of which host
  // memory has a copy stay where they are, without a page on the device. K/V
  // that was on the device alone is lost: cached content is dropped, sequences
  // and pins that hold some of it are freed and named, steps in flight or not;
  // the engine submits them again. All others are at home in host memory
  // afterwards and as they were. Steps in flight that write on the device are
  // then of freed sequences only; retire them all the same. FailedPrecondition
  // while transfers are in flight: whether what they moved has arrived is for
  // FinishTransfer() to say.
  absl::StatusOr<DeviceLoss> LoseDevice();

  // Works without a device tier, too. O(blocks of the sequence).
  absl::StatusOr<SequenceResidency> Residency(SequenceId id) const;

  // Where the K/V of each block of BlockTable(id, group) is; returns how many
  // there are. InvalidArgument if `blocks` is shorter.
  absl::StatusOr<size_t> ExportResidency(
      SequenceId id, GroupId group, absl::Span<BlockResidency> blocks) const;

  // ---- What kernels need ----

  // Sizes of the exports of `step`.
  absl::StatusOr<PageTableSize> TableSize(StepId step, GroupId group) const;

  // Fills the caller's arrays with the page tables of the step's sequences, in
  // its order, its new tokens and drafts included; the pages stay valid until
  // the step retires. InvalidArgument if an array is too short.
  // FailedPrecondition if a later step, Truncate or Free has changed one of
  // the sequences since: export before you commit the next step; and if K/V of
  // theirs is not valid in the tier.
  absl::StatusOr<PageTable> ExportPageTable(StepId step, GroupId group,
                                            const PageTableBuffers& buffers,
                                            Tier tier = Tier::kHost) const;
  absl::Status ExportPaddedPageTable(StepId step, GroupId group,
                                     const PaddedPageTableBuffers& buffers,
                                     Tier tier = Tier::kHost) const;

  // slots [rows of all sequences]: page * block_tokens + offset of each new
  // token and draft, in order. Same errors.
  absl::Status ExportSlotMapping(StepId step, GroupId group,
                                 absl::Span<int64_t> slots,
                                 Tier tier = Tier::kHost) const;

  // The same for any living sequences, as they are now.
  absl::StatusOr<PageTableSize> TableSize(absl::Span<const SequenceId> ids,
                                          GroupId group) const;
  absl::StatusOr<PageTable> ExportPageTable(absl::Span<const SequenceId> ids,
                                            GroupId group,
                                            const PageTableBuffers& buffers,
                                            Tier tier = Tier::kHost) const;

  // Where the pages of a group lie. FailedPrecondition in metadata-only mode.
  absl::StatusOr<PageLayout> Layout(GroupId group) const;

  // ---- Inspection ----

  const KvCacheOptions& options() const;
  // Blocks of the pool that serves `group`.
  BlockCount PoolBlocks(GroupId group) const;
  // Blocks that could be taken now: free or evictable.
  BlockCount AvailableBlocks(GroupId group) const;
  // References to a block from sequences and pins; 0 if out of range.
  uint32_t RefCount(GroupId group, BlockId block) const;

  absl::StatusOr<SequenceInfo> Describe(SequenceId id) const;
  // Tokens with known values.
  absl::StatusOr<absl::Span<const TokenId>> Tokens(SequenceId id) const;
  // Blocks in logical order; kNoBlock where a window released one.
  absl::StatusOr<absl::Span<const BlockId>> BlockTable(SequenceId id,
                                                       GroupId group) const;
  std::vector<SequenceId> Sequences() const;

  CacheStats Stats() const;
  // Moves the oldest events to `events`, returns how many.
  size_t DrainEvents(absl::Span<CacheEvent> events);

  // Bytes of bookkeeping per block, without stored tokens and digests.
  double MetadataBytesPerBlock() const;

  // The first broken invariant, or OK. O(blocks + table entries).
  absl::Status CheckInvariants() const;
  // Equal for equal states, recorded or replayed. O(blocks + table entries).
  uint64_t Fingerprint() const;

 private:
  explicit KvCacheManager(std::unique_ptr<internal::CacheState> state);

  std::unique_ptr<internal::CacheState> state_;
};

}  // namespace paged_kv

#endif  // PAGED_KV_KV_CACHE_MANAGER_H_

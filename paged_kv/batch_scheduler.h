// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Continuous batching over a KvCacheManager. An engine's loop:
//
//   scheduler->Submit({.id = ..., .prompt = ..., .max_output_tokens = 100});
//   while (...) {
//     auto step = scheduler->Schedule();              // who computes what
//     if (step->empty()) ...                          // nothing to do now
//     cache->ExportPageTable(step->id, ...);          // where K/V lies
//     ... copy cache->View(step->id)->copies, run the model, sample ...
//     scheduler->Complete(step->id, sampled_tokens);  // ends or goes on
//     while (auto done = scheduler->TakeFinished()) ...
//   }
//
// With max_steps_in_flight = 2 call Schedule() again before Complete().

#ifndef PAGED_KV_BATCH_SCHEDULER_H_
#define PAGED_KV_BATCH_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_clock.h"
#include "paged_kv/batch_scheduler_options.h"
#include "paged_kv/batch_scheduler_request.h"
#include "paged_kv/batch_scheduler_stats.h"
#include "paged_kv/cache_results.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/tier_transfer.h"
#include "paged_kv/types.h"

namespace paged_kv {

namespace internal {
class SchedulerCore;
}  // namespace internal

// One sequence's part in a step.
struct WorkItem {
  RequestId request;
  uint32_t sample = 0;  // 0 while the prompt, which all samples share, is run
  SequenceId sequence;
  // Where the sequence's K/V is read and written: the tier whose page tables
  // the engine exports for it.
  Tier tier = Tier::kHost;
  TokenPos first_new;
  TokenCount new_tokens;
  // Values of the new tokens. One shorter than new_tokens if the last one is
  // being sampled by a step in flight. Valid until the step is completed or the
  // request is taken, whichever is first.
  absl::Span<const TokenId> tokens;
  // Guesses of the tokens behind the new ones (Propose()): rows to compute
  // behind them, which PlannedSequence::lookahead counts and page tables and
  // slot mappings include. Valid as long as `tokens`.
  absl::Span<const TokenId> drafts;
  // Tokens to sample behind the last new one: 0 inside a prompt, else 1; at
  // the end of a prompt one for each sample, in their order. With drafts, one
  // behind the last new token and one behind each draft.
  uint32_t outputs = 0;
};

// A committed step. Items are in the order of StepView::sequences and valid
// until the step is completed.
struct ScheduledStep {
  StepId id;
  absl::Span<const WorkItem> items;
  uint32_t outputs = 0;  // tokens that Complete() expects
  TokenCount new_tokens;
  TokenCount draft_tokens;

  // No step was made: there is no request, or all wait for steps or transfers
  // in flight.
  bool empty() const { return items.empty(); }
};

// Decides which requests run in each step.
//
// Order: rank is priority, then arrival. Each step takes running decodes
// first, then chunks of running prompts, then waiting requests, each in the
// order of rank and within the token and sequence budgets. Nobody overtakes a
// waiting request of better rank, except while that one waits for a prefix
// which another request is computing (for a bounded number of steps).
//
// Memory: whoever cannot grow makes the running sequence of the worst rank
// below its own give up its blocks, or pauses if it is the worst itself. The
// loser keeps its tokens and its rank, and recomputes what the cache has lost
// meanwhile (preemption by recompute). Where decodes run on a device, whoever
// lacks pages there makes the worst one on the device go back to host memory
// (preemption by swap); those who wait for the device enter it in the order of
// rank, and nobody overtakes one that finds no room. So the best-ranked request
// always proceeds, and since what could not run alone is refused by Submit(),
// every accepted request ends.
//
// Ownership: `cache` and `clock` are borrowed and outlive the scheduler. The
// scheduler plans, commits and retires its steps and frees its sequences;
// others may use the cache beside it, but may not keep an uncommitted plan
// over a call, nor swap the scheduler's sequences. Destruction frees the
// sequences of unfinished requests; steps in flight are then the caller's to
// retire.
//
// Errors leave everything as it was, unless said otherwise.
// Thread safety: thread-compatible; calls must not overlap.
class BatchScheduler {
 public:
  static absl::StatusOr<std::unique_ptr<BatchScheduler>> Create(
      KvCacheManager* cache, const Clock* clock,
      const BatchSchedulerOptions& options);
  ~BatchScheduler();
  BatchScheduler(const BatchScheduler&) = delete;
  BatchScheduler& operator=(const BatchScheduler&) = delete;

  // Queues a request. OutOfRange: it would not fit an empty cache, ever.
  // ResourceExhausted: max_requests are known. AlreadyExists: its id is.
  // InvalidArgument: empty prompt, no samples, extras that the cache refuses.
  absl::Status Submit(const GenerationRequest& request);

  // Ends a request wherever it is: waiting, running or in flight. NotFound if
  // unknown or taken, FailedPrecondition if it has already finished.
  absl::Status Cancel(RequestId id);

  // Ends one sample with the output that it has (the engine found a stop
  // string, say). FailedPrecondition if it has no output yet or has ended.
  absl::Status Finish(RequestId id, uint32_t sample);

  // Guesses of the next outputs of a sample that has output (speculative
  // decoding, Leviathan et al. 2023, arXiv:2211.17192). Its next decode checks
  // as many of them as max_draft_tokens, what it may still generate and what
  // the step has left over allow, unless memory is short: drafts never cost
  // anybody a token or a block. They replace those proposed before and are
  // forgotten with the next output. Where steps are scheduled ahead they help
  // only a sample whose last output is known when its decode is scheduled.
  //
  // What is generated does not change: an output counts as long as the draft
  // before it is what was sampled there. FailedPrecondition if the sample has
  // no output yet, has ended, or is in flight. NotFound if unknown.
  absl::Status Propose(RequestId id, uint32_t sample,
                       absl::Span<const TokenId> drafts);

  // Makes and commits the next step. FailedPrecondition: max_steps_in_flight
  // are in flight. ResourceExhausted: requests are there, nothing is in flight
  // and yet nothing can run, because others hold the cache's blocks.
  absl::StatusOr<ScheduledStep> Schedule();

  // The step has run: retires it and hands over what it sampled, the items'
  // outputs one after the other. Tokens of requests that have meanwhile ended
  // are ignored, but must be there; so are those behind the first one that
  // differs from its draft. Steps complete in the order in which they
  // were scheduled; FailedPrecondition otherwise, InvalidArgument if
  // tokens.size() != ScheduledStep::outputs. NotFound if others have freed a
  // sequence of the step; the rest of it is done nevertheless.
  absl::Status Complete(StepId step, absl::Span<const TokenId> tokens);

  // The engine has failed: no step in flight has run, or nobody knows. Their
  // sequences give up their blocks, so that nothing of these steps is ever
  // shared, and wait to compute again from what the cache has of them.
  absl::Status AbandonStepsInFlight();

  // ---- Where decodes run on a device (BatchSchedulerOptions::decode_tier)
  // ----
  //
  // The scheduler decides what moves, the engine moves it: after each
  // Schedule() it takes the transfers and carries them out, in any order, while
  // steps run. Until all have been reported an empty step may mean that these
  // are waited for. Once the scheduler is gone, those that are left are
  // reported to the cache.

  // What is to be moved since the last call; valid until the next one.
  absl::Span<const TierTransfer> TakeTransfers();

  // A transfer has ended (KvCacheManager::FinishTransfer). One that failed is
  // tried again as long as its K/V is needed; a request for which that fails
  // too often ends as kFailed, or computes its K/V again. NotFound if no such
  // transfer is in flight, FailedPrecondition if it was not taken.
  absl::Status FinishTransfer(TransferId id, bool moved);

  // Whether all K/V that a step in flight reads is where it is read. Not so for
  // a step that admits a sequence of which the cache found K/V on the device
  // alone, until this has been downloaded; an engine that cannot do so calls
  // AbandonStepsInFlight(). NotFound if no such step is in flight.
  absl::StatusOr<bool> ReadyToRun(StepId step) const;

  // The device has lost what it held: a card that was reset, a process that
  // died. Samples whose K/V was there alone give up their blocks and wait to
  // compute it again, from what host memory has of it; the others go on from
  // host memory and enter the device anew. No request fails, no output is lost.
  // Returns what KvCacheManager::LoseDevice() does; of its sequences those of
  // the scheduler are taken care of, others and pins are their owners' to
  // renew.
  //
  // Before it, AbandonStepsInFlight() (or Complete(), of steps that have run),
  // and FinishTransfer() of all transfers that were taken, moved = false for
  // those whose end nobody knows; FailedPrecondition otherwise. Transfers that
  // were not taken are called off. FailedPrecondition, too, where decodes run
  // in host memory, or while others have transfers in flight: then only the
  // scheduler's have been called off.
  absl::StatusOr<DeviceLoss> LoseDevice();

  // The next request that ended, in the order of ending.
  std::optional<FinishedRequest> TakeFinished();

  // NotFound if unknown or taken.
  absl::StatusOr<RequestProgress> Progress(RequestId id) const;
  // Prompt and output of a sample so far, and its output alone; valid until the
  // next non-const call.
  absl::StatusOr<absl::Span<const TokenId>> Tokens(RequestId id,
                                                   uint32_t sample) const;
  absl::StatusOr<absl::Span<const TokenId>> Output(RequestId id,
                                                   uint32_t sample) const;

  const BatchSchedulerOptions& options() const;
  BatchSchedulerStats Stats() const;

  // The first broken invariant, or OK. O(requests + their tokens).
  absl::Status CheckInvariants() const;

 private:
  explicit BatchScheduler(std::unique_ptr<internal::SchedulerCore> core);

  std::unique_ptr<internal::SchedulerCore> core_;
};

}  // namespace paged_kv

#endif  // PAGED_KV_BATCH_SCHEDULER_H_

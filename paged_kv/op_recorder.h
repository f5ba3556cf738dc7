// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The manager's side of the operation log.

#ifndef PAGED_KV_OP_RECORDER_H_
#define PAGED_KV_OP_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "paged_kv/cache_results.h"
#include "paged_kv/kv_cache_options.h"
#include "paged_kv/op_log.h"
#include "paged_kv/step.h"
#include "paged_kv/tier_transfer.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// Requests of a plan, for OpRecorder::Commit. `outcomes`: those of
// KvCacheManager::PlanFitting, empty for Plan. Refused requests are recorded,
// too, so that a replay makes the same call and refuses them again.
std::string EncodeRequests(absl::Span<const StepRequest> requests,
                           absl::Span<const absl::Status> outcomes = {});

// Writes a record for each mutating call, after it took effect or was refused.
// Without a log every call is one branch and allocates nothing.
//
// Calls that only plan are not recorded, for they change nothing; nor are
// refused commits. Allocate() and Append() appear as their commit.
//
// Thread safety: none; called under the manager's synchronization.
class OpRecorder {
 public:
  OpRecorder() = default;
  // Writes the header record. `log` is borrowed; may be null.
  OpRecorder(OpLog* log, const KvCacheOptions& options);

  bool enabled() const { return log_ != nullptr; }

  // `requests` is what EncodeRequests() gave when the plan was made;
  // `sequences` those of the committed step.
  void Commit(absl::string_view requests,
              absl::Span<const PlannedSequence> sequences,
              const absl::StatusOr<StepId>& result) {
    if (enabled() && result.ok()) WriteCommit(requests, sequences, *result);
  }
  void Retire(StepId step, const absl::Status& result) {
    if (enabled()) WriteRetire(step, result);
  }
  void MarkWritten(StepId step, uint32_t layer, const absl::Status& result) {
    if (enabled()) WriteMarkWritten(step, layer, result);
  }
  void SetTokens(SequenceId id, TokenPos first,
                 absl::Span<const TokenId> tokens, const absl::Status& result) {
    if (enabled()) WriteSetTokens(id, first, tokens, result);
  }
  void Accept(SequenceId id, absl::Span<const TokenId> tokens,
              const absl::Status& result) {
    if (enabled()) WriteAccept(id, tokens, result);
  }
  void Truncate(SequenceId id, TokenCount tokens, const absl::Status& result) {
    if (enabled()) WriteTruncate(id, tokens, result);
  }
  void Fork(SequenceId parent, const absl::StatusOr<SequenceId>& result) {
    if (enabled()) WriteFork(parent, result);
  }
  void Free(SequenceId id, const absl::Status& result) {
    if (enabled()) WriteFree(id, result);
  }
  void FreeAll() {
    if (enabled()) WriteFreeAll();
  }
  void Reset(const absl::Status& result) {
    if (enabled()) WriteReset(result);
  }
  void Pin(absl::Span<const TokenId> prompt, KeyExtras extras,
           const absl::StatusOr<PinId>& result) {
    if (enabled()) WritePin(prompt, extras, result);
  }
  void Unpin(PinId pin, const absl::Status& result) {
    if (enabled()) WriteUnpin(pin, result);
  }
  // `room` is the length of the caller's array.
  void DrainEvents(size_t room, size_t moved) {
    if (enabled()) WriteDrainEvents(room, moved);
  }

  using Transfers = absl::StatusOr<absl::Span<const TierTransfer>>;
  // `tokens`: UINT32_MAX for all.
  void SwapIn(absl::Span<const SequenceId> ids, uint32_t tokens,
              const Transfers& result) {
    if (enabled()) WriteSwapIn(ids, tokens, result);
  }
  void SwapOut(absl::Span<const SequenceId> ids, const Transfers& result) {
    if (enabled()) WriteSwapOut(ids, result);
  }
  void WriteBack(BlockCount pages, const Transfers& result) {
    if (enabled()) WriteWriteBack(pages, result);
  }
  void FinishTransfer(TransferId id, bool moved, const absl::Status& result) {
    if (enabled()) WriteFinishTransfer(id, moved, result);
  }
  void LoseDevice(const absl::StatusOr<DeviceLoss>& result) {
    if (enabled()) WriteLoseDevice(result);
  }

 private:
  void WriteSwapIn(absl::Span<const SequenceId> ids, uint32_t tokens,
                   const Transfers& result);
  void WriteSwapOut(absl::Span<const SequenceId> ids, const Transfers& result);
  void WriteWriteBack(BlockCount pages, const Transfers& result);
  void WriteFinishTransfer(TransferId id, bool moved,
                           const absl::Status& result);
  void WriteLoseDevice(const absl::StatusOr<DeviceLoss>& result);
  void WriteCommit(absl::string_view requests,
                   absl::Span<const PlannedSequence> sequences, StepId step);
  void WriteRetire(StepId step, const absl::Status& result);
  void WriteMarkWritten(StepId step, uint32_t layer,
                        const absl::Status& result);
  void WriteSetTokens(SequenceId id, TokenPos first,
                      absl::Span<const TokenId> tokens,
                      const absl::Status& result);
  void WriteAccept(SequenceId id, absl::Span<const TokenId> tokens,
                   const absl::Status& result);
  void WriteTruncate(SequenceId id, TokenCount tokens,
                     const absl::Status& result);
  void WriteFork(SequenceId parent, const absl::StatusOr<SequenceId>& result);
  void WriteFree(SequenceId id, const absl::Status& result);
  void WriteFreeAll();
  void WriteReset(const absl::Status& result);
  void WritePin(absl::Span<const TokenId> prompt, KeyExtras extras,
                const absl::StatusOr<PinId>& result);
  void WriteUnpin(PinId pin, const absl::Status& result);
  void WriteDrainEvents(size_t room, size_t moved);

  void Append(absl::string_view payload);

  OpLog* log_ = nullptr;
  uint64_t next_number_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_OP_RECORDER_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/op_recorder.h"

#include "paged_kv/op_log_format.h"
#include "paged_kv/op_log_framing.h"

namespace paged_kv::internal {
namespace {

// What every record but the first begins with.
std::string Begin(OpKind kind, const absl::Status& result) {
  std::string payload;
  PutVarint(static_cast<uint64_t>(kind), &payload);
  PutVarint(static_cast<uint64_t>(result.code()), &payload);
  return payload;
}

// The id that a call returned; 0 if it was refused.
template <typename Id>
void PutResult(const absl::StatusOr<Id>& result, std::string* payload) {
  PutVarint(result.ok() ? result->value() : 0, payload);
}

void PutIds(absl::Span<const SequenceId> ids, std::string* payload) {
  PutVarint(ids.size(), payload);
  for (SequenceId id : ids) PutVarint(id.value(), payload);
}

}  // namespace

std::string EncodeRequests(absl::Span<const StepRequest> requests,
                           absl::Span<const absl::Status> outcomes) {
  std::string encoded;
  PutVarint(outcomes.empty() ? 0 : 1, &encoded);
  PutVarint(requests.size(), &encoded);
  for (const StepRequest& request : requests) PutRequest(request, &encoded);
  return encoded;
}

OpRecorder::OpRecorder(OpLog* log, const KvCacheOptions& options) : log_(log) {
  if (enabled()) Append(EncodeOptions(options));
}

void OpRecorder::WriteCommit(absl::string_view requests,
                             absl::Span<const PlannedSequence> sequences,
                             StepId step) {
  std::string payload = Begin(OpKind::kCommit, absl::OkStatus());
  PutVarint(step.value(), &payload);
  payload.append(requests.data(), requests.size());
  PutVarint(sequences.size(), &payload);
  for (const PlannedSequence& sequence : sequences) {
    PutVarint(sequence.id.value(), &payload);
  }
  Append(payload);
}

void OpRecorder::WriteRetire(StepId step, const absl::Status& result) {
  std::string payload = Begin(OpKind::kRetire, result);
  PutVarint(step.value(), &payload);
  Append(payload);
}

void OpRecorder::WriteMarkWritten(StepId step, uint32_t layer,
                                  const absl::Status& result) {
  std::string payload = Begin(OpKind::kMarkWritten, result);
  PutVarint(step.value(), &payload);
  PutVarint(layer, &payload);
  Append(payload);
}

void OpRecorder::WriteSetTokens(SequenceId id, TokenPos first,
                                absl::Span<const TokenId> tokens,
                                const absl::Status& result) {
  std::string payload = Begin(OpKind::kSetTokens, result);
  PutVarint(id.value(), &payload);
  PutVarint(first.value(), &payload);
  PutTokens(tokens, &payload);
  Append(payload);
}

void OpRecorder::WriteAccept(SequenceId id, absl::Span<const TokenId> tokens,
                             const absl::Status& result) {
  std::string payload = Begin(OpKind::kAccept, result);
  PutVarint(id.value(), &payload);
  PutTokens(tokens, &payload);
  Append(payload);
}

void OpRecorder::WriteTruncate(SequenceId id, TokenCount tokens,
                               const absl::Status& result) {
  std::string payload = Begin(OpKind::kTruncate, result);
  PutVarint(id.value(), &payload);
  PutVarint(tokens.value(), &payload);
  Append(payload);
}

void OpRecorder::WriteFork(SequenceId parent,
                           const absl::StatusOr<SequenceId>& result) {
  std::string payload = Begin(OpKind::kFork, result.status());
  PutResult(result, &payload);
  PutVarint(parent.value(), &payload);
  Append(payload);
}

void OpRecorder::WriteFree(SequenceId id, const absl::Status& result) {
  std::string payload = Begin(OpKind::kFree, result);
  PutVarint(id.value(), &payload);
  Append(payload);
}

void OpRecorder::WriteFreeAll() {
  Append(Begin(OpKind::kFreeAll, absl::OkStatus()));
}

void OpRecorder::WriteReset(const absl::Status& result) {
  Append(Begin(OpKind::kReset, result));
}

void OpRecorder::WritePin(absl::Span<const TokenId> prompt, KeyExtras extras,
                          const absl::StatusOr<PinId>& result) {
  std::string payload = Begin(OpKind::kPin, result.status());
  PutResult(result, &payload);
  PutTokens(prompt, &payload);
  PutExtras(extras, &payload);
  Append(payload);
}

void OpRecorder::WriteUnpin(PinId pin, const absl::Status& result) {
  std::string payload = Begin(OpKind::kUnpin, result);
  PutVarint(pin.value(), &payload);
  Append(payload);
}

void OpRecorder::WriteDrainEvents(size_t room, size_t moved) {
  std::string payload = Begin(OpKind::kDrainEvents, absl::OkStatus());
  PutVarint(moved, &payload);
  PutVarint(room, &payload);
  Append(payload);
}

void OpRecorder::WriteSwapIn(absl::Span<const SequenceId> ids, uint32_t tokens,
                             const Transfers& result) {
  std::string payload = Begin(OpKind::kSwapIn, result.status());
  PutVarint(result.ok() ? result->size() : 0, &payload);
  PutIds(ids, &payload);
  PutVarint(tokens, &payload);
  Append(payload);
}

void OpRecorder::WriteSwapOut(absl::Span<const SequenceId> ids,
                              const Transfers& result) {
  std::string payload = Begin(OpKind::kSwapOut, result.status());
  PutVarint(result.ok() ? result->size() : 0, &payload);
  PutIds(ids, &payload);
  Append(payload);
}

void OpRecorder::WriteWriteBack(BlockCount pages, const Transfers& result) {
  std::string payload = Begin(OpKind::kWriteBack, result.status());
  PutVarint(result.ok() ? result->size() : 0, &payload);
  PutVarint(pages.value(), &payload);
  Append(payload);
}

void OpRecorder::WriteFinishTransfer(TransferId id, bool moved,
                                     const absl::Status& result) {
  std::string payload = Begin(OpKind::kFinishTransfer, result);
  PutVarint(id.value(), &payload);
  PutVarint(moved ? 1 : 0, &payload);
  Append(payload);
}

void OpRecorder::WriteLoseDevice(const absl::StatusOr<DeviceLoss>& result) {
  std::string payload = Begin(OpKind::kLoseDevice, result.status());
  PutVarint(result.ok() ? result->blocks.value() : 0, &payload);
  PutIds(result.ok() ? result->sequences : std::vector<SequenceId>(), &payload);
  Append(payload);
}

void OpRecorder::Append(absl::string_view payload) {
  log_->Append(FrameRecord(next_number_++, payload));
}

}  // namespace paged_kv::internal

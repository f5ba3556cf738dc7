// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/lockstep_replay.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/op_log_format.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::testing {
namespace {

using absl::StatusCode;
using internal::OpKind;
using internal::OpRecord;

// A call's code and the id or number that it returned.
struct Outcome {
  StatusCode code = StatusCode::kOk;
  uint64_t result = 0;
};

Outcome Commit(const OpRecord& record, LockstepCache* cache) {
  std::vector<std::vector<KeyExtra>> extras;
  const std::vector<StepRequest> requests =
      internal::AsStepRequests(record.requests, &extras);
  StatusCode code = cache->Plan(requests, record.fitting);
  if (code != StatusCode::kOk || !cache->ok()) return {code, 0};
  code = cache->Commit();
  if (code != StatusCode::kOk) return {code, 0};
  // Other ids would make later records mean other sequences.
  if (cache->committed() != record.sequences) return {StatusCode::kDataLoss, 0};
  return {code, cache->last_step().value()};
}

Outcome Apply(const OpRecord& record, LockstepCache* cache) {
  const SequenceId id(record.id);
  const auto number = static_cast<uint32_t>(record.number);
  switch (record.kind) {
    case OpKind::kCommit:
      return Commit(record, cache);
    case OpKind::kRetire:
      return {cache->Retire(StepId(record.id))};
    case OpKind::kMarkWritten:
      return {cache->MarkWritten(StepId(record.id), number)};
    case OpKind::kSetTokens:
      return {cache->SetTokens(id, TokenPos(number), record.tokens)};
    case OpKind::kAccept:
      return {cache->Accept(id, record.tokens)};
    case OpKind::kTruncate:
      return {cache->Truncate(id, TokenCount(number))};
    case OpKind::kFork: {
      const StatusCode code = cache->Fork(id);
      return {code, code == StatusCode::kOk ? cache->last_fork().value() : 0};
    }
    case OpKind::kFree:
      return {cache->Free(id)};
    case OpKind::kFreeAll:
      return {cache->FreeAll()};
    case OpKind::kReset:
      return {cache->Reset()};
    case OpKind::kPin: {
      const StatusCode code =
          cache->Pin(record.tokens, internal::AsKeyExtras(record.extras));
      return {code, code == StatusCode::kOk ? cache->last_pin().value() : 0};
    }
    case OpKind::kUnpin:
      return {cache->Unpin(PinId(record.id))};
    case OpKind::kDrainEvents:
      return {cache->DrainEvents(record.result), record.result};
    // Without a device tier there is nothing to move and nothing to finish.
    case OpKind::kSwapIn:
    case OpKind::kSwapOut:
    case OpKind::kWriteBack:
    case OpKind::kLoseDevice:
      return {StatusCode::kFailedPrecondition};
    case OpKind::kFinishTransfer:
      return {StatusCode::kNotFound};
  }
  PAGED_KV_CHECK(false);
}

}  // namespace

absl::StatusOr<LockstepReplay> ReplayInLockstep(
    absl::string_view log, const LockstepOptions& lockstep) {
  internal::OpLogReader reader(log);
  PAGED_KV_ASSIGN_OR_RETURN(internal::LoggedOptions logged,
                            reader.ReadOptions());
  if (logged.eviction == internal::LoggedEviction::kOther) {
    return absl::InvalidArgumentError(
        "the log's manager had an eviction policy of its own");
  }
  if (logged.options.device.pages.value() > 0) {
    return absl::UnimplementedError(absl::StrCat(
        "the log's manager had ", logged.options.device.pages.value(),
        " pages on a device, of which the model knows nothing"));
  }
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<LockstepCache> cache,
                            LockstepCache::Create(logged.options, lockstep));
  LockstepReplay replay;
  while (!reader.AtEnd()) {
    PAGED_KV_ASSIGN_OR_RETURN(const OpRecord record, reader.Next());
    ++replay.operations;
    const Outcome got = Apply(record, cache.get());
    if (got.code == StatusCode::kOk) ++replay.granted;
    if (!cache->ok()) {
      replay.violation = cache->violation();
    } else if (got.code != record.code || got.result != record.result) {
      replay.violation = absl::StrCat(
          "gave ", absl::StatusCodeToString(got.code), " and ", got.result,
          ", the log says ", absl::StatusCodeToString(record.code), " and ",
          record.result);
    } else {
      continue;
    }
    replay.violation =
        absl::StrCat("record ", reader.number(), " (", OpKindName(record.kind),
                     "): ", replay.violation);
    return replay;
  }
  cache->CheckAll();
  replay.violation = cache->violation();
  replay.fingerprint = cache->manager().Fingerprint();
  return replay;
}

}  // namespace paged_kv::testing

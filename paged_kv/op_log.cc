// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/op_log.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/op_log_format.h"
#include "paged_kv/status_macros.h"

namespace paged_kv {
namespace {

using internal::OpKind;
using internal::OpKindName;
using internal::OpRecord;

// What a call gave: its status code and, if it returns one, its id or count.
struct Outcome {
  absl::StatusCode code = absl::StatusCode::kOk;
  uint64_t result = 0;
};

Outcome OutcomeOf(const absl::Status& status) { return {status.code(), 0}; }

template <typename Id>
Outcome OutcomeOf(const absl::StatusOr<Id>& result) {
  return {result.status().code(), result.ok() ? result->value() : 0};
}

Outcome OutcomeOf(
    const absl::StatusOr<absl::Span<const TierTransfer>>& result) {
  return {result.status().code(), result.ok() ? result->size() : 0};
}

Outcome ApplyCommit(const OpRecord& record, KvCacheManager* manager) {
  std::vector<std::vector<KeyExtra>> extras;
  const std::vector<StepRequest> requests =
      internal::AsStepRequests(record.requests, &extras);
  std::vector<absl::Status> outcomes(requests.size());
  absl::StatusOr<StepPlan> plan =
      record.fitting ? manager->PlanFitting(requests, absl::MakeSpan(outcomes))
                     : manager->Plan(requests);
  if (!plan.ok()) return OutcomeOf(plan.status());
  const absl::StatusOr<StepId> step = manager->Commit(*std::move(plan));
  if (!step.ok()) return OutcomeOf(step.status());
  // An admission with another id would make every later record mean another
  // sequence.
  const absl::StatusOr<StepView> view = manager->View(*step);
  PAGED_KV_CHECK(view.ok());
  const bool same_ids =
      std::equal(view->sequences.begin(), view->sequences.end(),
                 record.sequences.begin(), record.sequences.end(),
                 [](const PlannedSequence& sequence, SequenceId id) {
                   return sequence.id == id;
                 });
  return same_ids ? OutcomeOf(step) : Outcome{absl::StatusCode::kDataLoss, 0};
}

Outcome ApplyLoss(const OpRecord& record, KvCacheManager* manager) {
  const auto loss = manager->LoseDevice();
  if (!loss.ok()) return {loss.status().code(), 0};
  if (loss->sequences != record.sequences) {
    return {absl::StatusCode::kDataLoss, 0};
  }
  return {absl::StatusCode::kOk, loss->blocks.value()};
}

Outcome ApplyDrain(const OpRecord& record, KvCacheManager* manager) {
  if (record.result > manager->options().event_capacity) {
    return {absl::StatusCode::kDataLoss, 0};
  }
  // The caller's array may have been of any length; beyond what it got, one
  // place more asks the same question.
  constexpr uint64_t kRoom = 4096;
  const uint64_t room = record.number <= record.result + kRoom
                            ? record.number
                            : record.result + 1;
  std::vector<CacheEvent> events(room);
  return {absl::StatusCode::kOk, manager->DrainEvents(absl::MakeSpan(events))};
}

Outcome Apply(const OpRecord& record, KvCacheManager* manager) {
  const SequenceId id(record.id);
  // The reader made sure that it fits where it is one of these.
  const auto number = static_cast<uint32_t>(record.number);
  switch (record.kind) {
    case OpKind::kCommit:
      return ApplyCommit(record, manager);
    case OpKind::kRetire:
      return OutcomeOf(manager->Retire(StepId(record.id)));
    case OpKind::kMarkWritten:
      return OutcomeOf(manager->MarkWritten(StepId(record.id), number));
    case OpKind::kSetTokens:
      return OutcomeOf(manager->SetTokens(id, TokenPos(number), record.tokens));
    case OpKind::kAccept:
      return OutcomeOf(manager->Accept(id, record.tokens));
    case OpKind::kTruncate:
      return OutcomeOf(manager->Truncate(id, TokenCount(number)));
    case OpKind::kFork:
      return OutcomeOf(manager->Fork(id));
    case OpKind::kFree:
      return OutcomeOf(manager->Free(id));
    case OpKind::kFreeAll:
      manager->FreeAll();
      return {};
    case OpKind::kReset:
      return OutcomeOf(manager->Reset());
    case OpKind::kPin:
      return OutcomeOf(
          manager->Pin(record.tokens, internal::AsKeyExtras(record.extras)));
    case OpKind::kUnpin:
      return OutcomeOf(manager->Unpin(PinId(record.id)));
    case OpKind::kDrainEvents:
      return ApplyDrain(record, manager);
    case OpKind::kSwapIn:
      return OutcomeOf(
          number == UINT32_MAX
              ? manager->SwapIn(record.sequences)
              : manager->SwapInPrefix(record.sequences, TokenCount(number)));
    case OpKind::kSwapOut:
      return OutcomeOf(manager->SwapOut(record.sequences));
    case OpKind::kWriteBack:
      return OutcomeOf(manager->WriteBack(BlockCount(number)));
    case OpKind::kFinishTransfer:
      return OutcomeOf(
          manager->FinishTransfer(TransferId(record.id), record.moved));
    case OpKind::kLoseDevice:
      return ApplyLoss(record, manager);
  }
  PAGED_KV_CHECK(false);
}

// a * b, or the largest number if it does not fit.
uint64_t SaturatedProduct(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product)
             ? std::numeric_limits<uint64_t>::max()
             : product;
}

uint64_t SaturatedSum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum)
             ? std::numeric_limits<uint64_t>::max()
             : sum;
}

// About what Create() allocates for these options, rounded up: tokens and
// tables of every sequence, metadata and tokens of every block.
uint64_t EstimateMetadataBytes(const KvCacheOptions& options) {
  constexpr uint64_t kBytesPerBlock = 128;
  constexpr uint64_t kBytesPerDevicePage = 128;
  constexpr uint64_t kBytesPerEvent = sizeof(CacheEvent);
  uint64_t per_token = sizeof(TokenId);
  uint64_t per_block = 0;
  for (const LayerGroup& group : options.groups) {
    per_token += sizeof(BlockId);
    per_block += kBytesPerBlock + group.shape.block_tokens * sizeof(TokenId);
  }
  const uint64_t per_sequence =
      SaturatedSum(SaturatedProduct(options.max_tokens_per_sequence, per_token),
                   uint64_t{options.max_extra_bytes_per_sequence} + 1024);
  uint64_t bytes = SaturatedProduct(options.max_sequences, per_sequence);
  bytes = SaturatedSum(
      bytes, SaturatedProduct(options.host_blocks.value(), per_block));
  bytes = SaturatedSum(
      bytes, SaturatedProduct(options.max_steps_in_flight, bytes / 8));
  bytes = SaturatedSum(bytes, options.index_extra_bytes);
  bytes = SaturatedSum(
      bytes,
      SaturatedProduct(
          SaturatedProduct(options.device.pages.value(), kBytesPerDevicePage),
          options.groups.size() * (uint64_t{options.max_steps_in_flight} + 2)));
  bytes = SaturatedSum(
      bytes, SaturatedProduct(options.event_capacity, kBytesPerEvent));
  return SaturatedSum(bytes, SaturatedProduct(options.max_pins, per_sequence));
}

absl::StatusOr<std::unique_ptr<KvCacheManager>> CreateLogged(
    internal::OpLogReader* reader, const ReplayOptions& replay) {
  PAGED_KV_ASSIGN_OR_RETURN(internal::LoggedOptions logged,
                            reader->ReadOptions());
  KvCacheOptions& options = logged.options;
  if (logged.eviction == internal::LoggedEviction::kOther) {
    if (replay.eviction == nullptr) {
      return absl::InvalidArgumentError(
          "the log's manager had an eviction policy of its own: set "
          "ReplayOptions::eviction");
    }
    options.eviction = replay.eviction;
  }
  options.hash = replay.hash;
  options.op_log = replay.op_log;
  if (const uint64_t bytes = EstimateMetadataBytes(options);
      bytes > replay.max_metadata_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the log's manager needs about ", bytes,
        " bytes of metadata, allowed are ", replay.max_metadata_bytes));
  }
  absl::StatusOr<std::unique_ptr<KvCacheManager>> manager =
      KvCacheManager::Create(options);
  if (!manager.ok()) {
    return absl::DataLossError(
        absl::StrCat("record 0 holds options that ",
                     "no manager can have: ", manager.status().message()));
  }
  return manager;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KvCacheManager>> ReplayOpLog(
    absl::string_view log, const ReplayOptions& options) {
  internal::OpLogReader reader(log);
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<KvCacheManager> manager,
                            CreateLogged(&reader, options));
  while (!reader.AtEnd()) {
    PAGED_KV_ASSIGN_OR_RETURN(const OpRecord record, reader.Next());
    const Outcome got = Apply(record, manager.get());
    if (got.code == record.code && got.result == record.result) continue;
    return absl::DataLossError(absl::StrCat(
        "record ", reader.number(), " (", OpKindName(record.kind), ") gave ",
        absl::StatusCodeToString(got.code), " and ", got.result,
        ", the log says ", absl::StatusCodeToString(record.code), " and ",
        record.result));
  }
  return manager;
}

}  // namespace paged_kv

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The facade: checks ids and versions, hands on to the parts, records.

#include "paged_kv/kv_cache_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/block_lifecycle.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/check.h"
#include "paged_kv/page_table_export.h"
#include "paged_kv/prefix_lookup.h"
#include "paged_kv/sequence_edit.h"
#include "paged_kv/state_check.h"
#include "paged_kv/status_macros.h"
#include "paged_kv/step_commit.h"
#include "paged_kv/step_planner.h"

namespace paged_kv {
namespace {

using internal::CacheState;
using internal::PlanRecord;
using internal::SequenceTable;

absl::StatusOr<uint32_t> FindSlot(const CacheState& state, SequenceId id) {
  const uint32_t slot = state.sequences.Find(id);
  if (slot == SequenceTable::kNone) {
    return absl::NotFoundError(absl::StrCat("no sequence ", id.value()));
  }
  return slot;
}

absl::StatusOr<PlanRecord*> FindStep(const CacheState& state, StepId step) {
  PlanRecord* record = state.FindStep(step);
  if (record == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("step ", step.value(), " is not in flight; ",
                     state.retired_step + 1, " to ", state.last_step, " are"));
  }
  return record;
}

absl::Status CheckGroup(const CacheState& state, GroupId group) {
  if (group.value() < state.groups.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("group ", group.value(), " of ", state.groups.size()));
}

absl::Status CheckTier(const CacheState& state, Tier tier) {
  if (tier == Tier::kHost) return absl::OkStatus();
  if (tier == Tier::kDevice && !state.tiers.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tier ", static_cast<int>(tier), " is not configured"));
}

// Counts the change if there was one, and passes the result on.
absl::Status Changed(CacheState* state, absl::Status status) {
  if (status.ok()) ++state->version;
  return status;
}

}  // namespace

KvCacheManager::KvCacheManager(std::unique_ptr<CacheState> state)
    : state_(std::move(state)) {}

KvCacheManager::~KvCacheManager() = default;

absl::StatusOr<std::unique_ptr<KvCacheManager>> KvCacheManager::Create(
    const KvCacheOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(Validate(options));
  auto state = std::make_unique<CacheState>();
  PAGED_KV_RETURN_IF_ERROR(MakeState(options, state.get()));
  return std::unique_ptr<KvCacheManager>(new KvCacheManager(std::move(state)));
}

absl::StatusOr<Prefix> KvCacheManager::Lookup(absl::Span<const TokenId> prompt,
                                              KeyExtras extras) const {
  std::string frames;
  PAGED_KV_RETURN_IF_ERROR(
      CanonicalExtras(*state_, extras, prompt.size(), &frames));
  const auto tokens = static_cast<uint32_t>(
      std::min<size_t>(prompt.size(), state_->sequences.max_tokens()));
  return Prefix{
      TokenCount(FindPrefix(*state_, prompt.data(), tokens, frames).tokens)};
}

absl::StatusOr<StepPlan> KvCacheManager::Plan(
    absl::Span<const StepRequest> requests) {
  return PlanFitting(requests, {});
}

absl::StatusOr<StepPlan> KvCacheManager::PlanFitting(
    absl::Span<const StepRequest> requests, absl::Span<absl::Status> outcomes) {
  if (!outcomes.empty() && outcomes.size() != requests.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        outcomes.size(), " outcomes for ", requests.size(), " requests"));
  }
  PlanRecord& record = state_->UnusedRecord();
  record.ticket = ++state_->last_ticket;
  record.version = state_->version;
  absl::Status status = PlanStep(state_.get(), requests, outcomes, &record);
  if (!status.ok()) {
    record.Clear();
    return status;
  }
  if (state_->recorder.enabled()) {
    record.encoded_requests = internal::EncodeRequests(requests, outcomes);
  }
  StepPlan plan;
  plan.record_ = &record;
  plan.ticket_ = record.ticket;
  plan.view_ = record.View();
  return plan;
}

absl::StatusOr<StepId> KvCacheManager::Commit(StepPlan plan) {
  PlanRecord* record = plan.record_;
  if (record == nullptr) {
    return absl::FailedPreconditionError("plan is empty or already committed");
  }
  const auto same_record = [record](const auto& r) {
    return r.get() == record;
  };
  if (std::none_of(state_->records.begin(), state_->records.end(),
                   same_record)) {
    return absl::InvalidArgumentError("plan is of another manager");
  }
  if (plan.ticket_ != state_->last_ticket) {
    return absl::AbortedError(
        absl::StrCat("plan ", plan.ticket_, " was replaced by plan ",
                     state_->last_ticket, "; plan again"));
  }
  if (record->version != state_->version) {
    return absl::AbortedError(absl::StrCat(
        "plan is stale: made for version ", record->version,
        " of the cache, which is now at ", state_->version, "; plan again"));
  }
  CommitStep(state_.get(), record);
  ++state_->version;
  const absl::StatusOr<StepId> step = record->step;
  state_->recorder.Commit(record->encoded_requests, record->View().sequences,
                          step);
  return step;
}

absl::Status KvCacheManager::Retire(StepId step) {
  const auto retire = [&]() -> absl::Status {
    PAGED_KV_ASSIGN_OR_RETURN(PlanRecord * record, FindStep(*state_, step));
    if (step.value() != state_->retired_step + 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("steps retire in order: step ", step.value(),
                       " after step ", state_->retired_step + 1));
    }
    RetireStep(state_.get(), record);
    return absl::OkStatus();
  };
  const absl::Status status = Changed(state_.get(), retire());
  state_->recorder.Retire(step, status);
  return status;
}

absl::Status KvCacheManager::MarkWritten(StepId step, uint32_t layer) {
  const auto mark = [&]() -> absl::Status {
    PAGED_KV_ASSIGN_OR_RETURN(PlanRecord * record, FindStep(*state_, step));
    uint32_t layers = 0;
    for (const LayerGroup& group : state_->options.groups) {
      layers += group.shape.layers;
    }
    if (layer >= layers) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", layer, " of ", layers));
    }
    record->layers_written = std::max(record->layers_written, layer + 1);
    return absl::OkStatus();
  };
  const absl::Status status = mark();
  state_->recorder.MarkWritten(step, layer, status);
  return status;
}

absl::StatusOr<uint32_t> KvCacheManager::LayersWritten(StepId step) const {
  PAGED_KV_ASSIGN_OR_RETURN(PlanRecord * record, FindStep(*state_, step));
  return record->layers_written;
}

absl::StatusOr<StepView> KvCacheManager::View(StepId step) const {
  PAGED_KV_ASSIGN_OR_RETURN(PlanRecord * record, FindStep(*state_, step));
  return record->View();
}

absl::Status KvCacheManager::SetTokens(SequenceId id, TokenPos first,
                                       absl::Span<const TokenId> tokens) {
  const auto set = [&]() -> absl::Status {
    PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindSlot(*state_, id));
    return SetTokenValues(state_.get(), slot, first.value(), tokens);
  };
  const absl::Status status = Changed(state_.get(), set());
  state_->recorder.SetTokens(id, first, tokens, status);
  return status;
}

absl::Status KvCacheManager::Accept(SequenceId id,
                                    absl::Span<const TokenId> tokens) {
  const auto accept = [&]() -> absl::Status {
    PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindSlot(*state_, id));
    return AcceptDrafts(state_.get(), slot, tokens);
  };
  const absl::Status status = Changed(state_.get(), accept());
  state_->recorder.Accept(id, tokens, status);
  return status;
}

absl::Status KvCacheManager::Truncate(SequenceId id, TokenCount tokens) {
  const auto truncate = [&]() -> absl::Status {
    PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindSlot(*state_, id));
    return TruncateSequence(state_.get(), slot, tokens.value());
  };
  const absl::Status status = Changed(state_.get(), truncate());
  state_->recorder.Truncate(id, tokens, status);
  return status;
}

absl::StatusOr<SequenceId> KvCacheManager::Fork(SequenceId parent) {
  const auto fork = [&]() -> absl::StatusOr<SequenceId> {
    PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindSlot(*state_, parent));
    PAGED_KV_ASSIGN_OR_RETURN(const uint32_t child,
                              ForkSequence(state_.get(), slot));
    return state_->sequences.IdOf(child);
  };
  absl::StatusOr<SequenceId> child = fork();
  if (child.ok()) ++state_->version;
  state_->recorder.Fork(parent, child);
  return child;
}

absl::Status KvCacheManager::Free(SequenceId id) {
  const auto free = [&]() -> absl::Status {
    PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindSlot(*state_, id));
    CloseSequence(state_.get(), slot);
    return absl::OkStatus();
  };
  const absl::Status status = Changed(state_.get(), free());
  state_->recorder.Free(id, status);
  return status;
}

void KvCacheManager::FreeAll() {
  for (uint32_t slot = 0; slot < state_->sequences.slots(); ++slot) {
    const internal::Sequence& sequence = state_->sequences.at(slot);
    if (sequence.alive && !sequence.is_pin) CloseSequence(state_.get(), slot);
  }
  ++state_->version;
  state_->recorder.FreeAll();
}

absl::Status KvCacheManager::Reset() {
  const auto reset = [&]() -> absl::Status {
    const uint32_t living = state_->sequences.living();
    const uint32_t pins = state_->sequences.pins();
    uint32_t waiting = 0;
    for (const auto& pool : state_->pools) {
      waiting += pool->quarantined() + pool->held_back();
    }
    if (living + pins > 0 || state_->steps_in_flight() > 0 || waiting > 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cache is in use: ", living, " sequences, ", pins, " pins, ",
          state_->steps_in_flight(), " steps in flight, ", waiting,
          " blocks that wait for steps or transfers"));
    }
    DropCachedContent(state_.get());
    return absl::OkStatus();
  };
  const absl::Status status = Changed(state_.get(), reset());
  state_->recorder.Reset(status);
  return status;
}

absl::StatusOr<Admission> KvCacheManager::Allocate(
    absl::Span<const TokenId> prompt, KeyExtras extras) {
  const StepRequest request = StepRequest::Admit(prompt, extras);
  PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, Plan({&request, 1}));
  const PlannedSequence planned = plan.view().sequences[0];
  PAGED_KV_ASSIGN_OR_RETURN(const StepId step, Commit(std::move(plan)));
  return Admission{planned.id, step, planned.cached_tokens};
}

absl::StatusOr<Admission> KvCacheManager::Append(
    SequenceId id, absl::Span<const TokenId> tokens) {
  const StepRequest request = StepRequest::Extend(id, tokens);
  PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, Plan({&request, 1}));
  PAGED_KV_ASSIGN_OR_RETURN(const StepId step, Commit(std::move(plan)));
  return Admission{id, step, TokenCount(0)};
}

absl::StatusOr<PinId> KvCacheManager::Pin(absl::Span<const TokenId> prompt,
                                          KeyExtras extras) {
  const auto pin = [&]() -> absl::StatusOr<PinId> {
    PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot,
                              PinPrefix(state_.get(), prompt, extras));
    return PinId(state_->sequences.IdOf(slot).value());
  };
  absl::StatusOr<PinId> id = pin();
  if (id.ok()) ++state_->version;
  state_->recorder.Pin(prompt, extras, id);
  return id;
}

absl::Status KvCacheManager::Unpin(PinId pin) {
  const auto unpin = [&]() -> absl::Status {
    const uint32_t slot =
        state_->sequences.Find(SequenceId(pin.value()), /*is_pin=*/true);
    if (slot == SequenceTable::kNone) {
      return absl::NotFoundError(absl::StrCat("no pin ", pin.value()));
    }
    CloseSequence(state_.get(), slot);
    return absl::OkStatus();
  };
  const absl::Status status = Changed(state_.get(), unpin());
  state_->recorder.Unpin(pin, status);
  return status;
}

absl::StatusOr<PageTableSize> KvCacheManager::TableSize(StepId step,
                                                        GroupId group) const {
  PAGED_KV_RETURN_IF_ERROR(CheckGroup(*state_, group));
  PAGED_KV_ASSIGN_OR_RETURN(const internal::TableRows rows,
                            internal::TableRows::OfStep(*state_, step));
  return SizeOf(*state_, rows, state_->groups[group.value()]);
}

absl::StatusOr<PageTableSize> KvCacheManager::TableSize(
    absl::Span<const SequenceId> ids, GroupId group) const {
  PAGED_KV_RETURN_IF_ERROR(CheckGroup(*state_, group));
  PAGED_KV_ASSIGN_OR_RETURN(const internal::TableRows rows,
                            internal::TableRows::OfSequences(*state_, ids));
  return SizeOf(*state_, rows, state_->groups[group.value()]);
}

absl::StatusOr<PageTable> KvCacheManager::ExportPageTable(
    StepId step, GroupId group, const PageTableBuffers& buffers,
    Tier tier) const {
  PAGED_KV_RETURN_IF_ERROR(CheckGroup(*state_, group));
  PAGED_KV_RETURN_IF_ERROR(CheckTier(*state_, tier));
  PAGED_KV_ASSIGN_OR_RETURN(const internal::TableRows rows,
                            internal::TableRows::OfStep(*state_, step));
  return ExportCsr(*state_, rows, state_->groups[group.value()], tier, buffers);
}

absl::StatusOr<PageTable> KvCacheManager::ExportPageTable(
    absl::Span<const SequenceId> ids, GroupId group,
    const PageTableBuffers& buffers, Tier tier) const {
  PAGED_KV_RETURN_IF_ERROR(CheckGroup(*state_, group));
  PAGED_KV_RETURN_IF_ERROR(CheckTier(*state_, tier));
  PAGED_KV_ASSIGN_OR_RETURN(const internal::TableRows rows,
                            internal::TableRows::OfSequences(*state_, ids));
  return ExportCsr(*state_, rows, state_->groups[group.value()], tier, buffers);
}

absl::Status KvCacheManager::ExportPaddedPageTable(
    StepId step, GroupId group, const PaddedPageTableBuffers& buffers,
    Tier tier) const {
  PAGED_KV_RETURN_IF_ERROR(CheckGroup(*state_, group));
  PAGED_KV_RETURN_IF_ERROR(CheckTier(*state_, tier));
  PAGED_KV_ASSIGN_OR_RETURN(const internal::TableRows rows,
                            internal::TableRows::OfStep(*state_, step));
  return ExportPadded(*state_, rows, state_->groups[group.value()], tier,
                      buffers);
}

absl::Status KvCacheManager::ExportSlotMapping(StepId step, GroupId group,
                                               absl::Span<int64_t> slots,
                                               Tier tier) const {
  PAGED_KV_RETURN_IF_ERROR(CheckGroup(*state_, group));
  PAGED_KV_RETURN_IF_ERROR(CheckTier(*state_, tier));
  PAGED_KV_ASSIGN_OR_RETURN(const internal::TableRows rows,
                            internal::TableRows::OfStep(*state_, step));
  return ExportSlots(*state_, rows, state_->groups[group.value()], tier, slots);
}

absl::StatusOr<PageLayout> KvCacheManager::Layout(GroupId group) const {
  PAGED_KV_RETURN_IF_ERROR(CheckGroup(*state_, group));
  const KvCacheOptions& options = state_->options;
  switch (options.memory) {
    case MemoryMode::kMetadataOnly:
      return absl::FailedPreconditionError(
          "metadata-only manager: the engine knows where its pages lie");
    case MemoryMode::kCallerMemory:
      return options.layouts[group.value()];
    case MemoryMode::kOwnMemory:
      return OwnPageLayout(
          options.groups[group.value()].shape,
          state_->memory[state_->groups[group.value()].pool].data());
  }
  PAGED_KV_CHECK(false);
}

const KvCacheOptions& KvCacheManager::options() const {
  return state_->options;
}

BlockCount KvCacheManager::PoolBlocks(GroupId group) const {
  if (!CheckGroup(*state_, group).ok()) return BlockCount(0);
  return BlockCount(state_->PoolOf(state_->groups[group.value()]).capacity());
}

BlockCount KvCacheManager::AvailableBlocks(GroupId group) const {
  if (!CheckGroup(*state_, group).ok()) return BlockCount(0);
  return BlockCount(state_->PoolOf(state_->groups[group.value()]).available());
}

uint32_t KvCacheManager::RefCount(GroupId group, BlockId block) const {
  if (block.value() >= PoolBlocks(group).value()) return 0;
  return state_->PoolOf(state_->groups[group.value()]).meta(block).refs;
}

absl::StatusOr<SequenceInfo> KvCacheManager::Describe(SequenceId id) const {
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindSlot(*state_, id));
  const internal::Sequence& sequence = state_->sequences.at(slot);
  SequenceInfo info;
  info.tokens = TokenCount(sequence.tokens);
  info.written = TokenCount(sequence.written);
  info.known = TokenCount(sequence.known);
  info.lookahead = TokenCount(sequence.lookahead);
  info.cached_tokens = TokenCount(sequence.cached);
  return info;
}

absl::StatusOr<absl::Span<const TokenId>> KvCacheManager::Tokens(
    SequenceId id) const {
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindSlot(*state_, id));
  return absl::MakeSpan(
      static_cast<const CacheState&>(*state_).sequences.tokens(slot),
      state_->sequences.at(slot).known);
}

absl::StatusOr<absl::Span<const BlockId>> KvCacheManager::BlockTable(
    SequenceId id, GroupId group) const {
  PAGED_KV_RETURN_IF_ERROR(CheckGroup(*state_, group));
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindSlot(*state_, id));
  const CacheState& state = *state_;
  return absl::MakeSpan(
      state.sequences.blocks(slot, state.groups[group.value()]),
      state.sequences.extent(slot, group.value()).size);
}

std::vector<SequenceId> KvCacheManager::Sequences() const {
  std::vector<SequenceId> ids;
  for (uint32_t slot = 0; slot < state_->sequences.slots(); ++slot) {
    const internal::Sequence& sequence = state_->sequences.at(slot);
    if (sequence.alive && !sequence.is_pin) {
      ids.push_back(state_->sequences.IdOf(slot));
    }
  }
  return ids;
}

CacheStats KvCacheManager::Stats() const { return MakeStats(*state_); }

size_t KvCacheManager::DrainEvents(absl::Span<CacheEvent> events) {
  const size_t moved = state_->index->events().Drain(events);
  state_->recorder.DrainEvents(events.size(), moved);
  return moved;
}

double KvCacheManager::MetadataBytesPerBlock() const {
  return internal::MetadataBytesPerBlock(*state_);
}

absl::Status KvCacheManager::CheckInvariants() const {
  return CheckState(*state_);
}

uint64_t KvCacheManager::Fingerprint() const { return FingerprintOf(*state_); }

}  // namespace paged_kv

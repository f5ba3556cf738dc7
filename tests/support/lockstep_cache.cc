// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The calls. What is compared after them is in lockstep_compare.cc.

#include "tests/support/lockstep_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::testing {

using absl::StatusCode;

absl::StatusOr<std::unique_ptr<LockstepCache>> LockstepCache::Create(
    const KvCacheOptions& options, const LockstepOptions& lockstep) {
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<KvCacheManager> manager,
                            KvCacheManager::Create(options));
  return std::unique_ptr<LockstepCache>(
      new LockstepCache(std::move(manager), lockstep));
}

LockstepCache::LockstepCache(std::unique_ptr<KvCacheManager> manager,
                             const LockstepOptions& lockstep)
    : lockstep_(lockstep),
      manager_(std::move(manager)),
      model_(manager_->options()),
      engine_(model_),
      generations_(size_t{manager_->options().max_sequences} +
                   manager_->options().max_pins) {}

void LockstepCache::Begin() {
  ++calls_;
  has_fingerprint_ = calls_ % lockstep_.fingerprint_every == 0;
  if (has_fingerprint_) fingerprint_ = manager_->Fingerprint();
}

StatusCode LockstepCache::End(const char* call, StatusCode got,
                              StatusCode expected) {
  if (got != expected) {
    Violate(call, " gave ", absl::StatusCodeToString(got), ", expected ",
            absl::StatusCodeToString(expected));
  }
  if (got == StatusCode::kOk) {
    ++calls_ok_;
  } else if (has_fingerprint_ && manager_->Fingerprint() != fingerprint_) {
    Violate(call, " was refused and changed the cache");
  }
  if (calls_ == lockstep_.violate_at_call) Violate("declared a violation");
  if (ok()) CompareStats();
  if (ok() && calls_ % lockstep_.full_check_every == 0) CheckAll();
  return got;
}

// ---- Plans ----

StatusCode LockstepCache::Plan(absl::Span<const StepRequest> requests,
                               bool fitting) {
  Begin();
  requests_.assign(requests.begin(), requests.end());
  model_.Plan(requests_, fitting, &model_plan_);
  outcomes_.assign(requests.size(), absl::OkStatus());
  absl::StatusOr<StepPlan> plan =
      fitting ? manager_->PlanFitting(requests_, absl::MakeSpan(outcomes_))
              : manager_->Plan(requests_);
  // A plan that was refused replaces an earlier one, too.
  ReplacePlan();
  plan_made_ = plan.ok();
  plan_version_ = version_;
  if (plan.ok()) {
    plan_ = *std::move(plan);
    if (model_plan_.code == StatusCode::kOk) ComparePlan(fitting);
  }
  return End(fitting ? "PlanFitting" : "Plan", plan.status().code(),
             model_plan_.code);
}

StatusCode LockstepCache::FinishCommit(const absl::StatusOr<StepId>& step,
                                       StatusCode expected, const char* call) {
  if (step.ok() && expected == StatusCode::kOk) {
    ++version_;
    last_step_ = *step;
    committed_.clear();
    const absl::StatusOr<StepView> view = manager_->View(*step);
    if (!view.ok()) {
      Violate("step ", step->value(), " was committed and is not known");
      return StatusCode::kInternal;
    }
    for (const PlannedSequence& part : view->sequences) {
      committed_.push_back(part.id);
      if (part.kind == StepRequest::Kind::kAdmit) CheckNewId(part.id);
    }
    if (!ok()) return StatusCode::kInternal;
    const uint64_t first_write = model_.next_write();
    model_.Commit(model_plan_, requests_, *view, *step);
    if (std::string error = engine_.Load(*manager_, model_, *step, first_write);
        !error.empty()) {
      Violate(error);
    }
    for (SequenceId id : committed_) CompareSequence(id);
  }
  return End(call, step.status().code(), expected);
}

StatusCode LockstepCache::Commit() {
  Begin();
  StatusCode expected = StatusCode::kFailedPrecondition;  // no plan at all
  if (plan_made_) {
    expected =
        version_ == plan_version_ ? StatusCode::kOk : StatusCode::kAborted;
  }
  plan_made_ = false;
  const absl::StatusOr<StepId> step = manager_->Commit(std::move(plan_));
  if (step.ok() && expected == StatusCode::kOk &&
      step->value() != last_step_.value() + 1) {
    Violate("step ", step->value(), " follows step ", last_step_.value());
  }
  spent_ = std::move(plan_);
  return FinishCommit(step, expected, "Commit");
}

StatusCode LockstepCache::CommitReplaced() {
  Begin();
  const StatusCode got = manager_->Commit(std::move(replaced_)).status().code();
  // What was never made, or was given back before, is an empty plan.
  const StatusCode expected =
      has_replaced_ ? StatusCode::kAborted : StatusCode::kFailedPrecondition;
  has_replaced_ = false;
  return End("Commit of a replaced plan", got, expected);
}

StatusCode LockstepCache::CommitAgain() {
  Begin();
  const StatusCode got = manager_->Commit(std::move(spent_)).status().code();
  return End("Commit of a committed plan", got,
             StatusCode::kFailedPrecondition);
}

void LockstepCache::ReplacePlan() {
  if (!plan_made_) return;
  replaced_ = std::move(plan_);
  has_replaced_ = true;
  plan_made_ = false;
}

void LockstepCache::DropPlan() {
  plan_ = StepPlan();
  plan_made_ = false;
}

StatusCode LockstepCache::Allocate(absl::Span<const TokenId> prompt,
                                   KeyExtras extras) {
  Begin();
  requests_ = {StepRequest::Admit(prompt, extras)};
  return OneCall(manager_->Allocate(prompt, extras), "Allocate");
}

StatusCode LockstepCache::Append(SequenceId id,
                                 absl::Span<const TokenId> tokens) {
  Begin();
  requests_ = {StepRequest::Extend(id, tokens)};
  return OneCall(manager_->Append(id, tokens), "Append");
}

// Allocate and Append: the plan is not seen, the step is. The model plans
// before it commits, so it does not mind that the manager has done so.
StatusCode LockstepCache::OneCall(const absl::StatusOr<Admission>& admission,
                                  const char* call) {
  model_.Plan(requests_, /*fitting=*/false, &model_plan_);
  ReplacePlan();
  if (admission.ok() && model_plan_.code == StatusCode::kOk) {
    const absl::StatusOr<StepView> view = manager_->View(admission->step);
    if (!view.ok() || view->sequences.size() != 1 ||
        view->sequences[0].id != admission->id ||
        view->sequences[0].cached_tokens != admission->cached_tokens) {
      Violate(call, " describes another step than it made");
    } else {
      CompareView(*view);
    }
    if (!ok()) return StatusCode::kInternal;
    return FinishCommit(admission->step, model_plan_.code, call);
  }
  return End(call, admission.status().code(), model_plan_.code);
}

// ---- The other calls ----

StatusCode LockstepCache::Retire(StepId step) {
  Begin();
  std::vector<SequenceId> touched;
  if (const ReferenceStep* flying = model_.FindStep(step)) {
    for (const ReferenceStep::Part& part : flying->parts) {
      touched.push_back(part.id);
    }
  }
  // The engine is done with the step before it says so.
  if (!model_.in_flight().empty() && model_.in_flight().front().id == step) {
    if (std::string error = engine_.Run(model_); !error.empty()) Violate(error);
  }
  const StatusCode expected = model_.Retire(step);
  const StatusCode got = manager_->Retire(step).code();
  if (expected == StatusCode::kOk && got == expected) {
    ++version_;
    for (SequenceId id : touched) CompareSequence(id);
  }
  return End("Retire", got, expected);
}

StatusCode LockstepCache::MarkWritten(StepId step, uint32_t layer) {
  Begin();
  const StatusCode expected = model_.MarkWritten(step, layer);
  const StatusCode got = manager_->MarkWritten(step, layer).code();
  if (const ReferenceStep* flying = model_.FindStep(step)) {
    const absl::StatusOr<uint32_t> layers = manager_->LayersWritten(step);
    if (!layers.ok() || *layers != flying->layers_written) {
      Violate("LayersWritten is not ", flying->layers_written);
    }
  } else if (manager_->LayersWritten(step).status().code() !=
             StatusCode::kNotFound) {
    Violate("LayersWritten knows a step that is not in flight");
  }
  return End("MarkWritten", got, expected);
}

StatusCode LockstepCache::SetTokens(SequenceId id, TokenPos first,
                                    absl::Span<const TokenId> tokens) {
  Begin();
  const StatusCode expected = model_.SetTokens(id, first.value(), tokens);
  return Edited("SetTokens", id, manager_->SetTokens(id, first, tokens).code(),
                expected);
}

StatusCode LockstepCache::Accept(SequenceId id,
                                 absl::Span<const TokenId> tokens) {
  Begin();
  const StatusCode expected = model_.Accept(id, tokens);
  return Edited("Accept", id, manager_->Accept(id, tokens).code(), expected);
}

StatusCode LockstepCache::Truncate(SequenceId id, TokenCount tokens) {
  Begin();
  const StatusCode expected = model_.Truncate(id, tokens.value());
  return Edited("Truncate", id, manager_->Truncate(id, tokens).code(),
                expected);
}

StatusCode LockstepCache::Edited(const char* call, SequenceId id,
                                 StatusCode got, StatusCode expected) {
  if (got == StatusCode::kOk) ++version_;
  if (got == expected) CompareSequence(id);
  return End(call, got, expected);
}

StatusCode LockstepCache::Fork(SequenceId parent) {
  Begin();
  const StatusCode expected = model_.CanFork(parent);
  const absl::StatusOr<SequenceId> child = manager_->Fork(parent);
  if (child.ok() && expected == StatusCode::kOk) {
    ++version_;
    last_fork_ = *child;
    CheckNewId(*child);
    if (ok()) {
      model_.Fork(parent, *child);
      CompareSequence(*child);
    }
  }
  return End("Fork", child.status().code(), expected);
}

StatusCode LockstepCache::Free(SequenceId id) {
  Begin();
  const StatusCode expected = model_.Free(id);
  return Edited("Free", id, manager_->Free(id).code(), expected);
}

StatusCode LockstepCache::FreeAll() {
  Begin();
  model_.FreeAll();
  manager_->FreeAll();
  ++version_;
  return End("FreeAll", StatusCode::kOk, StatusCode::kOk);
}

StatusCode LockstepCache::Reset() {
  Begin();
  const StatusCode expected = model_.Reset();
  const StatusCode got = manager_->Reset().code();
  if (got == StatusCode::kOk) ++version_;
  return End("Reset", got, expected);
}

StatusCode LockstepCache::Pin(absl::Span<const TokenId> prompt,
                              KeyExtras extras) {
  Begin();
  ReferenceKvCache::Hit hit;
  const StatusCode expected = model_.CanPin(prompt, extras, &hit);
  const absl::StatusOr<PinId> pin = manager_->Pin(prompt, extras);
  if (pin.ok() && expected == StatusCode::kOk) {
    ++version_;
    last_pin_ = *pin;
    CheckNewId(SequenceId(pin->value()));
    if (ok()) model_.Pin(hit, *pin);
  }
  return End("Pin", pin.status().code(), expected);
}

StatusCode LockstepCache::Unpin(PinId pin) {
  Begin();
  const StatusCode expected = model_.Unpin(pin);
  const StatusCode got = manager_->Unpin(pin).code();
  if (got == StatusCode::kOk) ++version_;
  return End("Unpin", got, expected);
}

StatusCode LockstepCache::Lookup(absl::Span<const TokenId> prompt,
                                 KeyExtras extras) {
  Begin();
  ReferenceKvCache::Hit hit;
  const StatusCode expected = model_.Lookup(prompt, extras, &hit);
  const absl::StatusOr<Prefix> prefix = manager_->Lookup(prompt, extras);
  if (prefix.ok() && prefix->hit_tokens.value() != hit.tokens) {
    Violate("Lookup finds ", prefix->hit_tokens.value(), " tokens, expected ",
            hit.tokens);
  }
  return End("Lookup", prefix.status().code(), expected);
}

StatusCode LockstepCache::DrainEvents(size_t room) {
  Begin();
  drained_.resize(room);
  const size_t moved = manager_->DrainEvents(absl::MakeSpan(drained_));
  if (moved != std::min(room, model_.events().size())) {
    Violate("DrainEvents moved ", moved, " of ", model_.events().size(),
            " events into ", room, " places");
    return StatusCode::kInternal;
  }
  for (size_t i = 0; i < moved; ++i) {
    const CacheEvent& got = drained_[i];
    const CacheEvent& expected = model_.events()[i];
    if (got.kind != expected.kind || got.group != expected.group ||
        got.block_in_chunk != expected.block_in_chunk ||
        got.tokens != expected.tokens) {
      Violate("event ", i, " of ", moved, " is of kind ",
              static_cast<int>(got.kind), ", group ", got.group.value(),
              ", expected kind ", static_cast<int>(expected.kind), ", group ",
              expected.group.value());
    }
  }
  model_.DrainEvents(moved);
  return End("DrainEvents", StatusCode::kOk, StatusCode::kOk);
}

}  // namespace paged_kv::testing

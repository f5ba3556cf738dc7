// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "paged_kv/check.h"
#include "tests/support/random_operations.h"

namespace paged_kv::testing {
namespace {

using absl::StatusCode;
using Kind = Operation::Kind;

}  // namespace

const ReferenceSequence* OperationRunner::Pick(uint32_t pick) const {
  const std::vector<SequenceId>& living = cache_.model().living();
  if (living.empty()) return nullptr;
  return cache_.model().Find(living[pick % living.size()]);
}

SequenceId OperationRunner::WrongId(RandomBits* random) const {
  switch (random->Below(4)) {
    case 0:
      return freed_;
    case 1:  // the slot of a living one, another generation
      if (const ReferenceSequence* living = Pick(random->Below(100))) {
        return SequenceId(living->id.value() + (uint64_t{1} << 40));
      }
      return SequenceId(~uint64_t{0});
    case 2:
      return SequenceId(random->Below(1u << 20) + (1u << 20));
    default:
      return SequenceId(cache_.last_pin().value());
  }
}

bool OperationRunner::Run(const Operation& operation) {
  RandomBits random(operation.seed);
  if (operation.kind <= Kind::kAppend) return RunStep(operation, &random);
  if (operation.kind <= Kind::kFree) return RunEdit(operation, &random);
  if (operation.kind <= Kind::kFreeAll) return RunOther(operation, &random);
  return RunWrong(operation, &random);
}

bool OperationRunner::RunStep(const Operation& operation, RandomBits* random) {
  switch (operation.kind) {
    case Kind::kAllocate:
      MakePrompt(random, &scratch_);
      MakeExtras(random, scratch_.size(), &scratch_extras_);
      return Ok(cache_.Allocate(scratch_, scratch_extras_));
    case Kind::kAppend: {
      const ReferenceSequence* sequence = Pick(operation.pick);
      if (sequence == nullptr) return Ok(cache_.Append(WrongId(random), {}));
      // Append plans as many tokens as it is given values.
      const size_t ahead = sequence->known.size() > sequence->tokens
                               ? sequence->known.size() - sequence->tokens
                               : 0;
      MakeNext(*sequence, ahead > 0 ? 0 : SmallRows(random), random, &scratch_);
      if (ahead == 0) return Ok(cache_.Append(sequence->id, scratch_));
      // The rest of a prompt in chunks.
      requests_ = {StepRequest::Extend(
          sequence->id, TokenCount(static_cast<uint32_t>(ahead)))};
      return Ok(cache_.Plan(requests_, false)) && Ok(cache_.Commit());
    }
    default:
      MakeRequests(1 + operation.pick % 4, random);
      return Ok(cache_.Plan(requests_, operation.kind == Kind::kStepFitting)) &&
             cache_.ok() && Ok(cache_.Commit());
  }
}

// A step's end, and calls on one sequence.
bool OperationRunner::RunEdit(const Operation& operation, RandomBits* random) {
  const ReferenceKvCache& model = cache_.model();
  const ReferenceSequence* sequence = Pick(operation.pick);
  const SequenceId id = sequence != nullptr ? sequence->id : WrongId(random);
  switch (operation.kind) {
    case Kind::kRetire:
      return Ok(cache_.Retire(model.in_flight().empty()
                                  ? StepId(random->Below(9))
                                  : model.in_flight().front().id));
    case Kind::kSetTokens: {
      if (sequence == nullptr) return Ok(cache_.SetTokens(id, TokenPos(0), {}));
      const auto known = static_cast<uint32_t>(sequence->known.size());
      uint32_t count = sequence->tokens > known ? sequence->tokens - known : 0;
      if (random->OneIn(8)) count = random->Below(count + 1);
      if (random->OneIn(32)) count += 1;  // ahead of the tokens
      MakeNext(*sequence, count, random, &scratch_);
      return Ok(cache_.SetTokens(id, TokenPos(known), scratch_));
    }
    case Kind::kAccept: {
      // Rather one with drafts, if there is one.
      for (uint32_t i = 0; i < 8 && sequence != nullptr; ++i) {
        if (sequence->lookahead > 0) break;
        sequence = Pick(operation.pick + i);
      }
      if (sequence == nullptr) return Ok(cache_.Accept(id, {}));
      const uint32_t drafts = sequence->lookahead;
      MakeNext(*sequence,
               random->Below(drafts + 1 + (random->OneIn(32) ? 1 : 0)), random,
               &scratch_);
      return Ok(cache_.Accept(sequence->id, scratch_));
    }
    case Kind::kTruncate: {
      const uint32_t tokens = sequence != nullptr ? sequence->tokens : 0;
      const uint32_t cut = random->OneIn(3)
                               ? random->Below(tokens + 1)
                               : std::min(tokens, random->Below(6));
      return Ok(cache_.Truncate(id, TokenCount(tokens - cut)));
    }
    case Kind::kFork:
      return Ok(cache_.Fork(id));
    case Kind::kFree:
      freed_ = id;
      return Ok(cache_.Free(id));
    default:
      PAGED_KV_CHECK(false);
  }
}

// Pins, questions and what concerns the whole cache.
bool OperationRunner::RunOther(const Operation& operation, RandomBits* random) {
  const ReferenceKvCache& model = cache_.model();
  const ReferenceSequence* sequence = Pick(operation.pick);
  const auto group =
      GroupId(random->Below(static_cast<uint32_t>(model.groups().size())));
  switch (operation.kind) {
    case Kind::kPin:
      MakePrompt(random, &scratch_);
      MakeExtras(random, scratch_.size(), &scratch_extras_);
      return Ok(cache_.Pin(scratch_, scratch_extras_));
    case Kind::kUnpin: {
      const std::vector<PinId> pins = model.PinIds();
      if (!pins.empty()) unpinned_ = pins[operation.pick % pins.size()];
      return Ok(cache_.Unpin(unpinned_));
    }
    case Kind::kLookup:
      MakePrompt(random, &scratch_);
      MakeExtras(random, scratch_.size(), &scratch_extras_);
      if (random->OneIn(64)) scratch_.clear();
      return Ok(cache_.Lookup(scratch_, scratch_extras_));
    case Kind::kExport: {
      const auto& in_flight = model.in_flight();
      if (!in_flight.empty() && random->OneIn(2)) {
        return Ok(cache_.ExportAgain(
            in_flight[operation.pick % in_flight.size()].id, group));
      }
      ids_.clear();
      for (uint32_t i = random->Below(4); i > 0 && sequence != nullptr; --i) {
        ids_.push_back(Pick(operation.pick + i)->id);
      }
      return Ok(cache_.ExportSequences(ids_, group));
    }
    case Kind::kMarkWritten: {
      const auto& in_flight = model.in_flight();
      const StepId step = in_flight.empty()
                              ? StepId(random->Below(9))
                              : in_flight[operation.pick % in_flight.size()].id;
      return Ok(
          cache_.MarkWritten(step, random->Below(random->OneIn(8) ? 4 : 1)));
    }
    case Kind::kDrainEvents:
      return Ok(cache_.DrainEvents(random->Below(40)));
    case Kind::kReset:
      // Mostly of a cache that may be reset.
      if (!random->OneIn(4)) {
        while (!model.in_flight().empty() && cache_.ok()) {
          cache_.Retire(model.in_flight().front().id);
        }
        for (PinId pin : model.PinIds()) {
          if (cache_.ok()) cache_.Unpin(pin);
        }
        if (cache_.ok()) cache_.FreeAll();
      }
      return cache_.ok() && Ok(cache_.Reset());
    case Kind::kFreeAll:
      return Ok(cache_.FreeAll());
    default:
      PAGED_KV_CHECK(false);
  }
}

// Any call that makes plans stale.
StatusCode OperationRunner::ChangeSomething(RandomBits* random) {
  const ReferenceKvCache& model = cache_.model();
  const ReferenceSequence* sequence = Pick(random->Below(1u << 16));
  if (sequence == nullptr) return cache_.FreeAll();
  switch (random->Below(5)) {
    case 0:
      return cache_.Free(sequence->id);
    case 1:
      return cache_.Truncate(sequence->id, TokenCount(sequence->tokens));
    case 2:
      return cache_.Fork(sequence->id);
    case 3:
      return cache_.SetTokens(
          sequence->id, TokenPos(static_cast<uint32_t>(sequence->known.size())),
          {});
    default:
      return model.in_flight().empty()
                 ? cache_.Reset()
                 : cache_.Retire(model.in_flight().front().id);
  }
}

bool OperationRunner::RunWrong(const Operation& operation, RandomBits* random) {
  const ReferenceKvCache& model = cache_.model();
  const ReferenceSequence* sequence = Pick(operation.pick);
  switch (operation.kind) {
    case Kind::kPlanDropped: {
      MakeRequests(1 + operation.pick % 3, random);
      const bool planned = Ok(cache_.Plan(requests_, random->OneIn(3)));
      cache_.DropPlan();
      return planned;
    }
    case Kind::kPlanStale:
      MakeRequests(1 + operation.pick % 3, random);
      if (!Ok(cache_.Plan(requests_, false)) || !cache_.ok()) return false;
      ChangeSomething(random);
      return cache_.ok() && Ok(cache_.Commit());
    case Kind::kPlanReplaced: {
      MakeRequests(1, random);
      if (!Ok(cache_.Plan(requests_, false)) || !cache_.ok()) return false;
      MakeRequests(1 + operation.pick % 2, random);
      cache_.Plan(requests_, false);
      if (cache_.ok()) cache_.CommitReplaced();
      return cache_.ok() && Ok(cache_.Commit());
    }
    case Kind::kCommitTwice:
      MakeRequests(1 + operation.pick % 2, random);
      if (!Ok(cache_.Plan(requests_, false)) || !cache_.ok()) return false;
      cache_.Commit();
      return cache_.ok() && Ok(cache_.CommitAgain());
    case Kind::kRetireWrong: {
      const auto& in_flight = model.in_flight();
      if (in_flight.size() > 1 && random->OneIn(2)) {
        return Ok(cache_.Retire(in_flight.back().id));
      }
      return Ok(cache_.Retire(StepId(
          random->OneIn(2) ? cache_.last_step().value() + 1 + random->Below(9)
                           : random->Below(3))));
    }
    case Kind::kSetWrongTokens: {
      if (sequence == nullptr) return Ok(cache_.SetTokens(freed_, {}, {}));
      const auto known = static_cast<uint32_t>(sequence->known.size());
      if (random->OneIn(4)) {  // the right place, too many
        scratch_.assign(model.options().max_tokens_per_sequence - known + 1, 1);
        return Ok(cache_.SetTokens(sequence->id, TokenPos(known), scratch_));
      }
      scratch_.assign(random->Below(3), 1);
      return Ok(cache_.SetTokens(
          sequence->id, TokenPos(known + 1 + random->Below(5)), scratch_));
    }
    case Kind::kFreeWrong:
      return Ok(cache_.Free(WrongId(random)));
    case Kind::kCallWrong:
      return RunCallWrong(random);
    default:
      PAGED_KV_CHECK(false);
  }
}

bool OperationRunner::RunCallWrong(RandomBits* random) {
  const SequenceId id = WrongId(random);
  const TokenId token = 1;
  const auto groups = static_cast<uint32_t>(cache_.model().groups().size());
  switch (random->Below(11)) {
    case 0:
      return Ok(cache_.Append(id, {&token, 1}));
    case 1:
      return Ok(cache_.Accept(id, {}));
    case 2:
      return Ok(cache_.Truncate(id, TokenCount(1)));
    case 3:
      return Ok(cache_.Fork(id));
    case 4:
      return Ok(cache_.Unpin(random->OneIn(2) ? unpinned_ : PinId(id.value())));
    case 5:
      return Ok(cache_.ExportSequences({&id, 1}, GroupId(0)));
    case 6:
      return Ok(cache_.ExportAgain(StepId(random->Below(5)),
                                   GroupId(random->Below(groups + 1))));
    case 7:
      return Ok(cache_.Allocate({}, {}));
    case 8:
      return Ok(cache_.Plan({}, random->OneIn(2)));
    case 9: {
      const ReferenceSequence* sequence = Pick(random->Below(100));
      if (sequence == nullptr) return Ok(cache_.Truncate(id, TokenCount(0)));
      return Ok(cache_.Truncate(
          sequence->id, TokenCount(sequence->tokens + 1 + random->Below(9))));
    }
    default:
      return Ok(cache_.Append(id, {}));
  }
}

}  // namespace paged_kv::testing

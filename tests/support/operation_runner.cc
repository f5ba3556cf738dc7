// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "tests/support/random_operations.h"

namespace paged_kv::testing {
namespace {

using absl::StatusCode;
using Kind = Operation::Kind;

// A few texts that prompts begin with, and a few words to end them.
constexpr uint32_t kTexts = 4;
constexpr uint32_t kWords = 3;

TokenId TextToken(uint32_t text, uint32_t position) {
  return static_cast<TokenId>(1000 * (text + 1) + position % 7);
}

// Mostly small, at most `most`.
uint32_t SmallNumber(uint32_t most, RandomBits* random) {
  return 1 + random->Below(random->OneIn(4) ? most : std::min(most, 2u));
}

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

void OperationRunner::MakePrompt(RandomBits* random, Tokens* prompt) const {
  const uint32_t length = random->Between(1, workload_.longest_prompt);
  const uint32_t common = random->OneIn(3) ? length : random->Below(length + 1);
  const uint32_t text = random->Below(kTexts);
  prompt->resize(length);
  for (uint32_t i = 0; i < length; ++i) {
    (*prompt)[i] = i < common ? TextToken(text, i)
                              : static_cast<TokenId>(random->Below(kWords));
  }
}

// Goes on with the text that the sequence's last token is of, half the time.
void OperationRunner::MakeNext(const ReferenceSequence& sequence, size_t count,
                               RandomBits* random, Tokens* tokens) const {
  tokens->resize(count);
  const bool follow = random->OneIn(2) && !sequence.known.empty();
  const uint32_t text =
      follow ? static_cast<uint32_t>(sequence.known.back()) / 1000 : 0;
  auto position = static_cast<uint32_t>(sequence.known.size());
  for (TokenId& token : *tokens) {
    token = text > 0 ? TextToken(text - 1, position++)
                     : static_cast<TokenId>(random->Below(kWords));
  }
}

void OperationRunner::MakeExtras(RandomBits* random, size_t prompt_tokens,
                                 std::vector<KeyExtra>* extras) const {
  static constexpr absl::string_view kValues[] = {
      "a", "b", "ab", "", "a value too long for one of the small cells, by far",
  };
  extras->clear();
  if (!random->OneIn(6)) return;
  for (uint32_t i = random->Between(1, 2); i > 0; --i) {
    KeyExtra extra;
    extra.kind = static_cast<KeyExtra::Kind>(random->Between(1, 4));
    extra.value = kValues[random->Below(random->OneIn(4) ? 5 : 2)];
    if (extra.kind == KeyExtra::Kind::kContent) {
      // Now and then behind the prompt's end.
      extra.position = TokenPos(random->Below(
          static_cast<uint32_t>(prompt_tokens) + (random->OneIn(16) ? 2 : 0)));
    }
    extras->push_back(extra);
  }
}

void OperationRunner::MakeAdmit(RandomBits* random, StepRequest* request,
                                Tokens* tokens,
                                std::vector<KeyExtra>* extras) const {
  MakePrompt(random, tokens);
  MakeExtras(random, tokens->size(), extras);
  if (random->OneIn(64)) tokens->clear();
  if (random->OneIn(64)) {
    tokens->resize(cache_.model().options().max_tokens_per_sequence +
                   random->Below(3));
  }
  *request = StepRequest::Admit(*tokens, *extras);
  if (random->OneIn(4)) {
    request->new_tokens = TokenCount(random->Between(1, 12));
  }
  if (random->OneIn(8)) request->lookahead = TokenCount(random->Below(5));
  if (random->OneIn(12)) {
    request->reserve_tokens =
        TokenCount(random->Below(2 * workload_.longest_prompt));
  }
  if (random->OneIn(4)) {
    request->priority = random->Below(kPriorities + (random->OneIn(8) ? 1 : 0));
  }
  request->share = !random->OneIn(16);
}

void OperationRunner::MakeExtend(uint32_t pick, RandomBits* random,
                                 StepRequest* request, Tokens* tokens) const {
  const ReferenceSequence* sequence = Pick(pick);
  if (sequence == nullptr || random->OneIn(64)) {
    *request = StepRequest::Extend(WrongId(random), TokenCount(1));
    return;
  }
  uint32_t rows = SmallNumber(workload_.longest_append, random);
  const auto known = static_cast<uint32_t>(sequence->known.size());
  // Of a prompt in chunks, mostly no more than is known.
  if (known > sequence->tokens && !random->OneIn(8)) {
    rows = std::min(rows, known - sequence->tokens);
  }
  if (random->OneIn(64)) rows = 0;
  // Values of the last positions, or some, or none; rarely too many.
  const uint32_t end = sequence->tokens + rows;
  uint32_t values = end > known ? end - known : 0;
  if (random->OneIn(4)) values = random->Below(values + 1);
  if (random->OneIn(64)) ++values;
  MakeNext(*sequence, values, random, tokens);
  *request = StepRequest::Extend(sequence->id, TokenCount(rows));
  request->tokens = *tokens;
  if (random->OneIn(6)) {
    request->lookahead = TokenCount(random->Between(1, 5));
    if (random->OneIn(3)) {  // drafts only
      request->new_tokens = TokenCount(0);
      if (sequence->tokens <= known) request->tokens = {};
    }
  }
  if (random->OneIn(16)) {
    request->reserve_tokens = TokenCount(end + random->Below(12));
  }
}

void OperationRunner::MakeRequests(uint32_t count, RandomBits* random) {
  requests_.resize(count);
  tokens_.resize(std::max<size_t>(tokens_.size(), count));
  extras_.resize(std::max<size_t>(extras_.size(), count));
  // Extends go round, so that two of a step rarely name one sequence.
  uint32_t pick = random->Below(1u << 16);
  for (uint32_t i = 0; i < count; ++i) {
    requests_[i] = StepRequest();
    const size_t living = cache_.model().living().size();
    if (living == 0 || random->OneIn(living > count ? 4 : 2)) {
      MakeAdmit(random, &requests_[i], &tokens_[i], &extras_[i]);
    } else {
      MakeExtend(pick++, random, &requests_[i], &tokens_[i]);
    }
  }
}

bool OperationRunner::Run(const Operation& operation) {
  RandomBits random(operation.seed);
  if (operation.kind <= Kind::kAppend) return RunStep(operation, &random);
  if (operation.kind <= Kind::kFreeAll) return RunEdit(operation, &random);
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
      MakeNext(*sequence,
               ahead > 0 ? 0 : SmallNumber(workload_.longest_append, random),
               random, &scratch_);
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

bool OperationRunner::RunEdit(const Operation& operation, RandomBits* random) {
  const ReferenceKvCache& model = cache_.model();
  const ReferenceSequence* sequence = Pick(operation.pick);
  const SequenceId id = sequence != nullptr ? sequence->id : WrongId(random);
  const auto group =
      GroupId(random->Below(static_cast<uint32_t>(model.groups().size())));
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

std::string OperationRunner::DescribeRequests() const {
  std::string text;
  for (const StepRequest& request : requests_) {
    const bool admit = request.kind == StepRequest::Kind::kAdmit;
    absl::StrAppend(&text, admit ? "  admit" : "  extend ", "");
    if (!admit) absl::StrAppend(&text, request.id.value());
    absl::StrAppend(&text, ": ", request.tokens.size(), " values, new_tokens ",
                    request.new_tokens.value(), ", lookahead ",
                    request.lookahead.value(), ", reserve ",
                    request.reserve_tokens.value(), ", ", request.extras.size(),
                    " extras, priority ", request.priority,
                    request.share ? "\n" : ", unshared\n");
  }
  return text;
}

}  // namespace paged_kv::testing

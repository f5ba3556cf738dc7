// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What operations are called with.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/support/random_operations.h"

namespace paged_kv::testing {
namespace {

// A few texts that prompts begin with, and a few words to end them.
constexpr uint32_t kTexts = 4;
constexpr uint32_t kWords = 3;

TokenId TextToken(uint32_t text, uint32_t position) {
  return static_cast<TokenId>(1000 * (text + 1) + position % 7);
}

}  // namespace

// Mostly one or two.
uint32_t OperationRunner::SmallRows(RandomBits* random) const {
  const uint32_t most = workload_.longest_append;
  return 1 + random->Below(random->OneIn(4) ? most : std::min(most, 2u));
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
  uint32_t rows = SmallRows(random);
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

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/prompt_lookup.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

using Tokens = std::vector<TokenId>;

Tokens Draft(const Tokens& tokens, uint32_t max_tokens) {
  Tokens draft = {99};  // what was there is forgotten
  LookUpDraft(tokens, max_tokens, &draft);
  return draft;
}

TEST(PromptLookupTest, TakesWhatFollowedTheLongestMatch) {
  EXPECT_EQ(Draft({1, 2, 3, 4, 5, 9, 3, 6, 1, 2, 3}, 2), (Tokens{4, 5}));
  EXPECT_EQ(Draft({7, 3, 4, 8, 3, 5, 2, 3}, 2), (Tokens{5, 2}))
      << "of equal ones, the last";
}

TEST(PromptLookupTest, GuessesNothingBehindANewToken) {
  EXPECT_EQ(Draft({}, 4), Tokens{});
  EXPECT_EQ(Draft({1}, 4), Tokens{});
  EXPECT_EQ(Draft({1, 2, 3}, 4), Tokens{});
  EXPECT_EQ(Draft({1, 2, 1}, 0), Tokens{});
}

TEST(PromptLookupTest, GoesOnWithItself) {
  EXPECT_EQ(Draft({5, 5}, 3), (Tokens{5, 5, 5}));
  EXPECT_EQ(Draft({1, 2, 1, 2, 1}, 5), (Tokens{2, 1, 2, 1, 2}));
}

// By trying every place and length.
Tokens Obvious(const Tokens& tokens, uint32_t max_tokens) {
  for (size_t length = std::min<size_t>(3, tokens.size()); length > 0;
       --length) {
    const Tokens tail(tokens.end() - static_cast<ptrdiff_t>(length),
                      tokens.end());
    for (size_t first = tokens.size() - length; first-- > 0;) {
      if (!std::equal(tail.begin(), tail.end(),
                      tokens.begin() + static_cast<ptrdiff_t>(first))) {
        continue;
      }
      Tokens all = tokens;
      for (size_t i = first + length; all.size() < tokens.size() + max_tokens;
           ++i) {
        all.push_back(all[i]);
      }
      return {all.begin() + static_cast<ptrdiff_t>(tokens.size()), all.end()};
    }
  }
  return {};
}

TEST(PromptLookupTest, AgreesWithTryingEverything) {
  std::mt19937_64 random(TestSeed(3));
  for (int i = 0; i < 3000; ++i) {
    Tokens tokens(random() % 30);
    const auto vocab = static_cast<TokenId>(1 + random() % 6);
    for (TokenId& token : tokens) {
      token = static_cast<TokenId>(random() % 1000) % vocab;
    }
    const auto most = static_cast<uint32_t>(random() % 8);
    ASSERT_EQ(Draft(tokens, most), Obvious(tokens, most)) << "round " << i;
  }
}

}  // namespace
}  // namespace paged_kv::llm

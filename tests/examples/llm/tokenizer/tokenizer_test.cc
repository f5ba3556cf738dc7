// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/tokenizer.h"

#include <string>
#include <vector>

#include "docs/examples/llm/tokenizer/streaming_decoder.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/support/test_vocabularies.h"

namespace paged_kv::llm {
namespace {

std::unique_ptr<Tokenizer> Make(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::Create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<TokenId> Encode(const Tokenizer& tokenizer, const std::string& text,
                            const EncodeOptions& options = {}) {
  const auto tokens = tokenizer.Encode(text, options);
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return tokens.ok() ? *tokens : std::vector<TokenId>();
}

using Tokens = std::vector<TokenId>;

constexpr TokenId kFirstByte = 3;     // of SentencePieceVocabulary
constexpr TokenId kFirstPiece = 259;  // likewise

TEST(SentencePieceTest, MergesTheBestScoreFirst) {
  // Pieces in falling score: "ab" before "bc", both before "abc".
  const auto tokenizer = Make(SentencePieceVocabulary(
      {"\u2581", "a", "b", "c", "ab", "bc", "abc", "\u2581ab"}));
  const TokenId p = kFirstPiece;
  EXPECT_EQ(Encode(*tokenizer, "bc"), (Tokens{1, p, p + 5}));
  EXPECT_EQ(Encode(*tokenizer, "cabc"), (Tokens{1, p, p + 3, p + 6}));
  EXPECT_EQ(Encode(*tokenizer, "ab"), (Tokens{1, p + 7}));
  // Of two equal pairs the left one merges.
  const auto ties = Make(SentencePieceVocabulary({"a", "aa"}));
  EXPECT_EQ(Encode(*ties, "aaa", {AddBos::kNo, false}).back(), kFirstPiece);
}

TEST(SentencePieceTest, FallsBackToBytesThenToUnknown) {
  const auto tokenizer = Make(SentencePieceVocabulary({"\u2581", "a"}));
  EXPECT_EQ(Encode(*tokenizer, "a\u00e9"),
            (Tokens{1, kFirstPiece, kFirstPiece + 1, kFirstByte + 0xC3,
                    kFirstByte + 0xA9}));
  Vocabulary bare = SentencePieceVocabulary({"\u2581", "a"});
  for (TokenKind& kind : bare.token_kinds) {
    if (kind == TokenKind::kByte) kind = TokenKind::kUnused;
  }
  EXPECT_EQ(Encode(*Make(bare), "\u00e9").back(), 0);
  bare.unknown = absl::nullopt;
  const auto error = Make(bare)->Encode("\u00e9");
  EXPECT_EQ(error.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SentencePieceTest, TextNeverBecomesControlOrByteTokens) {
  const auto tokenizer = Make(SentencePieceVocabulary(
      {"\u2581", "<", "s", ">", "<s", "0", "x", "A", "<0", "<0x", "<0x0"}));
  for (const std::string text : {"<s>", "<0x0A>", "</s>", "<unk>"}) {
    for (const TokenId token : Encode(*tokenizer, text, {AddBos::kNo, false})) {
      EXPECT_FALSE(tokenizer->IsControl(token)) << text;
      EXPECT_NE(token, kFirstByte + 10);
      EXPECT_NE(token, 0);
    }
    EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, text)), text);
  }
}

TEST(SentencePieceTest, TheSpaceBeforeTheTextIsDroppedAgain) {
  const auto tokenizer = Make(SentencePieceVocabulary({"\u2581", "a"}));
  const TokenId space = kFirstPiece;
  const TokenId a = kFirstPiece + 1;
  EXPECT_EQ(Encode(*tokenizer, ""), Tokens{1});
  EXPECT_EQ(Encode(*tokenizer, " a"), (Tokens{1, space, space, a}));
  EXPECT_EQ(tokenizer->Decode({1, space, space, a}), " a");
  EXPECT_EQ(tokenizer->Decode({space, a}), "a");
  EXPECT_EQ(tokenizer->Decode({space, a}, /*at_start=*/false), " a");
  EXPECT_EQ(Encode(*tokenizer, "a</s>a", {AddBos::kNo, true}),
            (Tokens{space, a, 2, space, a}));
  EXPECT_EQ(tokenizer->Decode({space, a, 2, space, a}), "aa");
  Vocabulary without = SentencePieceVocabulary({"\u2581", "a"});
  without.add_space_prefix = false;
  EXPECT_EQ(Encode(*Make(without), "a"), (Tokens{1, a}));
  EXPECT_EQ(Make(without)->Decode({1, space, a}), " a");
}

TEST(ByteLevelTest, MergesByRankWithinPieces) {
  const auto tokenizer = Make(ByteLevelVocabulary({{"l", "l"},
                                                   {"h", "e"},
                                                   {"he", "ll"},
                                                   {" ", "he"},
                                                   {" he", "ll"},
                                                   {"o", " "}},
                                                  "gpt-2"));
  EXPECT_EQ(Encode(*tokenizer, "hell"), Tokens{258});
  // The piece is " hell": rank 3 takes the space before rank 2 is looked at
  // again, but rank 2 goes first.
  EXPECT_EQ(Encode(*tokenizer, "o hello"), (Tokens{'o', ' ', 258, 'o'}));
  EXPECT_EQ(tokenizer->TokenBytes(260), " hell");
  EXPECT_EQ(tokenizer->TokenText(260), "\u0120hell");
  EXPECT_EQ(tokenizer->FindToken("\u0120hell"), 260);
}

TEST(ByteLevelTest, WholePiecesFirstForLlama3) {
  // "abc" is a token that no merge leads to.
  Vocabulary vocabulary = ByteLevelVocabulary({{"a", "b"}}, "llama-bpe");
  const TokenId abc = AddToken(&vocabulary, "abc");
  EXPECT_EQ(Encode(*Make(vocabulary), "abc"), Tokens{abc});
  vocabulary.pre_tokenizer = "qwen2";
  EXPECT_EQ(Encode(*Make(vocabulary), "abc"), (Tokens{256, 'c'}));
}

TEST(ByteLevelTest, LeavesOutBytesWithoutATokenAsTheOriginalsDo) {
  Vocabulary vocabulary = ByteLevelVocabulary({{"a", "b"}}, "gpt-2");
  vocabulary.token_kinds[0x13] = TokenKind::kUnused;
  vocabulary.unknown = 0;
  EXPECT_EQ(Encode(*Make(vocabulary), "x\x13y"), (Tokens{'x', 'y'}));
  EXPECT_EQ(Encode(*Make(vocabulary), "\x13"), Tokens{});
}

TEST(ByteLevelTest, RefusesMergesOfNoTokens) {
  for (const char* merge : {"a", "a xy", "a b", "", " "}) {
    Vocabulary vocabulary = ByteLevelVocabulary({}, "gpt-2");
    vocabulary.merges = {merge};
    const auto tokenizer = Tokenizer::Create(vocabulary);
    EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument)
        << merge;
  }
}

TEST(TokenizerTest, SpecialTokensAreFoundWhereAskedFor) {
  Vocabulary vocabulary = ByteLevelVocabulary({}, "gpt-2");
  const TokenId added =
      AddToken(&vocabulary, "<tool>", TokenKind::kUserDefined);
  const TokenId longer =
      AddToken(&vocabulary, "<tool>!", TokenKind::kUserDefined);
  const TokenId start = *vocabulary.bos;
  const auto tokenizer = Make(vocabulary);
  EXPECT_EQ(Encode(*tokenizer, "a<|im_start|>b", {AddBos::kNo, true}),
            (Tokens{'a', start, 'b'}));
  EXPECT_EQ(Encode(*tokenizer, "a<|im_start|>b").size(), 14U);
  EXPECT_EQ(Encode(*tokenizer, "<tool><tool>!x"), (Tokens{added, longer, 'x'}));
  EXPECT_EQ(tokenizer->Decode({'a', start, added, 'b'}), "a<tool>b");
  EXPECT_TRUE(tokenizer->IsSpecial(added));
  EXPECT_FALSE(tokenizer->IsControl(added));
  EXPECT_TRUE(tokenizer->IsControl(start));
}

TEST(TokenizerTest, BosAsTheModelSaysOrAsAskedFor) {
  const auto llama = Make(SentencePieceVocabulary({"\u2581"}));
  EXPECT_EQ(Encode(*llama, ""), Tokens{1});
  EXPECT_EQ(Encode(*llama, "", {AddBos::kNo, false}), Tokens{});
  Vocabulary vocabulary = ByteLevelVocabulary({}, "gpt-2");
  EXPECT_EQ(Encode(*Make(vocabulary), ""), Tokens{});
  EXPECT_EQ(Encode(*Make(vocabulary), "", {AddBos::kYes, false}),
            Tokens{*vocabulary.bos});
  vocabulary.bos = absl::nullopt;
  EXPECT_EQ(Encode(*Make(vocabulary), "", {AddBos::kYes, false}), Tokens{});
}

TEST(TokenizerTest, EndsAreEosAndTheOthers) {
  Vocabulary vocabulary = ByteLevelVocabulary({}, "gpt-2");
  vocabulary.other_ends = {7};
  const auto tokenizer = Make(vocabulary);
  EXPECT_TRUE(tokenizer->EndsText(*vocabulary.eos));
  EXPECT_TRUE(tokenizer->EndsText(7));
  EXPECT_FALSE(tokenizer->EndsText(8));
  EXPECT_FALSE(tokenizer->EndsText(-1));
}

TEST(TokenizerTest, TextThatIsNotUtf8IsRefusedWithItsPlace) {
  const auto tokenizer = Make(ByteLevelVocabulary({}, "gpt-2"));
  const auto tokens = tokenizer->Encode("abc\xE2\x82");
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(tokens.status().message().find("byte 3"), absl::string_view::npos);
}

TEST(TokenizerTest, TokensOutsideTheVocabularyAreShownAsReplacement) {
  const auto tokenizer = Make(ByteLevelVocabulary({}, "gpt-2"));
  EXPECT_EQ(tokenizer->Decode({'a', 100000, -5, 'b'}), "a\uFFFD\uFFFDb");
  EXPECT_EQ(tokenizer->TokenText(-1), "");
  EXPECT_FALSE(tokenizer->IsControl(100000));
}

TEST(TokenizerTest, RefusesVocabulariesThatContradictThemselves) {
  const auto refused = [](const Vocabulary& vocabulary) {
    return Tokenizer::Create(vocabulary).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(Vocabulary()));
  const Vocabulary right = SentencePieceVocabulary({"a"});
  Vocabulary wrong = right;
  wrong.scores.pop_back();
  EXPECT_TRUE(refused(wrong));
  wrong = right;
  wrong.token_kinds.pop_back();
  EXPECT_TRUE(refused(wrong));
  wrong = right;
  wrong.bos = 10000;
  EXPECT_TRUE(refused(wrong));
  wrong = right;
  wrong.other_ends = {-1};
  EXPECT_TRUE(refused(wrong));
  for (const char* text : {"<0x4>", "<0xGG>", "A", "<0x041>", ""}) {
    wrong = right;
    wrong.tokens[kFirstByte] = text;
    EXPECT_TRUE(refused(wrong)) << text;
  }
}

TEST(StreamingDecoderTest, GivesWholeCharactersOnly) {
  const auto tokenizer = Make(ByteLevelVocabulary({}, "gpt-2"));
  StreamingDecoder decoder(tokenizer.get());
  EXPECT_EQ(decoder.Next(0xF0), "");
  EXPECT_EQ(decoder.Next(0x9F), "");
  EXPECT_EQ(decoder.Next(0x98), "");
  EXPECT_EQ(decoder.Next(0x80), "\U0001F600");
  // A beginning that no end can follow is given up as soon as that shows.
  EXPECT_EQ(decoder.Next(0xE2), "");
  EXPECT_EQ(decoder.Next('a'), "\uFFFDa");
  EXPECT_EQ(decoder.Next(0xC3), "");
  EXPECT_EQ(decoder.Finish(), "\uFFFD");
  EXPECT_EQ(decoder.Finish(), "");
  EXPECT_EQ(decoder.Next('b'), "b");
}

}  // namespace
}  // namespace paged_kv::llm

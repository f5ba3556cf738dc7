// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens and back is the text: 10,000 random strings for each kind of
// tokenizer, and for the vocabularies of real models where they are there.

#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/gguf_file.h"
#include "docs/examples/llm/model_file/gguf_vocabulary.h"
#include "docs/examples/llm/model_file/llama2c_model.h"
#include "docs/examples/llm/tokenizer/streaming_decoder.h"
#include "docs/examples/llm/tokenizer/tokenizer.h"
#include "docs/examples/llm/tokenizer/utf8.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/support/model_cache.h"
#include "tests/examples/llm/support/random_text.h"
#include "tests/examples/llm/support/test_vocabularies.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

constexpr int kTexts = 10000;

std::unique_ptr<Tokenizer> Make(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::Create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::string Filtered(const std::string& text, bool (*allowed)(uint32_t)) {
  std::string kept;
  for (size_t i = 0; i < text.size();) {
    const Utf8Step step = NextUtf8(absl::string_view(text).substr(i));
    if (allowed(step.code_point)) AppendUtf8(step.code_point, &kept);
    i += step.bytes;
  }
  return kept;
}

// Every character.
bool Any(uint32_t) { return true; }

// `allowed`: which characters the texts may hold.
void ExpectRoundTrips(const Tokenizer& tokenizer, uint64_t seed,
                      bool (*allowed)(uint32_t) = Any) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < kTexts; ++i) {
    const std::string text = Filtered(RandomText(50, &random), allowed);
    const auto tokens = tokenizer.Encode(text, {AddBos::kAsModel, i % 2 == 1});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    ASSERT_EQ(tokenizer.Decode(*tokens), text) << "text " << i;
    StreamingDecoder decoder(&tokenizer, /*at_start=*/true);
    std::string streamed;
    for (const TokenId token : *tokens) {
      const std::string part = decoder.Next(token);
      ASSERT_FALSE(FindInvalidUtf8(part).has_value()) << "text " << i;
      streamed += part;
    }
    ASSERT_EQ(streamed + decoder.Finish(), text) << "text " << i;
  }
}

TEST(RoundTripPropertyTest, SentencePiece) {
  // Pieces that overlap in many ways, also across spaces.
  const Vocabulary vocabulary = SentencePieceVocabulary(
      {"\u2581", "a", "b", "e", "ab", "\u2581a", "\u2581\u2581", "be", "abe",
       "\u2581\u2581\u2581\u2581", "e\u2581", "\u65e5", "\u65e5\u672c", "\n",
       "\n\n", "1", "12"});
  ExpectRoundTrips(*Make(vocabulary), TestSeed(25));
}

TEST(RoundTripPropertyTest, ByteLevel) {
  const std::vector<std::pair<std::string, std::string>> merges = {
      {" ", " "},   {"a", "b"},       {" ", "a"},       {"  ", "  "},
      {"e", "r"},   {"\xE6", "\x97"}, {"\xF0", "\x9F"}, {"\r", "\n"},
      {"\n", "\n"}, {"\xCC", "\x81"}, {"1", "2"},       {"ab", "er"}};
  for (const char* name : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    SCOPED_TRACE(name);
    ExpectRoundTrips(*Make(ByteLevelVocabulary(merges, name)), TestSeed(26));
  }
}

TEST(RoundTripPropertyTest, DecodingAnyTokensEqualsStreamingThem) {
  std::mt19937_64 random(TestSeed(27));
  const auto tokenizer = Make(SentencePieceVocabulary({"\u2581", "\u2581a"}));
  for (int i = 0; i < kTexts; ++i) {
    std::vector<TokenId> tokens(random() % 20);
    for (TokenId& token : tokens) {
      token = static_cast<TokenId>(random() % (tokenizer->size() + 2)) - 1;
    }
    const std::string text = tokenizer->Decode(tokens);
    ASSERT_FALSE(FindInvalidUtf8(text).has_value());
    std::string bytes;
    bool drops_space = true;
    for (const TokenId token : tokens) {
      absl::string_view part = tokenizer->TokenBytes(token);
      if (drops_space && !part.empty() && part[0] == ' ') part.remove_prefix(1);
      drops_space = tokenizer->IsControl(token);
      bytes.append(part.data(), part.size());
    }
    ASSERT_EQ(text, ReplaceInvalidUtf8(bytes));
  }
}

TEST(RoundTripPropertyTest, Stories260K) {
  const auto source = OpenFile(SharedFile("model/tok512.bin"));
  if (!source.ok()) GTEST_SKIP() << source.status();
  const auto vocabulary = LoadLlama2cVocabulary(**source, 512);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  ExpectRoundTrips(*Make(*vocabulary), TestSeed(28));
}

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// What llama2.c's own tokenizer and decoder gave.
TEST(Stories260KTest, TokensAndTextAreThoseOfTheReference) {
  const auto source = OpenFile(SharedFile("model/tok512.bin"));
  const std::string text = ReadText(SharedFile("golden/greedy_text.txt"));
  if (!source.ok() || text.empty()) GTEST_SKIP() << "no golden files";
  const auto vocabulary = LoadLlama2cVocabulary(**source, 512);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  const auto tokenizer = Make(*vocabulary);
  std::vector<TokenId> golden;
  std::istringstream lines(ReadText(SharedFile("golden/greedy_tokens.txt")));
  for (TokenId token = 0; lines >> token;) golden.push_back(token);
  ASSERT_EQ(golden.size(), 256U);
  EXPECT_EQ(tokenizer->Decode(golden), text);
  const auto tokens = tokenizer->Encode(text);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokenizer->Decode(*tokens), text);
  EXPECT_EQ(*tokenizer->Encode("Once upon a time"),
            (std::vector<TokenId>{1, 403, 407, 261, 378}));
}

class SmolLm2Test : public testing::Test {
 protected:
  void SetUp() override {
    const auto source = OpenFile(SmolLm2Path());
    if (!source.ok()) {
      GTEST_SKIP() << source.status() << "; `make model` fetches it";
    }
    auto file = ReadGguf(**source);
    ASSERT_TRUE(file.ok()) << file.status();
    auto vocabulary = TakeGgufVocabulary(&*file);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    tokenizer_ = Make(*vocabulary);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

// Its vocabulary has no token for the bytes 0xF1 and 0xF2, with which
// characters of the planes 4 to 11 begin (all unassigned), nor for six control
// characters.
bool SmolLm2Has(uint32_t code_point) {
  switch (code_point) {
    case 0x04:
    case 0x06:
    case 0x13:
    case 0x14:
    case 0x16:
    case 0x1D:
      return false;
    default:
      return code_point < 0x40000 || code_point > 0xBFFFF;
  }
}

TEST_F(SmolLm2Test, RoundTripsWhatItHasTokensFor) {
  ExpectRoundTrips(*tokenizer_, TestSeed(29), SmolLm2Has);
}

TEST_F(SmolLm2Test, LeavesOutWhatItHasNoTokensFor) {
  const auto tokens = tokenizer_->Encode("a\x13\x1D b");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokenizer_->Decode(*tokens), "a b");
}

// Expected values are those of Hugging Face's tokenizers 0.23 with the file's
// vocabulary and merges (compare_tokenizers.py).
TEST_F(SmolLm2Test, TrickyLines) {
  const struct {
    const char* text;
    std::vector<TokenId> tokens;
  } lines[] = {{"The capital of France is", {504, 3575, 282, 4649, 314}},
               {"in 2024,  it's 3.14 !",
                {254, 216, 34, 32, 34, 36, 28, 216, 357, 506, 216, 35, 30, 33,
                 36, 5728}},
               {"def f(x):\n    return x ** 2\n",
                {1604, 275, 24, 104, 727, 472, 1003, 1792, 1903, 216, 34, 198}},
               {"\u65e5\u672c\u8a9e and \u4e2d\u6587",
                {23274, 115, 40993, 179, 120, 248, 284, 216, 28589, 29184}},
               {"\U0001F469\u200d\U0001F4BB \U0001F44D\U0001F3FD",
                {10813, 235, 119, 321, 231, 10813, 236, 136, 15107, 235, 231,
                 10813, 233, 138}},
               {"a \u00a0\u3000 b\r\n\r\n\t c",
                {81, 3351, 250, 12109, 218, 278, 2738, 15290, 265}},
               {"WE'LL we'll", {23342, 23, 16421, 392, 3060}},
               {"\u0663\u00bd x\u0301", {164, 113, 16738, 1792, 151, 219}}};
  for (const auto& line : lines) {
    const auto tokens = tokenizer_->Encode(line.text);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(*tokens, line.tokens) << line.text;
  }
}

}  // namespace
}  // namespace paged_kv::llm

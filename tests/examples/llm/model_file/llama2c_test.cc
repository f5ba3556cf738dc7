// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/llama2c_model.h"
#include "docs/examples/llm/model_file/load_model.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/support/gguf_writer.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kHidden = 8;
constexpr int32_t kIntermediate = 12;
constexpr int32_t kLayers = 2;
constexpr int32_t kHeads = 4;
constexpr int32_t kKvHeads = 2;
constexpr int32_t kVocab = 5;
constexpr int32_t kContext = 16;
constexpr uint32_t kKvRows = kHidden / kHeads * kKvHeads;

// A checkpoint whose floats are 0, 1, 2 .. in the order of the file.
std::string Checkpoint(bool tied) {
  std::string file;
  for (const int32_t value : {kHidden, kIntermediate, kLayers, kHeads, kKvHeads,
                              tied ? kVocab : -kVocab, kContext}) {
    file += LittleEndian(value);
  }
  const uint32_t per_layer = 2 * kHidden + 2 * kHidden * kHidden +
                             2 * kHidden * kKvRows +
                             3 * kHidden * kIntermediate;
  const uint32_t floats = (tied ? 1 : 2) * kVocab * kHidden +
                          kLayers * per_layer + kHidden +
                          kContext * (kHidden / kHeads);
  for (uint32_t i = 0; i < floats; ++i) {
    file += LittleEndian(static_cast<float>(i));
  }
  return file;
}

absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& file) {
  return LoadLlama2cModel(OpenMemory(file), {});
}

// Where the next array begins, in floats.
class Cursor {
 public:
  void Expect(const Matrix& matrix, uint32_t rows, uint32_t cols) {
    ASSERT_EQ(matrix.rows, rows);
    ASSERT_EQ(matrix.cols, cols);
    for (size_t i = 0; i < matrix.size(); ++i) {
      ASSERT_EQ(matrix.f32()[i], static_cast<float>(next_ + i));
    }
    next_ += matrix.size();
  }
  void Expect(const std::vector<float>& vector) {
    ASSERT_EQ(vector.size(), static_cast<size_t>(kHidden));
    for (size_t i = 0; i < vector.size(); ++i) {
      ASSERT_EQ(vector[i], static_cast<float>(next_ + i));
    }
    next_ += vector.size();
  }
  void Skip(size_t floats) { next_ += floats; }

 private:
  size_t next_ = 0;
};

void ExpectInOrder(const Model& model, bool tied) {
  Cursor cursor;
  cursor.Expect(model.token_embedding, kVocab, kHidden);
  for (const auto& layer : model.layers) cursor.Expect(layer.attention_norm);
  for (const auto& layer : model.layers) {
    cursor.Expect(layer.wq, kHidden, kHidden);
  }
  for (const auto& layer : model.layers) {
    cursor.Expect(layer.wk, kKvRows, kHidden);
  }
  for (const auto& layer : model.layers) {
    cursor.Expect(layer.wv, kKvRows, kHidden);
  }
  for (const auto& layer : model.layers) {
    cursor.Expect(layer.wo, kHidden, kHidden);
  }
  for (const auto& layer : model.layers) cursor.Expect(layer.ffn_norm);
  for (const auto& layer : model.layers) {
    cursor.Expect(layer.w_gate, kIntermediate, kHidden);
  }
  for (const auto& layer : model.layers) {
    cursor.Expect(layer.w_down, kHidden, kIntermediate);
  }
  for (const auto& layer : model.layers) {
    cursor.Expect(layer.w_up, kIntermediate, kHidden);
  }
  cursor.Expect(model.final_norm);
  cursor.Skip(kContext * (kHidden / kHeads));
  if (!tied) cursor.Expect(model.output, kVocab, kHidden);
}

TEST(Llama2cTest, ReadsTheArraysInTheOrderOfRunC) {
  for (const bool tied : {true, false}) {
    auto model = Load(Checkpoint(tied));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->config.tied_embeddings, tied);
    EXPECT_EQ((*model)->config.vocab, static_cast<uint32_t>(kVocab));
    EXPECT_EQ((*model)->config.head_dim, 2U);
    EXPECT_EQ((*model)->config.max_context, static_cast<uint32_t>(kContext));
    ExpectInOrder(**model, tied);
    EXPECT_EQ((*model)->output.data == (*model)->token_embedding.data, tied);
  }
}

TEST(Llama2cTest, RefusesEveryOtherLength) {
  const std::string file = Checkpoint(true);
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_FALSE(Load(file.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Load(file + '\0').ok());
}

TEST(Llama2cTest, RefusesHeadersThatLie) {
  std::mt19937_64 random(TestSeed(22));
  constexpr int32_t kExtremes[] = {0, -1, 1, 3, 1 << 16, INT32_MAX, INT32_MIN};
  const std::string file = Checkpoint(true);
  for (size_t field = 0; field < 7; ++field) {
    for (const int32_t value : kExtremes) {
      std::string broken = file;
      broken.replace(4 * field, 4, LittleEndian(value));
      EXPECT_FALSE(Load(broken).ok()) << field << " " << value;
    }
  }
  for (int i = 0; i < 1000; ++i) {
    std::string broken = file;
    for (size_t field = 0; field < 7; ++field) {
      if (random() % 2 == 0) continue;
      broken.replace(
          4 * field, 4,
          LittleEndian(static_cast<int32_t>(random() >> (random() % 60))));
    }
    if (broken == file) continue;
    EXPECT_FALSE(Load(broken).ok());
  }
}

TEST(Llama2cTest, NamesLaterVersions) {
  const std::string file =
      "24ka" + LittleEndian(int32_t{2}) + std::string(100, '\0');
  const auto model = Load(file);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(model.status().message().find("version 2"),
            absl::string_view::npos);
}

// 259 special and byte tokens and one piece.
std::string VocabularyFile() {
  std::string file = LittleEndian(int32_t{7});
  const auto add = [&](float score, const std::string& text) {
    file += LittleEndian(score);
    file += LittleEndian(static_cast<int32_t>(text.size())) + text;
  };
  add(0, "<unk>");
  add(0, "\n<s>\n");
  add(0, "\n</s>\n");
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    add(0, text);
  }
  add(-1.5F, " the");
  return file;
}

TEST(Llama2cVocabularyTest, ReadsTokensAndScores) {
  const std::string file = VocabularyFile();
  const auto vocabulary = LoadLlama2cVocabulary(*OpenMemory(file), 260);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->tokens[1], "<s>");
  EXPECT_EQ(vocabulary->tokens[258], "<0xFF>");
  EXPECT_EQ(vocabulary->tokens[259], "\u2581the");
  EXPECT_EQ(vocabulary->scores[259], -1.5F);
  EXPECT_EQ(vocabulary->token_kinds[0], TokenKind::kUnknown);
  EXPECT_EQ(vocabulary->token_kinds[2], TokenKind::kControl);
  EXPECT_EQ(vocabulary->token_kinds[3], TokenKind::kByte);
  EXPECT_EQ(vocabulary->token_kinds[258], TokenKind::kByte);
  EXPECT_EQ(vocabulary->token_kinds[259], TokenKind::kNormal);
}

TEST(Llama2cVocabularyTest, RefusesAnotherSizeAndTruncation) {
  const std::string file = VocabularyFile();
  EXPECT_FALSE(LoadLlama2cVocabulary(*OpenMemory(file), 259).ok());
  EXPECT_FALSE(LoadLlama2cVocabulary(*OpenMemory(file), 261).ok());
  EXPECT_FALSE(LoadLlama2cVocabulary(*OpenMemory(file), UINT32_MAX).ok());
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string part = file.substr(0, size);
    ASSERT_FALSE(LoadLlama2cVocabulary(*OpenMemory(part), 260).ok()) << size;
  }
  std::string negative = file;
  negative.replace(8, 4, LittleEndian(int32_t{-1}));
  EXPECT_FALSE(LoadLlama2cVocabulary(*OpenMemory(negative), 260).ok());
}

class LoadModelTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* tmp = std::getenv("TEST_TMPDIR");
    folder_ =
        fs::path(tmp != nullptr ? tmp : testing::TempDir()) / "load_model";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  fs::path folder_;
};

TEST_F(LoadModelTest, ReadsACheckpointNamedByItsFile) {
  const auto model = LoadModel(Write("story.bin", Checkpoint(true)));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->name, "story");
  EXPECT_TRUE((*model)->vocabulary.tokens.empty());
}

TEST_F(LoadModelTest, SaysWhichFileIsMissingForeignOrBroken) {
  const auto code = [](const std::string& path) {
    const auto model = LoadModel(path);
    EXPECT_NE(model.status().message().find(path), absl::string_view::npos)
        << model.status();
    return model.status().code();
  };
  EXPECT_EQ(code(folder_ / "none.gguf"), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(folder_), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Write("empty", "")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Write("text", "It was a dark and stormy night; the rain")),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Write("cut.gguf", "GGUF\x03")), absl::StatusCode::kOutOfRange);
}

TEST_F(LoadModelTest, FindsTheVocabularyBesideTheModel) {
  const char* shared = std::getenv("PAGED_KV_SHARED_DIR");
  const fs::path model_path =
      fs::path(shared != nullptr ? shared : "../shared") /
      "model/stories260K.bin";
  if (!fs::exists(model_path)) GTEST_SKIP() << model_path << " is not there";
  const auto model = LoadModel(model_path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->config.hidden, 64U);
  EXPECT_EQ((*model)->config.layers, 5U);
  EXPECT_EQ((*model)->vocabulary.tokens.size(), 512U);
  EXPECT_EQ((*model)->vocabulary.tokens[403], "\u2581Once");
  EXPECT_EQ((*model)->layers[0].wq.type, WeightType::kF32);
}

}  // namespace
}  // namespace paged_kv::llm

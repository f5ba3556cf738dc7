// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/gguf_model.h"

#include <cmath>
#include <string>
#include <vector>

#include "attention/float_formats.h"
#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/tensor_type.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/support/tiny_gguf.h"

namespace paged_kv::llm {
namespace {

absl::StatusOr<std::unique_ptr<Model>> Load(const GgufWriter& writer,
                                            const LoadOptions& options = {}) {
  const std::string file = writer.Finish();
  return LoadGgufModel(OpenMemory(file), options);
}

// The error of a file, which must have one.
absl::Status ErrorOf(const GgufWriter& writer) {
  const auto model = Load(writer);
  EXPECT_FALSE(model.ok());
  return model.status();
}

testing::AssertionResult Mentions(const absl::Status& status,
                                  absl::StatusCode code,
                                  const std::string& text) {
  if (status.code() == code &&
      status.message().find(text) != absl::string_view::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << status.ToString() << " instead of \"" << text << "\"";
}

void ExpectMatrix(const Matrix& matrix, const std::string& name, uint32_t rows,
                  uint32_t cols) {
  SCOPED_TRACE(name);
  ASSERT_EQ(matrix.rows, rows);
  ASSERT_EQ(matrix.cols, cols);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(matrix.data.get()) % 64, 0U);
  for (size_t i = 0; i < matrix.size(); ++i) {
    const float expected = TinyValue(name, i);
    if (matrix.type == WeightType::kF32) {
      ASSERT_EQ(matrix.f32()[i], expected) << i;
    } else {
      ASSERT_EQ(matrix.bf16()[i], attention::F32ToBf16(expected)) << i;
    }
  }
}

void ExpectVector(const std::vector<float>& vector, const std::string& name,
                  size_t size) {
  EXPECT_EQ(vector, TinyValues(name, size)) << name;
}

void ExpectLayers(const Model& model, const TinySizes& s) {
  const uint32_t q_rows = s.heads * s.head_dim;
  const uint32_t kv_rows = s.kv_heads * s.head_dim;
  ASSERT_EQ(model.layers.size(), s.layers);
  for (uint32_t i = 0; i < s.layers; ++i) {
    const LayerWeights& layer = model.layers[i];
    const std::string p = "blk." + std::to_string(i) + ".";
    ExpectVector(layer.attention_norm, p + "attn_norm.weight", s.hidden);
    ExpectVector(layer.ffn_norm, p + "ffn_norm.weight", s.hidden);
    ExpectMatrix(layer.wq, p + "attn_q.weight", q_rows, s.hidden);
    ExpectMatrix(layer.wk, p + "attn_k.weight", kv_rows, s.hidden);
    ExpectMatrix(layer.wv, p + "attn_v.weight", kv_rows, s.hidden);
    ExpectMatrix(layer.wo, p + "attn_output.weight", s.hidden, q_rows);
    ExpectMatrix(layer.w_gate, p + "ffn_gate.weight", s.intermediate, s.hidden);
    ExpectMatrix(layer.w_up, p + "ffn_up.weight", s.intermediate, s.hidden);
    ExpectMatrix(layer.w_down, p + "ffn_down.weight", s.hidden, s.intermediate);
    const bool bias = model.config.qkv_bias;
    ExpectVector(layer.bq, p + "attn_q.bias", bias ? q_rows : 0);
    ExpectVector(layer.bk, p + "attn_k.bias", bias ? kv_rows : 0);
    ExpectVector(layer.bv, p + "attn_v.bias", bias ? kv_rows : 0);
  }
}

TEST(GgufModelTest, PutsEveryLlamaTensorInItsPlace) {
  const TinySizes sizes;
  auto model = Load(TinyGguf("llama", /*tied=*/false));
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelConfig& config = (*model)->config;
  EXPECT_EQ((*model)->name, "tiny");
  EXPECT_EQ(config.architecture, Architecture::kLlama);
  EXPECT_EQ(config.vocab, TinyTokens().size());
  EXPECT_EQ(config.hidden, sizes.hidden);
  EXPECT_EQ(config.intermediate, sizes.intermediate);
  EXPECT_EQ(config.heads, sizes.heads);
  EXPECT_EQ(config.kv_heads, sizes.kv_heads);
  EXPECT_EQ(config.head_dim, sizes.head_dim);
  EXPECT_EQ(config.max_context, sizes.context);
  EXPECT_EQ(config.rope_theta, 50000.0F);
  EXPECT_EQ(config.rope_style, RopeStyle::kInterleaved);
  EXPECT_EQ(config.rms_epsilon, 1e-6F);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_FALSE(config.qkv_bias);
  ExpectLayers(**model, sizes);
  const auto vocab = static_cast<uint32_t>(TinyTokens().size());
  ExpectMatrix((*model)->token_embedding, "token_embd.weight", vocab,
               sizes.hidden);
  ExpectMatrix((*model)->output, "output.weight", vocab, sizes.hidden);
  ExpectVector((*model)->final_norm, "output_norm.weight", sizes.hidden);
}

TEST(GgufModelTest, Qwen2HasBiasesHalvesAndTiedEmbeddings) {
  auto model = Load(TinyGguf("qwen2", /*tied=*/true));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->config.architecture, Architecture::kQwen2);
  EXPECT_EQ((*model)->config.rope_style, RopeStyle::kHalfSplit);
  EXPECT_TRUE((*model)->config.tied_embeddings);
  EXPECT_TRUE((*model)->config.qkv_bias);
  EXPECT_EQ((*model)->output.data, (*model)->token_embedding.data);
  ExpectLayers(**model, {});
}

TEST(GgufModelTest, HoldsMatricesInTheTypeAskedFor) {
  const GgufWriter writer = TinyGguf("llama", /*tied=*/true);
  auto f32 = Load(writer);
  auto bf16 = Load(writer, {WeightType::kBf16, ""});
  ASSERT_TRUE(f32.ok() && bf16.ok());
  EXPECT_EQ((*f32)->layers[0].wq.type, WeightType::kF32);
  EXPECT_EQ((*bf16)->layers[0].wq.type, WeightType::kBf16);
  ExpectLayers(**bf16, {});
  size_t vectors = 0;
  for (const LayerWeights& layer : (*f32)->layers) {
    vectors += layer.attention_norm.size() + layer.ffn_norm.size();
  }
  vectors = (vectors + (*f32)->final_norm.size()) * sizeof(float);
  // The tied output counts once.
  EXPECT_EQ((WeightBytes(**f32) - vectors) / 2, WeightBytes(**bf16) - vectors);
}

TEST(GgufModelTest, DefaultsToBf16WhereAMatrixIsNotF32) {
  GgufWriter writer = TinyGguf("llama", /*tied=*/true);
  GgufWriter::Tensor& embedding = writer.tensors[0];
  ASSERT_EQ(embedding.name, "token_embd.weight");
  std::string halves;
  for (uint64_t i = 0; i < embedding.data.size() / 4; ++i) {
    halves +=
        LittleEndian(attention::F32ToBf16(TinyValue("token_embd.weight", i)));
  }
  embedding.data = halves;
  embedding.type = static_cast<uint32_t>(TensorType::kBf16);
  auto model = Load(writer);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectMatrix((*model)->token_embedding, "token_embd.weight",
               (*model)->config.vocab, TinySizes().hidden);
  EXPECT_EQ((*model)->layers[0].wq.type, WeightType::kBf16);
}

TEST(GgufModelTest, MatricesOnDemandAreReadWhenAskedFor) {
  const std::string file = TinyGguf("llama", /*tied=*/true).Finish();
  LoadOptions options;
  options.on_demand = true;
  auto model = LoadGgufModel(OpenMemory(file), options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->output.SameAs((*model)->token_embedding));
  EXPECT_FALSE((*model)->layers[0].wq.SameAs((*model)->layers[1].wq));
  size_t vectors = 0;
  for (LayerWeights& layer : (*model)->layers) {
    vectors += layer.attention_norm.size() + layer.ffn_norm.size();
    EXPECT_EQ(layer.wo.data, nullptr);
  }
  vectors = (vectors + (*model)->final_norm.size()) * sizeof(float);
  EXPECT_EQ(WeightBytes(**model), vectors) << "a matrix was read";

  for (LayerWeights& layer : (*model)->layers) {
    for (Matrix* matrix : {&layer.wq, &layer.wk, &layer.wv, &layer.wo,
                           &layer.w_gate, &layer.w_up, &layer.w_down}) {
      const auto loaded = matrix->Loaded();
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      *matrix = *loaded;
    }
  }
  ExpectLayers(**model, TinySizes());
}

TEST(GgufModelTest, OnDemandRefusesWhatTheFileLacksAtOnce) {
  LoadOptions options;
  options.on_demand = true;
  const std::string file = TinyGguf("llama", /*tied=*/true).Finish();
  const auto model =
      LoadGgufModel(OpenMemory({file.data(), file.size() - 64}), options);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument)
      << model.status();
}

TEST(GgufModelTest, MemoryOutlivesTheModelWhereAMatrixIsKept) {
  auto model = Load(TinyGguf("llama", /*tied=*/true));
  ASSERT_TRUE(model.ok());
  const Matrix kept = (*model)->layers[1].w_up;
  model->reset();
  ExpectMatrix(kept, "blk.1.ffn_up.weight", TinySizes().intermediate,
               TinySizes().hidden);
}

TEST(GgufModelTest, ReadsTheVocabulary) {
  GgufWriter writer = TinyGguf("llama", /*tied=*/true);
  writer.Add("tokenizer.chat_template", "{{ '[INST]' }}");
  writer.Add("tokenizer.ggml.add_space_prefix", false);
  writer.Add("tokenizer.ggml.unknown_token_id", uint32_t{0});
  writer.Add("tokenizer.ggml.eot_token_id", uint32_t{3});
  auto model = Load(writer);
  ASSERT_TRUE(model.ok()) << model.status();
  const Vocabulary& vocabulary = (*model)->vocabulary;
  EXPECT_EQ(vocabulary.kind, VocabularyKind::kSentencePiece);
  EXPECT_EQ(vocabulary.tokens, TinyTokens());
  EXPECT_EQ(vocabulary.scores[7], -1.0F);
  EXPECT_EQ(vocabulary.token_kinds[0], TokenKind::kUnknown);
  EXPECT_EQ(vocabulary.token_kinds[1], TokenKind::kControl);
  EXPECT_EQ(vocabulary.token_kinds[3], TokenKind::kByte);
  EXPECT_EQ(vocabulary.token_kinds[8], TokenKind::kNormal);
  EXPECT_EQ(vocabulary.bos, 1);
  EXPECT_EQ(vocabulary.eos, 2);
  EXPECT_EQ(vocabulary.unknown, 0);
  EXPECT_EQ(vocabulary.other_ends, std::vector<TokenId>{3});
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_FALSE(vocabulary.add_space_prefix);
  EXPECT_EQ(vocabulary.chat_template, "{{ '[INST]' }}");
}

TEST(GgufModelTest, ReadsRopeFactors) {
  GgufWriter writer = TinyGguf("llama", /*tied=*/true);
  AddTinyTensor(&writer, "rope_freqs.weight", {2});
  auto model = Load(writer);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectVector((*model)->rope_factors, "rope_freqs.weight", 2);
}

TEST(GgufModelTest, NamesWhatItDoesNotSupport) {
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  EXPECT_TRUE(
      Mentions(ErrorOf(TinyGguf("mamba", true)), kUnimplemented, "mamba"));

  GgufWriter quantised = TinyGguf("llama", true);
  quantised.tensors[3].type = 12;
  EXPECT_TRUE(Mentions(ErrorOf(quantised), kUnimplemented, "Q4_K"));
  EXPECT_TRUE(
      Mentions(ErrorOf(quantised), kUnimplemented, quantised.tensors[3].name));

  GgufWriter extra = TinyGguf("llama", true);
  AddTinyTensor(&extra, "blk.0.attn_output.bias", {12});
  EXPECT_TRUE(
      Mentions(ErrorOf(extra), kUnimplemented, "blk.0.attn_output.bias"));

  const struct {
    const char* key;
    uint32_t value;
    const char* text;
  } variants[] = {{"llama.expert_count", 8, "8 experts"},
                  {"llama.attention.sliding_window", 16, "16 tokens"},
                  {"llama.rope.dimension_count", 2, "2 of 4"}};
  for (const auto& variant : variants) {
    GgufWriter writer = TinyGguf("llama", true);
    writer.Add(variant.key, variant.value);
    EXPECT_TRUE(Mentions(ErrorOf(writer), kUnimplemented, variant.text));
  }
  GgufWriter scaled = TinyGguf("llama", true);
  scaled.Add("llama.rope.scaling.type", "yarn");
  EXPECT_TRUE(Mentions(ErrorOf(scaled), kUnimplemented, "yarn"));

  GgufWriter old = TinyGguf("llama", true);
  old.version = 1;
  EXPECT_TRUE(Mentions(ErrorOf(old), kUnimplemented, "version 1"));
  GgufWriter foreign = TinyGguf("llama", true);
  foreign.version = 3U << 24;
  EXPECT_TRUE(Mentions(ErrorOf(foreign), kUnimplemented, "big-endian"));
}

TEST(GgufModelTest, SaysWhatIsMissingOrOfAnotherShape) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const size_t tensors = TinyGguf("qwen2", false).tensors.size();
  for (size_t i = 0; i < tensors; ++i) {
    GgufWriter missing = TinyGguf("qwen2", false);
    const std::string name = missing.tensors[i].name;
    // Without it the embeddings are tied, or there are no biases (the others
    // then are what the engine lacks).
    if (name == "output.weight" || name == "blk.0.attn_q.bias") continue;
    missing.tensors.erase(missing.tensors.begin() + static_cast<long>(i));
    EXPECT_TRUE(Mentions(ErrorOf(missing), kInvalid, name));

    GgufWriter turned = TinyGguf("qwen2", false);
    if (turned.tensors[i].shape.size() != 2) continue;
    std::swap(turned.tensors[i].shape[0], turned.tensors[i].shape[1]);
    EXPECT_FALSE(Load(turned).ok()) << name;
  }
}

TEST(GgufModelTest, RefusesConfigurationsThatCannotBe) {
  TinySizes sizes;
  sizes.kv_heads = 4;
  EXPECT_TRUE(Mentions(ErrorOf(TinyGguf("llama", true, sizes)),
                       absl::StatusCode::kInvalidArgument, "4 KV heads"));
  sizes = {};
  sizes.head_dim = 3;
  EXPECT_FALSE(Load(TinyGguf("llama", true, sizes)).ok());
  sizes = {};
  sizes.context = kMaxContext + 1;
  EXPECT_FALSE(Load(TinyGguf("llama", true, sizes)).ok());
  sizes.context = 0;
  EXPECT_FALSE(Load(TinyGguf("llama", true, sizes)).ok());
}

}  // namespace
}  // namespace paged_kv::llm

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/random_model.h"

#include <cmath>
#include <cstddef>
#include <new>
#include <vector>

#include "attention/float_formats.h"

namespace paged_kv::llm {
namespace {

// xorshift64* (Vigna 2016, arXiv:1402.6246): a few cycles per weight.
class WeightSource {
 public:
  explicit WeightSource(uint64_t seed) : state_(seed * 2 + 1) {}

  // Uniform over [-limit, limit).
  float Next(float limit) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    const auto bits =
        static_cast<int32_t>((state_ * 0x2545F4914F6CDD1Du) >> 32);
    return static_cast<float>(bits) * 0x1p-31F * limit;
  }

  std::vector<float> Vector(size_t n, float centre, float limit) {
    std::vector<float> values(n);
    for (float& value : values) value = centre + Next(limit);
    return values;
  }

 private:
  uint64_t state_;
};

constexpr std::align_val_t kMatrixAlignment{64};

Matrix RandomMatrix(WeightType type, uint32_t rows, uint32_t cols,
                    WeightSource& source) {
  Matrix matrix{type, rows, cols, nullptr};
  void* data = ::operator new(matrix.bytes(), kMatrixAlignment);
  matrix.data = std::shared_ptr<const void>(data, [](const void* memory) {
    ::operator delete(const_cast<void*>(memory), kMatrixAlignment);
  });
  // Uniform over [-limit, limit) has variance limit^2 / 3.
  const float limit = std::sqrt(3.0F / static_cast<float>(cols));
  for (size_t i = 0; i < matrix.size(); ++i) {
    const float value = source.Next(limit);
    if (type == WeightType::kF32) {
      static_cast<float*>(data)[i] = value;
    } else {
      static_cast<uint16_t*>(data)[i] = attention::F32ToBf16(value);
    }
  }
  return matrix;
}

LayerWeights RandomLayer(const ModelConfig& c, WeightType type,
                         WeightSource& source) {
  const uint32_t q = c.heads * c.head_dim;
  const uint32_t kv = c.kv_heads * c.head_dim;
  const auto matrix = [&](uint32_t rows, uint32_t cols) {
    return RandomMatrix(type, rows, cols, source);
  };
  LayerWeights layer;
  layer.attention_norm = source.Vector(c.hidden, 1.0F, 0.2F);
  layer.wq = matrix(q, c.hidden);
  layer.wk = matrix(kv, c.hidden);
  layer.wv = matrix(kv, c.hidden);
  if (c.qkv_bias) {
    layer.bq = source.Vector(q, 0.0F, 0.5F);
    layer.bk = source.Vector(kv, 0.0F, 0.5F);
    layer.bv = source.Vector(kv, 0.0F, 0.5F);
  }
  layer.wo = matrix(c.hidden, q);
  layer.ffn_norm = source.Vector(c.hidden, 1.0F, 0.2F);
  layer.w_gate = matrix(c.intermediate, c.hidden);
  layer.w_up = matrix(c.intermediate, c.hidden);
  layer.w_down = matrix(c.hidden, c.intermediate);
  return layer;
}

}  // namespace

std::unique_ptr<Model> MakeRandomModel(const ModelConfig& config,
                                       WeightType type, uint64_t seed) {
  WeightSource source(seed);
  auto model = std::make_unique<Model>();
  model->name = "random";
  model->config = config;
  model->token_embedding =
      RandomMatrix(type, config.vocab, config.hidden, source);
  for (uint32_t i = 0; i < config.layers; ++i) {
    model->layers.push_back(RandomLayer(config, type, source));
  }
  model->final_norm = source.Vector(config.hidden, 1.0F, 0.2F);
  model->output = config.tied_embeddings
                      ? model->token_embedding
                      : RandomMatrix(type, config.vocab, config.hidden, source);
  return model;
}

}  // namespace paged_kv::llm

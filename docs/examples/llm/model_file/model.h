// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A language model as loaded from a file: what it is, its weights by role, and
// its vocabulary. Plain data; the engine gives it life.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_MODEL_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "docs/examples/llm/tokenizer/vocabulary.h"

namespace paged_kv::llm {

// What a context length may be at most: no model comes near, and a corrupt file
// must not size somebody's tables.
inline constexpr uint32_t kMaxContext = 1 << 24;

enum class Architecture : uint8_t { kLlama, kQwen2 };

// Which dimensions of a head form the pairs that RoPE (Su et al. 2021,
// arXiv:2104.09864) rotates. Pair i turns by
// position * rope_theta^(-2 i / head_dim), whichever its place.
enum class RopeStyle : uint8_t {
  // (2 i, 2 i + 1): llama2.c, and Llama in GGUF, whose writer permutes the rows
  // of wq and wk to suit.
  kInterleaved,
  // (i, i + head_dim / 2): Qwen2, as in Hugging Face Transformers.
  kHalfSplit,
};

enum class WeightType : uint8_t { kF32, kBf16 };

const char* ArchitectureName(Architecture architecture);
const char* WeightTypeName(WeightType type);
constexpr size_t WeightTypeBytes(WeightType type) {
  return type == WeightType::kF32 ? 4 : 2;
}

// Invariants of a loaded model: every size is at least 1,
// heads % kv_heads == 0, head_dim is even, max_context <= kMaxContext,
// rope_theta > 0 and rms_epsilon >= 0 are finite.
struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  uint32_t vocab = 0;         // rows of the embedding and of the output
  uint32_t hidden = 0;        // width of the residual stream
  uint32_t intermediate = 0;  // width inside the feed-forward layer
  uint32_t layers = 0;
  uint32_t heads = 0;  // query heads
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t max_context = 0;  // tokens
  float rope_theta = 10000.0F;
  RopeStyle rope_style = RopeStyle::kInterleaved;
  float rms_epsilon = 1e-5F;
  bool tied_embeddings = false;  // output is the token embedding
  bool qkv_bias = false;
};

// InvalidArgument unless the invariants hold and every product of two sizes
// that a matrix needs fits 32 bits.
absl::Status ValidateConfig(const ModelConfig& config);

// A row-major matrix [rows, cols], in rows of `cols` elements without padding.
// As a linear layer it takes `cols` values to `rows`: y = W x. Copies share the
// memory, which lives until the last one goes: a reader that has repacked a
// matrix can let it go alone. 64-byte aligned. Absent: rows == 0.
//
// A matrix may still be in its file (LoadOptions::on_demand): it has its sizes
// then, but no data.
struct Matrix {
  WeightType type = WeightType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  std::shared_ptr<const void> data;
  // Where `data` is null: reads it. Keeps the file open.
  std::shared_ptr<const std::function<absl::StatusOr<Matrix>()>> read = nullptr;

  bool empty() const { return rows == 0; }
  size_t size() const { return size_t{rows} * cols; }
  size_t bytes() const { return size() * WeightTypeBytes(type); }
  // The matrix with its data, read now if need be. The file's errors.
  absl::StatusOr<Matrix> Loaded() const;
  // Whether both are one matrix, here or in the file.
  bool SameAs(const Matrix& other) const {
    return data == other.data && read == other.read;
  }
  // REQUIRES: type == kF32.
  const float* f32() const { return static_cast<const float*>(data.get()); }
  // REQUIRES: type == kBf16.
  const uint16_t* bf16() const {
    return static_cast<const uint16_t*>(data.get());
  }
};

// One transformer layer: x += wo(attention(norm(x))), then
// x += w_down(silu(w_gate(norm(x))) * w_up(norm(x))).
struct LayerWeights {
  std::vector<float> attention_norm;  // [hidden]
  Matrix wq;                          // [heads * head_dim, hidden]
  Matrix wk;                          // [kv_heads * head_dim, hidden]
  Matrix wv;                          // [kv_heads * head_dim, hidden]
  std::vector<float> bq, bk, bv;      // as many as rows above, or empty
  Matrix wo;                          // [hidden, heads * head_dim]
  std::vector<float> ffn_norm;        // [hidden]
  Matrix w_gate;                      // [intermediate, hidden]
  Matrix w_up;                        // [intermediate, hidden]
  Matrix w_down;                      // [hidden, intermediate]
};

struct Model {
  std::string name;  // as the file says, else the file's name
  ModelConfig config;
  Vocabulary vocabulary;   // empty (no tokens) where the file brings none
  Matrix token_embedding;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [hidden]
  Matrix output;  // [vocab, hidden]; shares token_embedding's memory if tied
  // Divisors of the angles of RoPE, [head_dim / 2], or empty (all 1): how
  // Llama 3.1 and later stretch their context.
  std::vector<float> rope_factors;
};

// Bytes of all weights that are here, memory that matrices share counted once.
size_t WeightBytes(const Model& model);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_MODEL_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/model.h"

#include <cmath>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace paged_kv::llm {

const char* ArchitectureName(Architecture architecture) {
  return architecture == Architecture::kLlama ? "llama" : "qwen2";
}

const char* WeightTypeName(WeightType type) {
  return type == WeightType::kF32 ? "f32" : "bf16";
}

absl::StatusOr<Matrix> Matrix::Loaded() const {
  if (read == nullptr) return *this;
  return (*read)();
}

absl::Status ValidateConfig(const ModelConfig& config) {
  const struct {
    const char* name;
    uint32_t value;
  } sizes[] = {{"vocabulary", config.vocab},
               {"hidden size", config.hidden},
               {"intermediate size", config.intermediate},
               {"number of layers", config.layers},
               {"number of heads", config.heads},
               {"number of KV heads", config.kv_heads},
               {"head size", config.head_dim},
               {"context length", config.max_context}};
  for (const auto& size : sizes) {
    if (size.value == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model's ", size.name, " is 0"));
    }
  }
  if (config.heads % config.kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.heads, " heads are no multiple of ",
                     config.kv_heads, " KV heads"));
  }
  if (config.head_dim % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a head of ", config.head_dim, " dimensions has no pairs to rotate"));
  }
  if (uint64_t{config.heads} * config.head_dim >
      std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.heads, " heads of ", config.head_dim, " are too many"));
  }
  if (config.max_context > kMaxContext) {
    return absl::InvalidArgumentError(
        absl::StrCat("a context of ", config.max_context, " tokens is beyond ",
                     kMaxContext));
  }
  if (!std::isfinite(config.rope_theta) || config.rope_theta <= 0 ||
      !std::isfinite(config.rms_epsilon) || config.rms_epsilon < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("RoPE base ", config.rope_theta, " or RMS epsilon ",
                     config.rms_epsilon, " is out of range"));
  }
  return absl::OkStatus();
}

size_t WeightBytes(const Model& model) {
  absl::flat_hash_set<const void*> seen;
  size_t bytes = 0;
  const auto add_matrix = [&](const Matrix& matrix) {
    if (matrix.data != nullptr && seen.insert(matrix.data.get()).second) {
      bytes += matrix.bytes();
    }
  };
  const auto add_vector = [&](const std::vector<float>& vector) {
    bytes += vector.size() * sizeof(float);
  };
  add_matrix(model.token_embedding);
  add_matrix(model.output);
  add_vector(model.final_norm);
  add_vector(model.rope_factors);
  for (const LayerWeights& layer : model.layers) {
    for (const Matrix* matrix : {&layer.wq, &layer.wk, &layer.wv, &layer.wo,
                                 &layer.w_gate, &layer.w_up, &layer.w_down}) {
      add_matrix(*matrix);
    }
    for (const std::vector<float>* vector :
         {&layer.attention_norm, &layer.ffn_norm, &layer.bq, &layer.bk,
          &layer.bv}) {
      add_vector(*vector);
    }
  }
  return bytes;
}

}  // namespace paged_kv::llm

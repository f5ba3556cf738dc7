// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/gguf_model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "docs/examples/llm/model_file/gguf_config.h"
#include "docs/examples/llm/model_file/gguf_file.h"
#include "docs/examples/llm/model_file/gguf_metadata.h"
#include "docs/examples/llm/model_file/gguf_vocabulary.h"
#include "docs/examples/llm/model_file/weight_reader.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// Takes tensors by name and remembers which, so that what nobody took shows.
class TensorTaker {
 public:
  TensorTaker(std::shared_ptr<const ByteSource> source, const GgufFile* file,
              WeightType weight_type, bool on_demand)
      : source_(std::move(source)),
        file_(file),
        weight_type_(weight_type),
        on_demand_(on_demand) {}

  absl::Status Take(const std::string& name, uint32_t rows, uint32_t cols,
                    Matrix* matrix) {
    PAGED_KV_ASSIGN_OR_RETURN(const GgufTensor* tensor,
                              Find(name, {cols, rows}));
    PAGED_KV_ASSIGN_OR_RETURN(
        *matrix, TakeMatrix(source_, tensor->offset, tensor->type, rows, cols,
                            weight_type_, on_demand_));
    return absl::OkStatus();
  }

  absl::Status Take(const std::string& name, uint32_t size,
                    std::vector<float>* vector) {
    PAGED_KV_ASSIGN_OR_RETURN(const GgufTensor* tensor, Find(name, {size}));
    PAGED_KV_ASSIGN_OR_RETURN(
        *vector, ReadVector(*source_, tensor->offset, tensor->type, size));
    return absl::OkStatus();
  }

  // Unimplemented if a tensor was left: the model does something with it that
  // this engine does not.
  absl::Status CheckAllTaken() const {
    for (const auto& [name, tensor] : file_->tensors) {
      if (!taken_.contains(name)) {
        return absl::UnimplementedError(absl::StrCat(
            "the model has a tensor ", name, ", which this engine lacks"));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<const GgufTensor*> Find(const std::string& name,
                                         std::vector<uint64_t> shape) {
    const auto found = file_->tensors.find(name);
    if (found == file_->tensors.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("GGUF: there is no tensor ", name));
    }
    if (found->second.shape != shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "GGUF: ", name, " is ", absl::StrJoin(found->second.shape, " x "),
          ", not ", absl::StrJoin(shape, " x ")));
    }
    taken_.insert(name);
    return &found->second;
  }

  std::shared_ptr<const ByteSource> source_;
  const GgufFile* file_;
  WeightType weight_type_;
  bool on_demand_;
  absl::flat_hash_set<std::string> taken_;
};

absl::Status TakeLayer(const ModelConfig& config, uint32_t index,
                       TensorTaker* taker, LayerWeights* layer) {
  const std::string prefix = absl::StrCat("blk.", index, ".");
  const uint32_t q_rows = config.heads * config.head_dim;
  const uint32_t kv_rows = config.kv_heads * config.head_dim;
  const struct {
    const char* name;
    uint32_t rows;
    uint32_t cols;
    Matrix* matrix;
  } matrices[] = {
      {"attn_q", q_rows, config.hidden, &layer->wq},
      {"attn_k", kv_rows, config.hidden, &layer->wk},
      {"attn_v", kv_rows, config.hidden, &layer->wv},
      {"attn_output", config.hidden, q_rows, &layer->wo},
      {"ffn_gate", config.intermediate, config.hidden, &layer->w_gate},
      {"ffn_up", config.intermediate, config.hidden, &layer->w_up},
      {"ffn_down", config.hidden, config.intermediate, &layer->w_down}};
  for (const auto& [name, rows, cols, matrix] : matrices) {
    PAGED_KV_RETURN_IF_ERROR(
        taker->Take(absl::StrCat(prefix, name, ".weight"), rows, cols, matrix));
  }
  PAGED_KV_RETURN_IF_ERROR(taker->Take(prefix + "attn_norm.weight",
                                       config.hidden, &layer->attention_norm));
  PAGED_KV_RETURN_IF_ERROR(
      taker->Take(prefix + "ffn_norm.weight", config.hidden, &layer->ffn_norm));
  if (config.qkv_bias) {
    PAGED_KV_RETURN_IF_ERROR(
        taker->Take(prefix + "attn_q.bias", q_rows, &layer->bq));
    PAGED_KV_RETURN_IF_ERROR(
        taker->Take(prefix + "attn_k.bias", kv_rows, &layer->bk));
    PAGED_KV_RETURN_IF_ERROR(
        taker->Take(prefix + "attn_v.bias", kv_rows, &layer->bv));
  }
  return absl::OkStatus();
}

absl::Status TakeWeights(const GgufFile& file, TensorTaker* taker,
                         Model* model) {
  const ModelConfig& config = model->config;
  PAGED_KV_RETURN_IF_ERROR(taker->Take("token_embd.weight", config.vocab,
                                       config.hidden, &model->token_embedding));
  for (uint32_t i = 0; i < config.layers; ++i) {
    // Not all at once: a layer that the file lacks ends it.
    model->layers.emplace_back();
    PAGED_KV_RETURN_IF_ERROR(
        TakeLayer(config, i, taker, &model->layers.back()));
  }
  PAGED_KV_RETURN_IF_ERROR(
      taker->Take("output_norm.weight", config.hidden, &model->final_norm));
  if (config.tied_embeddings) {
    model->output = model->token_embedding;
  } else {
    PAGED_KV_RETURN_IF_ERROR(taker->Take("output.weight", config.vocab,
                                         config.hidden, &model->output));
  }
  if (file.tensors.count("rope_freqs.weight") != 0) {
    PAGED_KV_RETURN_IF_ERROR(taker->Take(
        "rope_freqs.weight", config.head_dim / 2, &model->rope_factors));
  }
  return taker->CheckAllTaken();
}

WeightType DefaultWeightType(const GgufFile& file) {
  const bool all_f32 = std::all_of(
      file.tensors.begin(), file.tensors.end(), [](const auto& entry) {
        return entry.second.shape.size() == 1 ||
               entry.second.type == TensorType::kF32;
      });
  return all_f32 ? WeightType::kF32 : WeightType::kBf16;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadGgufModel(
    std::shared_ptr<const ByteSource> source, const LoadOptions& options) {
  PAGED_KV_ASSIGN_OR_RETURN(GgufFile file, ReadGguf(*source));
  auto model = std::make_unique<Model>();
  PAGED_KV_ASSIGN_OR_RETURN(model->config, ReadGgufConfig(file));
  PAGED_KV_ASSIGN_OR_RETURN(model->vocabulary, TakeGgufVocabulary(&file));
  if (model->vocabulary.tokens.size() > model->config.vocab) {
    return absl::InvalidArgumentError(absl::StrCat(
        "GGUF: ", model->vocabulary.tokens.size(),
        " tokens, but the embedding has ", model->config.vocab, " rows"));
  }
  PAGED_KV_ASSIGN_OR_RETURN(const std::string* name,
                            FindValue<std::string>(file, "general.name"));
  if (name != nullptr) model->name = *name;
  TensorTaker taker(std::move(source), &file,
                    options.weight_type.value_or(DefaultWeightType(file)),
                    options.on_demand);
  PAGED_KV_RETURN_IF_ERROR(TakeWeights(file, &taker, model.get()));
  return model;
}

}  // namespace paged_kv::llm

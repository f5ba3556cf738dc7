// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/llama2c_model.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "docs/examples/llm/model_file/weight_reader.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

constexpr uint32_t kVersionedMagic = 0x616b3432;  // "ak42", versions 1 and 2
constexpr uint64_t kHeaderBytes = 7 * sizeof(int32_t);
// Of run.c: not in the file.
constexpr float kRopeTheta = 10000.0F;
constexpr float kRmsEpsilon = 1e-5F;

absl::Status NoModel(const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("neither GGUF nor a llama2.c checkpoint: ", why));
}

// dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len; a
// negative vocab_size says that the output is not the embedding.
absl::StatusOr<ModelConfig> ReadConfig(ByteCursor* cursor) {
  int32_t header[7];
  for (int32_t& value : header) {
    PAGED_KV_ASSIGN_OR_RETURN(value, cursor->Read<int32_t>());
  }
  if (static_cast<uint32_t>(header[0]) == kVersionedMagic) {
    return absl::UnimplementedError(
        absl::StrCat("version ", header[1], " of the llama2.c format, not 0"));
  }
  ModelConfig config;
  config.tied_embeddings = header[5] > 0;
  for (int i = 0; i < 7; ++i) {
    const int64_t value = i == 5 ? std::abs(int64_t{header[i]}) : header[i];
    if (value < 1 || value > std::numeric_limits<int32_t>::max()) {
      return NoModel(absl::StrCat("number ", i, " of the header is ", value));
    }
  }
  config.hidden = static_cast<uint32_t>(header[0]);
  config.intermediate = static_cast<uint32_t>(header[1]);
  config.layers = static_cast<uint32_t>(header[2]);
  config.heads = static_cast<uint32_t>(header[3]);
  config.kv_heads = static_cast<uint32_t>(header[4]);
  config.vocab = static_cast<uint32_t>(std::abs(int64_t{header[5]}));
  config.max_context = static_cast<uint32_t>(header[6]);
  if (config.hidden % config.heads != 0) {
    return NoModel(
        absl::StrCat(config.heads, " heads do not divide ", config.hidden));
  }
  config.head_dim = config.hidden / config.heads;
  config.rope_theta = kRopeTheta;
  config.rms_epsilon = kRmsEpsilon;
  PAGED_KV_RETURN_IF_ERROR(ValidateConfig(config));
  return config;
}

// f32 values in the file. Long double holds every product of four 31-bit
// factors in range, so a lying header cannot wrap the sum around.
long double ExpectedFloats(const ModelConfig& config) {
  const long double hidden = config.hidden;
  const long double kv_rows =
      static_cast<long double>(config.kv_heads) * config.head_dim;
  const long double per_layer = 2 * hidden + 2 * hidden * hidden +
                                2 * hidden * kv_rows +
                                3 * hidden * config.intermediate;
  const long double vocabulary = hidden * config.vocab;
  // Tables of cosines and sines of RoPE, unused since it is computed.
  const long double tables =
      static_cast<long double>(config.max_context) * config.head_dim;
  return vocabulary * (config.tied_embeddings ? 1 : 2) +
         per_layer * config.layers + hidden + tables;
}

// Reads the arrays one after the other.
class ArrayReader {
 public:
  ArrayReader(std::shared_ptr<const ByteSource> source, WeightType weight_type,
              bool on_demand)
      : source_(std::move(source)),
        weight_type_(weight_type),
        on_demand_(on_demand) {}

  absl::Status Read(uint32_t rows, uint32_t cols, Matrix* matrix) {
    PAGED_KV_ASSIGN_OR_RETURN(
        *matrix, TakeMatrix(source_, offset_, TensorType::kF32, rows, cols,
                            weight_type_, on_demand_));
    Skip(matrix->size());
    return absl::OkStatus();
  }
  absl::Status Read(uint32_t size, std::vector<float>* vector) {
    PAGED_KV_ASSIGN_OR_RETURN(
        *vector, ReadVector(*source_, offset_, TensorType::kF32, size));
    Skip(size);
    return absl::OkStatus();
  }
  void Skip(uint64_t floats) { offset_ += floats * sizeof(float); }

 private:
  std::shared_ptr<const ByteSource> source_;
  WeightType weight_type_;
  bool on_demand_;
  uint64_t offset_ = kHeaderBytes;
};

// The file holds each role for all layers, then the next role.
absl::Status ReadLayers(const ModelConfig& config, ArrayReader* reader,
                        std::vector<LayerWeights>* layers) {
  const uint32_t kv_rows = config.kv_heads * config.head_dim;
  const auto norms = [&](std::vector<float> LayerWeights::*norm) {
    for (LayerWeights& layer : *layers) {
      PAGED_KV_RETURN_IF_ERROR(reader->Read(config.hidden, &(layer.*norm)));
    }
    return absl::OkStatus();
  };
  const auto matrices = [&](Matrix LayerWeights::*matrix, uint32_t rows,
                            uint32_t cols) {
    for (LayerWeights& layer : *layers) {
      PAGED_KV_RETURN_IF_ERROR(reader->Read(rows, cols, &(layer.*matrix)));
    }
    return absl::OkStatus();
  };
  using L = LayerWeights;
  const uint32_t hidden = config.hidden;
  PAGED_KV_RETURN_IF_ERROR(norms(&L::attention_norm));
  PAGED_KV_RETURN_IF_ERROR(matrices(&L::wq, hidden, hidden));
  PAGED_KV_RETURN_IF_ERROR(matrices(&L::wk, kv_rows, hidden));
  PAGED_KV_RETURN_IF_ERROR(matrices(&L::wv, kv_rows, hidden));
  PAGED_KV_RETURN_IF_ERROR(matrices(&L::wo, hidden, hidden));
  PAGED_KV_RETURN_IF_ERROR(norms(&L::ffn_norm));
  PAGED_KV_RETURN_IF_ERROR(matrices(&L::w_gate, config.intermediate, hidden));
  PAGED_KV_RETURN_IF_ERROR(matrices(&L::w_down, hidden, config.intermediate));
  return matrices(&L::w_up, config.intermediate, hidden);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadLlama2cModel(
    std::shared_ptr<const ByteSource> source, const LoadOptions& options) {
  const uint64_t size = source->size();
  if (size < kHeaderBytes) {
    return NoModel(absl::StrCat("the file has ", size, " bytes"));
  }
  ByteCursor cursor(source.get());
  auto model = std::make_unique<Model>();
  PAGED_KV_ASSIGN_OR_RETURN(model->config, ReadConfig(&cursor));
  const ModelConfig& config = model->config;
  const long double expected =
      ExpectedFloats(config) * sizeof(float) + kHeaderBytes;
  if (expected != static_cast<long double>(size)) {
    return NoModel(
        absl::StrFormat("its header asks for %.0f bytes, the file "
                        "has %d",
                        expected, size));
  }
  ArrayReader reader(std::move(source),
                     options.weight_type.value_or(WeightType::kF32),
                     options.on_demand);
  PAGED_KV_RETURN_IF_ERROR(
      reader.Read(config.vocab, config.hidden, &model->token_embedding));
  model->layers.resize(config.layers);
  PAGED_KV_RETURN_IF_ERROR(ReadLayers(config, &reader, &model->layers));
  PAGED_KV_RETURN_IF_ERROR(reader.Read(config.hidden, &model->final_norm));
  reader.Skip(uint64_t{config.max_context} * config.head_dim);
  model->output = model->token_embedding;
  if (!config.tied_embeddings) {
    PAGED_KV_RETURN_IF_ERROR(
        reader.Read(config.vocab, config.hidden, &model->output));
  }
  return model;
}

}  // namespace paged_kv::llm

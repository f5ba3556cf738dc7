// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/transformer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "docs/examples/llm/engine/vector_ops.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

absl::Status CheckModel(const Model& model) {
  const ModelConfig& config = model.config;
  if (config.head_dim % attention::kHeadDimMultiple != 0 ||
      config.head_dim > attention::kMaxHeadDim) {
    return absl::InvalidArgumentError(absl::StrCat(
        "heads of ", config.head_dim, " values; attention takes multiples of ",
        attention::kHeadDimMultiple, " up to ", attention::kMaxHeadDim));
  }
  if (model.layers.size() != config.layers ||
      model.final_norm.size() != config.hidden ||
      model.token_embedding.rows != config.vocab ||
      model.token_embedding.cols != config.hidden) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model's parts do not fit together: ", model.layers.size(), " of ",
        config.layers, " layers, an embedding of ", model.token_embedding.rows,
        " x ", model.token_embedding.cols, " for a vocabulary of ",
        config.vocab, " and a width of ", config.hidden));
  }
  return absl::OkStatus();
}

absl::Status CheckLayer(const TransformerLayer& layer,
                        const ModelConfig& config) {
  const uint32_t q = config.heads * config.head_dim;
  const uint32_t kv = config.kv_heads * config.head_dim;
  const auto fits = [](const Linear& linear, uint32_t inputs,
                       uint32_t outputs) {
    return linear.inputs() == inputs && linear.outputs() == outputs;
  };
  if (layer.attention_norm.size() == config.hidden &&
      layer.ffn_norm.size() == config.hidden &&
      fits(layer.qkv, config.hidden, q + 2 * kv) &&
      fits(layer.attention_output, q, config.hidden) &&
      fits(layer.gate_up, config.hidden, 2 * config.intermediate) &&
      fits(layer.down, config.intermediate, config.hidden)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a layer's weights do not have the model's sizes");
}

// The packed matrices, read from their file where they still are in it.
absl::StatusOr<Linear> Pack(std::vector<Matrix> matrices,
                            std::vector<float> bias,
                            const LinearOptions& options) {
  for (Matrix& matrix : matrices) {
    PAGED_KV_ASSIGN_OR_RETURN(matrix, matrix.Loaded());
  }
  return Linear::Create(matrices, std::move(bias), options);
}

// The biases of queries, keys and values, one after the other; empty if none.
std::vector<float> JoinBiases(const LayerWeights& layer) {
  std::vector<float> joined = layer.bq;
  joined.insert(joined.end(), layer.bk.begin(), layer.bk.end());
  joined.insert(joined.end(), layer.bv.begin(), layer.bv.end());
  return joined;
}

}  // namespace

Transformer::Transformer(const Model& model, attention::ParallelFor* parallel)
    : config_(model.config),
      parallel_(parallel),
      final_norm_(model.final_norm),
      rope_(model.config, model.rope_factors) {}

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::Create(
    std::unique_ptr<Model> model, const LinearOptions& options,
    attention::ParallelFor* parallel) {
  PAGED_KV_RETURN_IF_ERROR(CheckModel(*model));
  std::unique_ptr<Transformer> result(new Transformer(*model, parallel));
  // The largest matrix first: it is held twice for a while, and nothing else is
  // there yet.
  PAGED_KV_RETURN_IF_ERROR(
      result->PackOutput(std::exchange(model->output, Matrix{}),
                         std::exchange(model->token_embedding, {}), options));
  for (LayerWeights& layer : model->layers) {
    PAGED_KV_RETURN_IF_ERROR(
        result->PackLayer(std::exchange(layer, LayerWeights{}), options));
  }
  result->step_weight_bytes_ += result->final_norm_.size() * sizeof(float);
  result->weight_bytes_ =
      result->step_weight_bytes_ + result->token_embedding_.bytes();
  return result;
}

absl::Status Transformer::PackOutput(const Matrix& output,
                                     const Matrix& embedding,
                                     const LinearOptions& options) {
  PAGED_KV_ASSIGN_OR_RETURN(Linear packed, Pack({output}, {}, options));
  if (packed.inputs() != config_.hidden || packed.outputs() != config_.vocab) {
    return absl::InvalidArgumentError(
        "the output layer does not have the model's sizes");
  }
  output_ = std::make_unique<Linear>(std::move(packed));
  step_weight_bytes_ += output_->bytes();
  if (embedding.SameAs(output)) return absl::OkStatus();
  PAGED_KV_ASSIGN_OR_RETURN(token_embedding_, embedding.Loaded());
  return absl::OkStatus();
}

absl::Status Transformer::PackLayer(LayerWeights layer,
                                    const LinearOptions& options) {
  PAGED_KV_ASSIGN_OR_RETURN(Linear qkv, Pack({layer.wq, layer.wk, layer.wv},
                                             JoinBiases(layer), options));
  PAGED_KV_ASSIGN_OR_RETURN(Linear attention_output,
                            Pack({layer.wo}, {}, options));
  PAGED_KV_ASSIGN_OR_RETURN(Linear gate_up,
                            Pack({layer.w_gate, layer.w_up}, {}, options));
  PAGED_KV_ASSIGN_OR_RETURN(Linear down, Pack({layer.w_down}, {}, options));
  TransformerLayer packed = {std::move(layer.attention_norm),
                             std::move(qkv),
                             std::move(attention_output),
                             std::move(layer.ffn_norm),
                             std::move(gate_up),
                             std::move(down)};
  PAGED_KV_RETURN_IF_ERROR(CheckLayer(packed, config_));
  step_weight_bytes_ +=
      packed.qkv.bytes() + packed.attention_output.bytes() +
      packed.gate_up.bytes() + packed.down.bytes() +
      (packed.attention_norm.size() + packed.ffn_norm.size()) * sizeof(float);
  layers_.push_back(std::move(packed));
  return absl::OkStatus();
}

absl::Status Transformer::CheckStep(const StepBatch& step,
                                    absl::Span<const float> logits) const {
  for (const TokenId token : step.tokens) {
    if (token < 0 || static_cast<uint32_t>(token) >= config_.vocab) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", token, " is not one of ", config_.vocab));
    }
  }
  const size_t wanted = step.logit_rows.size() * config_.vocab;
  if (logits.size() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "room for ", logits.size(), " logits, but there are ", wanted));
}

void Transformer::Embed(absl::Span<const TokenId> tokens) {
  const size_t n = config_.hidden;
  x_.resize(tokens.size() * n);
  for (size_t row = 0; row < tokens.size(); ++row) {
    const size_t first = static_cast<size_t>(tokens[row]) * n;
    float* target = x_.data() + row * n;
    if (token_embedding_.empty()) {
      output_->Row(static_cast<uint32_t>(tokens[row]), {target, n});
    } else if (token_embedding_.type == WeightType::kF32) {
      std::copy_n(token_embedding_.f32() + first, n, target);
    } else {
      std::transform(token_embedding_.bf16() + first,
                     token_embedding_.bf16() + first + n, target,
                     attention::Bf16ToF32);
    }
  }
}

size_t Transformer::activation_bytes() const {
  size_t floats = 0;
  for (const AlignedFloats* values : {&x_, &normed_, &qkv_, &q_, &attended_,
                                      &delta_, &gate_up_, &activated_}) {
    floats += values->capacity();
  }
  return floats * sizeof(float) + scratch_.bytes();
}

absl::Status Transformer::Forward(const StepBatch& step,
                                  AttentionBackend& attention,
                                  absl::Span<float> logits) {
  PAGED_KV_RETURN_IF_ERROR(CheckStep(step, logits));
  StageClock clock(&times_);
  Embed(step.tokens);
  clock.Charge(&StageTimes::embedding_s);
  rope_.SetPositions(step.positions);
  clock.Charge(&StageTimes::other_s);
  PAGED_KV_RETURN_IF_ERROR(attention.BeginStep(step));
  clock.Charge(&StageTimes::attention_s);
  for (uint32_t layer = 0; layer < config_.layers; ++layer) {
    PAGED_KV_RETURN_IF_ERROR(AttentionPart(layer, attention, clock));
    FeedForward(layers_[layer], clock);
  }
  Logits(step.logit_rows, logits);
  clock.Charge(&StageTimes::output_s);
  return absl::OkStatus();
}

absl::Status Transformer::AttentionPart(uint32_t layer,
                                        AttentionBackend& attention,
                                        StageClock& clock) {
  const TransformerLayer& weights = layers_[layer];
  const size_t rows = x_.size() / config_.hidden;
  const size_t q_width = size_t{config_.heads} * config_.head_dim;
  const size_t kv_width = size_t{config_.kv_heads} * config_.head_dim;
  const size_t width = q_width + 2 * kv_width;
  normed_.resize(x_.size());
  qkv_.resize(rows * width);
  q_.resize(rows * q_width);
  attended_.resize(rows * q_width);
  delta_.resize(x_.size());

  RmsNorm(x_, weights.attention_norm, config_.rms_epsilon,
          absl::MakeSpan(normed_), *parallel_);
  clock.Charge(&StageTimes::other_s);
  weights.qkv.Run(normed_, absl::MakeSpan(qkv_), scratch_, *parallel_);
  clock.Charge(&StageTimes::linear_s);
  for (size_t row = 0; row < rows; ++row) {
    float* source = qkv_.data() + row * width;
    rope_.Rotate(row, config_.heads, source, q_.data() + row * q_width);
    rope_.Rotate(row, config_.kv_heads, source + q_width, source + q_width);
  }
  clock.Charge(&StageTimes::other_s);
  attention::KvRows k, v;
  k.data = qkv_.data() + q_width;
  v.data = qkv_.data() + q_width + kv_width;
  k.token_stride = v.token_stride = static_cast<int64_t>(width * sizeof(float));
  PAGED_KV_RETURN_IF_ERROR(
      attention.Attend(layer, q_, k, v, absl::MakeSpan(attended_)));
  clock.Charge(&StageTimes::attention_s);
  weights.attention_output.Run(attended_, absl::MakeSpan(delta_), scratch_,
                               *parallel_);
  clock.Charge(&StageTimes::linear_s);
  AddTo(absl::MakeSpan(x_), delta_, *parallel_);
  clock.Charge(&StageTimes::other_s);
  return absl::OkStatus();
}

void Transformer::FeedForward(const TransformerLayer& layer,
                              StageClock& clock) {
  const size_t rows = x_.size() / config_.hidden;
  gate_up_.resize(rows * 2 * config_.intermediate);
  activated_.resize(rows * config_.intermediate);
  RmsNorm(x_, layer.ffn_norm, config_.rms_epsilon, absl::MakeSpan(normed_),
          *parallel_);
  clock.Charge(&StageTimes::other_s);
  layer.gate_up.Run(normed_, absl::MakeSpan(gate_up_), scratch_, *parallel_);
  clock.Charge(&StageTimes::linear_s);
  SwiGlu(gate_up_, config_.intermediate, absl::MakeSpan(activated_),
         *parallel_);
  clock.Charge(&StageTimes::other_s);
  layer.down.Run(activated_, absl::MakeSpan(delta_), scratch_, *parallel_);
  clock.Charge(&StageTimes::linear_s);
  AddTo(absl::MakeSpan(x_), delta_, *parallel_);
  clock.Charge(&StageTimes::other_s);
}

void Transformer::Logits(absl::Span<const uint32_t> rows,
                         absl::Span<float> logits) {
  const size_t n = config_.hidden;
  delta_.resize(rows.size() * n);
  normed_.resize(rows.size() * n);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(x_.data() + rows[i] * n, n, delta_.data() + i * n);
  }
  RmsNorm(delta_, final_norm_, config_.rms_epsilon, absl::MakeSpan(normed_),
          *parallel_);
  output_->Run(normed_, logits, scratch_, *parallel_);
}

}  // namespace paged_kv::llm

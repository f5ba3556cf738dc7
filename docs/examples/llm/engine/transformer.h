// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TRANSFORMER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TRANSFORMER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/engine/aligned_floats.h"
#include "docs/examples/llm/engine/attention_backend.h"
#include "docs/examples/llm/engine/linear.h"
#include "docs/examples/llm/engine/rope.h"
#include "docs/examples/llm/engine/stage_times.h"
#include "docs/examples/llm/engine/step_batch.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// The weights of one layer, as the forward pass takes them.
struct TransformerLayer {
  std::vector<float> attention_norm;
  Linear qkv;  // queries, keys and values in one product
  Linear attention_output;
  std::vector<float> ffn_norm;
  Linear gate_up;
  Linear down;
};

// The forward pass of Llama and Qwen2: tokens of a step to logits. What it
// keeps of the past lies in the attention backend.
//
// Thread safety: thread-compatible; one Forward() at a time.
class Transformer {
 public:
  // Packs the weights, layer by layer, and lets the loaded ones go: of a model
  // loaded on demand, no more than one layer is held twice. `parallel` is
  // borrowed. InvalidArgument for a model whose parts do not fit together or
  // whose head_dim the attention kernels do not take; else the file's errors.
  static absl::StatusOr<std::unique_ptr<Transformer>> Create(
      std::unique_ptr<Model> model, const LinearOptions& options,
      attention::ParallelFor* parallel);

  // logits [step.logit_rows.size(), vocab]. InvalidArgument for a token outside
  // the vocabulary or logits of another size; nothing was stored then.
  absl::Status Forward(const StepBatch& step, AttentionBackend& attention,
                       absl::Span<float> logits);

  const ModelConfig& config() const { return config_; }
  // Packed weights, norms, biases and the embedding, where it has memory of its
  // own.
  size_t weight_bytes() const { return weight_bytes_; }
  // Of these, what a step reads whatever it computes.
  size_t step_weight_bytes() const { return step_weight_bytes_; }
  // What the largest step so far needed besides: activations.
  size_t activation_bytes() const;
  // Summed over all calls.
  const StageTimes& times() const { return times_; }

 private:
  Transformer(const Model& model, attention::ParallelFor* parallel);

  absl::Status PackOutput(const Matrix& output, const Matrix& embedding,
                          const LinearOptions& options);
  absl::Status PackLayer(LayerWeights layer, const LinearOptions& options);
  absl::Status CheckStep(const StepBatch& step,
                         absl::Span<const float> logits) const;
  void Embed(absl::Span<const TokenId> tokens);
  absl::Status AttentionPart(uint32_t layer, AttentionBackend& attention,
                             StageClock& clock);
  void FeedForward(const TransformerLayer& layer, StageClock& clock);
  void Logits(absl::Span<const uint32_t> rows, absl::Span<float> logits);

  ModelConfig config_;
  attention::ParallelFor* const parallel_;
  Matrix token_embedding_;  // empty: it is output_
  std::vector<TransformerLayer> layers_;
  std::vector<float> final_norm_;
  std::unique_ptr<Linear> output_;
  Rope rope_;
  size_t weight_bytes_ = 0;
  size_t step_weight_bytes_ = 0;
  StageTimes times_;

  // Of the current step; rows first.
  LinearScratch scratch_;
  AlignedFloats x_;          // the residual stream
  AlignedFloats normed_;     // [hidden]
  AlignedFloats qkv_;        // [(heads + 2 kv_heads) * head_dim]
  AlignedFloats q_;          // [heads, head_dim]
  AlignedFloats attended_;   // [heads, head_dim]
  AlignedFloats delta_;      // [hidden]
  AlignedFloats gate_up_;    // [2, intermediate]
  AlignedFloats activated_;  // [intermediate]
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TRANSFORMER_H_

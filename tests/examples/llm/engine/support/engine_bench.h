// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the engine's tests share: a model with its cache, run step by step
// without a scheduler, so that a test decides what is computed when.

#ifndef PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_ENGINE_BENCH_H_
#define PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_ENGINE_BENCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/engine/attention_backend.h"
#include "docs/examples/llm/engine/model_cache.h"
#include "docs/examples/llm/engine/step_runner.h"
#include "docs/examples/llm/engine/transformer.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv::llm {

// What one layer of one step gave to attention and got back, dense rows.
struct RecordedLayer {
  std::vector<float> q, k, v, out;
};

// Passes everything on and keeps a copy.
class RecordingAttention final : public AttentionBackend {
 public:
  RecordingAttention(std::unique_ptr<AttentionBackend> inner, size_t kv_width)
      : inner_(std::move(inner)), kv_width_(kv_width) {}

  absl::Status BeginStep(const StepBatch& step) override;
  absl::Status Attend(uint32_t layer, absl::Span<const float> q,
                      const attention::KvRows& k, const attention::KvRows& v,
                      absl::Span<float> out) override;

  // Of the last step, by layer.
  const std::vector<RecordedLayer>& layers() const { return layers_; }

 private:
  const std::unique_ptr<AttentionBackend> inner_;
  const size_t kv_width_;
  size_t rows_ = 0;
  std::vector<RecordedLayer> layers_;
};

// Errors end the process: in a test they are failures anyway.
class EngineBench {
 public:
  EngineBench(std::unique_ptr<Model> model, const ModelCacheOptions& options,
              size_t threads = 2, const LinearOptions& linear = {});

  // Computes the tokens behind those of `id` (which it then is) and returns the
  // logits of all of them, [tokens, vocab]. No id: a new sequence.
  std::vector<float> Extend(SequenceId* id, absl::Span<const TokenId> tokens);

  Transformer& model() { return *model_; }
  KvCacheManager& cache() { return *cache_; }
  const RecordingAttention& recorded() const { return *recording_; }

 private:
  attention::ThreadPool threads_;
  std::unique_ptr<Transformer> model_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<RecordingAttention> recording_;
  std::unique_ptr<StepRunner> runner_;
};

// A file of the shared folder, or "" if it is not there.
std::string SharedFile(const std::string& name);

// A small model whose shape is like Qwen2's: biases, tied embeddings, halves
// rotated, more query heads than KV heads.
ModelConfig SmallQwen2();
// The same like Llama's, with an output layer of its own.
ModelConfig SmallLlama();

}  // namespace paged_kv::llm

#endif  // PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_ENGINE_BENCH_H_

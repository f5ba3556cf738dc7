// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Continuous batching of a real model:
//
//   engine->Submit({.id = RequestId(1), .prompt = tokens, ...});
//   while (!engine->Idle()) {
//     for (const EmittedToken& token : *engine->Step()) ...   // as they come
//     while (auto done = engine->TakeFinished()) ...
//   }

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SERVING_ENGINE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SERVING_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/engine/attention_backend.h"
#include "docs/examples/llm/engine/beam_search.h"
#include "docs/examples/llm/engine/engine_times.h"
#include "docs/examples/llm/engine/model_cache.h"
#include "docs/examples/llm/engine/sampling.h"
#include "docs/examples/llm/engine/step_runner.h"
#include "docs/examples/llm/engine/tiered_pages.h"
#include "docs/examples/llm/engine/transformer.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv::llm {

// Makes what attends to `pages`, those of a cache; of one with a device tier,
// the pages of both. Default: the CPU kernels.
using AttentionFactory =
    std::function<absl::StatusOr<std::unique_ptr<AttentionBackend>>(
        const attention::KvPages& pages, uint32_t query_heads)>;

struct EngineOptions {
  // blocks 0: so many that max_batch_sequences sequences of the greatest
  // length fit. With scheduler.decode_tier on the device, device_pages of the
  // host's memory are a device that decodes run in, whose sequences are swapped
  // out to the blocks; device_pages 0: as many as blocks.
  ModelCacheOptions cache;
  // max_draft_tokens above 0: decodes check so many tokens looked up in what
  // their sequence has said before (prompt_lookup.h). Answers stay the same.
  BatchSchedulerOptions scheduler;
  AttentionFactory attention;
};

// Spans are borrowed until Submit() returns.
struct EngineRequest {
  RequestId id;
  absl::Span<const TokenId> prompt;
  uint32_t max_output_tokens = 0;
  uint32_t samples = 1;
  SamplingOptions sampling;
  absl::Span<const TokenId> stop_tokens;
  int32_t priority = 0;
};

struct EmittedToken {
  RequestId request;
  uint32_t sample = 0;
  TokenId token = 0;
};

// Serves many requests with one model: a KvCacheManager, a BatchScheduler, the
// forward pass and a sampler. What a request is answered does not depend on
// what is served beside it, but for the last bits of attention over long or
// shared prompts (docs/serving.md).
//
// Thread safety: thread-compatible.
class ServingEngine {
 public:
  // `model` and `parallel` are borrowed. Errors: those of the manager's, the
  // scheduler's and the attention's Create().
  static absl::StatusOr<std::unique_ptr<ServingEngine>> Create(
      Transformer* model, const EngineOptions& options,
      attention::ParallelFor* parallel);

  // InvalidArgument for sampling options out of range or a token outside the
  // vocabulary; else as BatchScheduler::Submit().
  absl::Status Submit(const EngineRequest& request);
  absl::Status Cancel(RequestId id) { return scheduler_->Cancel(id); }

  // Nothing waits or runs.
  bool Idle() const;

  // Searches for the most likely continuations of one prompt, beside what is
  // served: to its end, with steps of its own, and with what the pool has left.
  // Errors: BeamSearch::Run(); InvalidArgument for a token outside the
  // vocabulary; OutOfRange if the beams would not fit.
  absl::StatusOr<BeamResult> SearchBeams(const BeamRequest& request);

  // One step of whatever can run. The tokens that it sampled are valid until
  // the next call; none if prompts were not done or nothing is there to do. On
  // error the sequences of the step have given up their blocks and wait.
  absl::StatusOr<absl::Span<const EmittedToken>> Step();

  std::optional<FinishedRequest> TakeFinished();

  const KvCacheManager& cache() const { return *cache_; }
  const BatchScheduler& scheduler() const { return *scheduler_; }
  const Transformer& model() const { return *model_; }
  const EngineTimes& times() const { return times_; }
  // Memory of activations and logits, of the largest step so far.
  size_t step_bytes() const { return runner_.step_bytes(); }
  // Items of the last step, in its order, without what their token and draft
  // spans showed, which ended with it; valid until the next one.
  absl::Span<const WorkItem> last_items() const { return last_items_; }
  // Bytes of the cache's pages.
  uint64_t cache_bytes() const;

 private:
  struct RequestState {
    SamplingOptions sampling;
    uint32_t prompt_tokens = 0;
  };

  ServingEngine(Transformer* model, std::unique_ptr<TieredPages> tiers,
                std::unique_ptr<KvCacheManager> cache,
                std::unique_ptr<AttentionBackend> attention);

  // The next step, with what has to be moved before it moved.
  absl::StatusOr<ScheduledStep> NextStep();
  // Carries out what the scheduler wants moved; whether that was anything.
  absl::StatusOr<bool> MovePages();

  absl::Status CheckTokens(absl::Span<const TokenId> tokens) const;
  absl::StatusOr<absl::Span<const float>> RunItems(const ScheduledStep& step);
  void Sample(const ScheduledStep& step, absl::Span<const float> logits);
  absl::Span<const float> SampleItem(const WorkItem& item,
                                     absl::Span<const float> logits);
  void Emit();
  void EmitSample(const WorkItem& item, uint32_t sample);
  void Propose();

  Transformer* const model_;
  const std::unique_ptr<TieredPages> tiers_;  // null without a device
  const std::unique_ptr<KvCacheManager> cache_;
  const std::unique_ptr<AttentionBackend> attention_;
  const SteadyClock clock_;
  std::unique_ptr<BatchScheduler> scheduler_;
  StepRunner runner_;
  Sampler sampler_;
  absl::flat_hash_map<RequestId, RequestState> requests_;
  EngineTimes times_;

  // Of the last step.
  std::vector<SequenceRows> rows_;
  std::vector<TokenId> drafted_rows_;  // of items with drafts
  std::vector<TokenId> tokens_;
  std::vector<EmittedToken> emitted_;
  std::vector<WorkItem> last_items_;
  std::vector<TokenId> draft_;
  std::vector<TierTransfer> transfers_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SERVING_ENGINE_H_

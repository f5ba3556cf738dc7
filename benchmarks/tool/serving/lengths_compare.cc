// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/lengths_compare.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "absl/types/span.h"
#include "attention/append_kv.h"
#include "attention/attention_plan.h"
#include "benchmarks/tool/kernels/timing.h"
#include "benchmarks/tool/serving/process_memory.h"
#include "docs/examples/llm/engine/model_cache.h"
#include "docs/examples/llm/engine/naive_attention.h"
#include "docs/examples/llm/engine/step_batch.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr int kRepeats = 3;

// A prompt's rows in one layer, and pages that hold its K and V.
struct PrefillProblem {
  std::vector<float> q, k, v;
  std::unique_ptr<KvCacheManager> cache;
  StepId step;
  attention::KvPages pages;
  llm::StepBatch batch;
};

std::vector<float> Normal(size_t n, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

absl::StatusOr<std::unique_ptr<PrefillProblem>> MakeProblem(
    llm::ModelConfig config, uint32_t tokens, uint32_t block_tokens,
    uint64_t seed, attention::ParallelFor& parallel) {
  auto problem = std::make_unique<PrefillProblem>();
  std::mt19937_64 random(seed);
  const size_t head = size_t{tokens} * config.head_dim;
  problem->q = Normal(config.heads * head, random);
  problem->k = Normal(config.kv_heads * head, random);
  problem->v = Normal(config.kv_heads * head, random);

  config.layers = 1;
  llm::ModelCacheOptions options;
  options.dtype = DType::kF32;
  options.block_tokens = block_tokens;
  options.blocks = tokens / block_tokens + 1;
  options.max_sequences = 1;
  options.max_tokens = tokens;
  options.prefix_caching = false;
  PAGED_KV_ASSIGN_OR_RETURN(problem->cache,
                            llm::MakeModelCache(config, options));
  const std::vector<TokenId> prompt(tokens, 0);
  PAGED_KV_ASSIGN_OR_RETURN(const auto admission,
                            problem->cache->Allocate(prompt));
  problem->step = admission.step;
  PAGED_KV_RETURN_IF_ERROR(llm::FillStepBatch(
      *problem->cache, problem->step, {{prompt, 0, 0}}, &problem->batch));
  PAGED_KV_ASSIGN_OR_RETURN(problem->pages, llm::PagesOf(*problem->cache));
  attention::KvRows k, v;
  k.data = problem->k.data();
  v.data = problem->v.data();
  PAGED_KV_RETURN_IF_ERROR(attention::AppendKv(problem->pages, 0, k, v,
                                               problem->batch.slots, parallel));
  return problem;
}

// The best time of `run`, which says whether it went well.
absl::Status BestOf(const std::function<absl::Status()>& run, double* seconds) {
  for (int i = 0; i < kRepeats; ++i) {
    absl::Status status;
    const Timing timing = TimeOf([&] { status = run(); });
    PAGED_KV_RETURN_IF_ERROR(status);
    *seconds =
        i == 0 ? timing.wall_seconds : std::min(*seconds, timing.wall_seconds);
  }
  return absl::OkStatus();
}

uint64_t Growth(uint64_t before) {
  const uint64_t now = HeapBytes();
  return now > before ? now - before : 0;
}

// The attention of both ways belongs to the rows alone, so each is made anew:
// what it takes is what it needs.
absl::Status RunNaive(const llm::ModelConfig& config, uint32_t tokens,
                      const PrefillProblem& problem, absl::Span<float> out,
                      attention::ParallelFor& parallel, PrefillRow* row) {
  const uint64_t before = HeapBytes();
  PAGED_KV_ASSIGN_OR_RETURN(const auto naive,
                            llm::NaiveAttention::Create(config, tokens));
  PAGED_KV_RETURN_IF_ERROR(BestOf(
      [&] {
        return naive->Run(problem.q, problem.k, problem.v, out, parallel);
      },
      &row->naive_s));
  row->naive_bytes = Growth(before);
  return absl::OkStatus();
}

absl::Status RunFlash(const llm::ModelConfig& config,
                      const PrefillProblem& problem, absl::Span<float> out,
                      attention::ParallelFor& parallel, PrefillRow* row) {
  const uint64_t before = HeapBytes();
  PAGED_KV_ASSIGN_OR_RETURN(
      attention::AttentionPlan plan,
      attention::AttentionPlan::ForPrefill(problem.pages, config.heads,
                                           problem.batch.table,
                                           problem.batch.qo_indptr, {}));
  PAGED_KV_RETURN_IF_ERROR(BestOf(
      [&] {
        return plan.Run(problem.pages, 0, problem.q, {out, {}}, parallel);
      },
      &row->flash_s));
  row->flash_bytes = Growth(before);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecomputeRow> CompareRecompute(
    LoadedModel& model, const LengthsCase& length, uint32_t generated,
    const LengthsOptions& options, const std::function<bool()>& interrupted) {
  RecomputeRow row;
  row.context = length.tokens.size();
  row.generated = generated;
  LengthsOptions cached_options = options;
  // Its first token comes with the prompt: a step each for the others.
  cached_options.output_tokens = generated + 1;
  PAGED_KV_ASSIGN_OR_RETURN(
      const LengthsRow cached,
      MeasureLength(model, length, cached_options, interrupted));
  row.cached_s = cached.DecodeStepSeconds();

  LengthsOptions recompute_options = options;
  recompute_options.output_tokens = 1;
  LengthsCase growing = length;
  growing.tokens.push_back(cached.outputs[0]);
  for (uint32_t i = 1; i <= generated; ++i) {
    PAGED_KV_ASSIGN_OR_RETURN(
        const LengthsRow again,
        MeasureLength(model, growing, recompute_options, interrupted));
    row.recomputed_s += again.prefill.wall_s / generated;
    if (again.outputs[0] == cached.outputs[i]) ++row.equal_tokens;
    growing.tokens.push_back(cached.outputs[i]);
  }
  return row;
}

absl::StatusOr<PrefillRow> ComparePrefill(const llm::ModelConfig& config,
                                          uint32_t tokens,
                                          uint32_t block_tokens, uint64_t seed,
                                          attention::ParallelFor& parallel) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const auto problem,
      MakeProblem(config, tokens, block_tokens, seed, parallel));
  PrefillRow row;
  row.tokens = tokens;
  std::vector<float> naive(problem->q.size()), flash(problem->q.size());
  PAGED_KV_RETURN_IF_ERROR(
      RunFlash(config, *problem, absl::MakeSpan(flash), parallel, &row));
  PAGED_KV_RETURN_IF_ERROR(RunNaive(config, tokens, *problem,
                                    absl::MakeSpan(naive), parallel, &row));
  for (size_t i = 0; i < naive.size(); ++i) {
    const double difference = std::abs(double{naive[i]} - double{flash[i]});
    // Not std::max, which would lose a NaN.
    if (!(difference <= row.largest_difference)) {
      row.largest_difference = difference;
    }
  }
  PAGED_KV_RETURN_IF_ERROR(problem->cache->Retire(problem->step));
  return row;
}

}  // namespace paged_kv::tool

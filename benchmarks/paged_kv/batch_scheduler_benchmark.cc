// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What scheduling costs beside the model: Schedule() and Complete() of one
// step, the manager's share included. No K/V is touched.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv {
namespace {

constexpr uint32_t kBlockTokens = 16;

class Serving {
 public:
  Serving(uint32_t blocks, const BatchSchedulerOptions& options) {
    KvCacheOptions cache_options;
    LayerGroup group;
    group.shape.block_tokens = kBlockTokens;
    cache_options.groups = {group};
    cache_options.host_blocks = BlockCount(blocks);
    cache_options.max_sequences = options.max_batch_sequences;
    cache_options.max_tokens_per_sequence = 1u << 17;
    cache_ = Must(KvCacheManager::Create(cache_options));
    scheduler_ = Must(BatchScheduler::Create(cache_.get(), &clock_, options));
  }

  // `tokens` of text number `text`, then one for each request.
  void Submit(uint32_t text, uint32_t tokens, uint32_t output) {
    prompt_.assign(tokens, static_cast<TokenId>(text));
    prompt_.back() = static_cast<TokenId>(++last_id_);
    GenerationRequest request;
    request.id = RequestId(last_id_);
    request.prompt = prompt_;
    request.max_output_tokens = output;
    if (!scheduler_->Submit(request).ok()) std::abort();
  }

  // Schedules and completes one step; its sequences.
  size_t Step() {
    const ScheduledStep step = Must(scheduler_->Schedule());
    if (step.empty()) return 0;
    const size_t sequences = step.items.size();
    sampled_.assign(step.outputs, 1);
    if (!scheduler_->Complete(step.id, sampled_).ok()) std::abort();
    return sequences;
  }

  // Takes what has finished; how many.
  size_t TakeAll() {
    size_t taken = 0;
    while (scheduler_->TakeFinished().has_value()) ++taken;
    return taken;
  }

  BatchSchedulerStats Stats() const { return scheduler_->Stats(); }

 private:
  template <typename T>
  static T Must(absl::StatusOr<T> value) {
    if (!value.ok()) std::abort();
    return *std::move(value);
  }

  ManualClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<BatchScheduler> scheduler_;
  std::vector<TokenId> prompt_;
  std::vector<TokenId> sampled_;
  uint64_t last_id_ = 0;
};

// Every sequence decodes one token a step; `waiting` requests do not fit.
void BM_BatchScheduler_DecodeStep(benchmark::State& state) {
  const auto sequences = static_cast<uint32_t>(state.range(0));
  const auto waiting = static_cast<uint32_t>(state.range(1));
  constexpr uint32_t kPrompt = 512;
  constexpr uint32_t kOutput = 2048;
  BatchSchedulerOptions options;
  options.max_requests = sequences + waiting;
  options.max_batch_sequences = sequences + 1;
  options.max_batch_tokens = sequences * kPrompt;
  options.growth_reserve_tokens = kOutput;
  const uint32_t blocks = sequences * ((kPrompt + kOutput) / kBlockTokens);
  std::optional<Serving> serving;
  uint32_t steps_left = 0;
  for (auto _ : state) {
    if (steps_left == 0) {
      state.PauseTiming();
      serving.emplace(blocks, options);
      for (uint32_t i = 0; i < sequences + waiting; ++i) {
        serving->Submit(i, kPrompt, kOutput);
      }
      serving->Step();  // all prompts
      serving->Step();
      steps_left = kOutput - 3;
      state.ResumeTiming();
    }
    benchmark::DoNotOptimize(serving->Step());
    --steps_left;
  }
  state.SetItemsProcessed(state.iterations() * sequences);
}
BENCHMARK(BM_BatchScheduler_DecodeStep)
    ->ArgNames({"sequences", "waiting"})
    ->ArgsProduct({{1, 16, 64, 256}, {0, 1000}});

// A whole request: submitted, admitted with `hit` of its prompt cached,
// prefilled in one chunk, one token generated, taken.
void BM_BatchScheduler_Request(benchmark::State& state) {
  const auto prompt = static_cast<uint32_t>(state.range(0));
  const bool hit = state.range(1) != 0;
  BatchSchedulerOptions options;
  options.max_batch_tokens = prompt;
  Serving serving(4 * prompt / kBlockTokens, options);
  uint32_t text = 0;
  serving.Submit(text, prompt, 1);
  for (auto _ : state) {
    serving.Step();
    serving.TakeAll();
    serving.Submit(hit ? 0 : ++text, prompt, 1);
  }
  state.SetItemsProcessed(state.iterations() * prompt);
}
BENCHMARK(BM_BatchScheduler_Request)
    ->ArgNames({"prompt", "hit"})
    ->ArgsProduct({{128, 1024, 8192}, {0, 1}});

// Steady traffic against a pool of half of what all could use at once, so that
// requests are preempted all the time.
void BM_BatchScheduler_CrowdedStep(benchmark::State& state) {
  const auto sequences = static_cast<uint32_t>(state.range(0));
  constexpr uint32_t kPrompt = 64;
  constexpr uint32_t kOutput = 192;
  BatchSchedulerOptions options;
  options.max_requests = 4 * sequences;
  options.max_batch_sequences = sequences;
  options.max_batch_tokens = std::max(sequences, 512u);
  options.growth_reserve_tokens = 0;
  Serving serving(sequences * (kPrompt + kOutput) / kBlockTokens / 2, options);
  uint32_t text = 0;
  for (uint32_t i = 0; i < 2 * sequences; ++i) {
    serving.Submit(++text, kPrompt, kOutput);
  }
  uint64_t tokens = 0;
  for (auto _ : state) {
    tokens += serving.Step();
    for (size_t i = serving.TakeAll(); i > 0; --i) {
      serving.Submit(++text, kPrompt, kOutput);
    }
  }
  const BatchSchedulerStats stats = serving.Stats();
  state.SetItemsProcessed(static_cast<int64_t>(tokens));
  state.counters["preemptions_per_request"] =
      static_cast<double>(stats.preemptions) /
      static_cast<double>(stats.submitted);
  state.counters["recomputed_share"] =
      static_cast<double>(stats.recomputed_tokens) /
      static_cast<double>(stats.computed_tokens);
}
BENCHMARK(BM_BatchScheduler_CrowdedStep)
    ->ArgName("sequences")
    ->Arg(16)
    ->Arg(64)
    ->Arg(256);

// Requests join and leave a long queue of mixed priorities.
void BM_BatchScheduler_QueueAndCancel(benchmark::State& state) {
  const auto queued = static_cast<uint32_t>(state.range(0));
  KvCacheOptions cache_options;
  cache_options.groups = {LayerGroup{}};
  cache_options.host_blocks = BlockCount(1024);
  auto cache = KvCacheManager::Create(cache_options);
  ManualClock clock;
  BatchSchedulerOptions options;
  options.max_requests = queued + 1;
  auto scheduler = BatchScheduler::Create(cache->get(), &clock, options);
  const std::vector<TokenId> prompt(64, 1);
  uint64_t id = 0;
  const auto submit = [&] {
    GenerationRequest request;
    request.id = RequestId(++id);
    request.prompt = prompt;
    request.max_output_tokens = 64;
    request.priority = static_cast<int32_t>(id % 7);
    if (!(*scheduler)->Submit(request).ok()) std::abort();
  };
  for (uint32_t i = 0; i < queued; ++i) submit();
  for (auto _ : state) {
    submit();
    if (!(*scheduler)->Cancel(RequestId(id - queued / 2)).ok()) std::abort();
    benchmark::DoNotOptimize((*scheduler)->TakeFinished());
    clock.Advance(absl::Milliseconds(1));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_BatchScheduler_QueueAndCancel)
    ->ArgName("queued")
    ->Arg(100)
    ->Arg(10000);

}  // namespace
}  // namespace paged_kv

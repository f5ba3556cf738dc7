// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/demo_serving.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/append_kv.h"
#include "attention/attention_plan.h"
#include "attention/copy_blocks.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "attention/reference_attention.h"
#include "benchmarks/tool/demo_model.h"
#include "benchmarks/tool/random.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr GroupId kGroup(0);
constexpr uint32_t kBlockTokens = 16;

double Seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

// The page table of one step, with the arrays that it views.
struct StepTable {
  std::vector<int32_t> indptr, pages, last, first;
  std::vector<int64_t> slots;
  PageTable table;
};

// What the step's rows are: [total_q].
struct Rows {
  std::vector<TokenId> tokens;
  std::vector<uint32_t> positions;
  std::vector<int32_t> qo_indptr = {0};
};

class DemoEngine {
 public:
  DemoEngine(const DemoServingOptions& options, DemoServingResult& result)
      : options_(options),
        result_(result),
        model_(options.seed),
        threads_(options.threads) {}

  absl::Status Create() {
    KvCacheOptions cache;
    LayerGroup group;
    group.shape.layers = options_.layers;
    group.shape.kv_heads = DemoModel::kKvHeads;
    group.shape.head_dim = DemoModel::kHeadDim;
    group.shape.block_tokens = kBlockTokens;
    group.shape.dtype = DType::kBF16;
    cache.groups = {group};
    const uint32_t longest =
        options_.common_tokens + options_.own_tokens + options_.output_tokens;
    cache.host_blocks = BlockCount(
        options_.requests * ((longest + kBlockTokens - 1) / kBlockTokens));
    cache.max_sequences = options_.requests;
    cache.max_tokens_per_sequence = longest;
    cache.prefix_caching = options_.share;
    cache.memory = MemoryMode::kOwnMemory;
    cache.hash_seed = 1;
    PAGED_KV_ASSIGN_OR_RETURN(cache_, KvCacheManager::Create(cache));
    PAGED_KV_ASSIGN_OR_RETURN(const PageLayout layout, cache_->Layout(kGroup));
    pages_ = {group.shape, layout, cache.host_blocks.value()};
    result_.block_bytes = PageBytes(group.shape).value();

    BatchSchedulerOptions scheduler;
    scheduler.max_batch_sequences = options_.requests;
    scheduler.max_batch_tokens = std::max(512u, options_.requests);
    PAGED_KV_ASSIGN_OR_RETURN(
        scheduler_, BatchScheduler::Create(cache_.get(), &clock_, scheduler));
    return absl::OkStatus();
  }

  absl::Status SubmitAll() {
    Random random(options_.seed);
    std::vector<TokenId> common(options_.common_tokens);
    for (TokenId& token : common) token = RandomToken(random);
    for (uint32_t r = 0; r < options_.requests; ++r) {
      std::vector<TokenId> prompt = common;
      const uint32_t own =
          options_.own_tokens / 2 + random.Below(options_.own_tokens / 2 + 1);
      for (uint32_t i = 0; i < own; ++i) prompt.push_back(RandomToken(random));
      GenerationRequest request;
      request.id = RequestId(r);
      request.prompt = prompt;
      request.max_output_tokens = options_.output_tokens;
      PAGED_KV_RETURN_IF_ERROR(scheduler_->Submit(request));
      prompt_lengths_.push_back(static_cast<uint32_t>(prompt.size()));
      result_.prompt_tokens += prompt.size();
    }
    result_.answers.resize(options_.requests);
    return absl::OkStatus();
  }

  bool Done() const { return finished_ == options_.requests; }
  uint32_t finished() const { return finished_; }

  absl::Status Step() {
    const auto begin = std::chrono::steady_clock::now();
    PAGED_KV_ASSIGN_OR_RETURN(const ScheduledStep step, scheduler_->Schedule());
    PAGED_KV_ASSIGN_OR_RETURN(const StepTable table, Export(step));
    const Rows rows = RowsOf(step);
    PAGED_KV_RETURN_IF_ERROR(CopySharedBlocks(step));
    std::vector<float> logits(size_t{step.outputs} * DemoModel::kVocabulary);
    PAGED_KV_RETURN_IF_ERROR(
        Forward(step, table, rows, absl::MakeSpan(logits)));
    const uint64_t held = cache_->Stats().pools[0].held.value();
    result_.peak_blocks = std::max(result_.peak_blocks, held);
    PAGED_KV_RETURN_IF_ERROR(scheduler_->Complete(step.id, Sample(logits)));
    TakeFinished();
    const auto end = std::chrono::steady_clock::now();
    Account(step, Seconds(end - begin - check_time_));
    return cache_->CheckInvariants();
  }

 private:
  static TokenId RandomToken(Random& random) {
    return static_cast<TokenId>(random.Below(DemoModel::kVocabulary));
  }

  absl::StatusOr<StepTable> Export(const ScheduledStep& step) {
    StepTable result;
    PAGED_KV_ASSIGN_OR_RETURN(const PageTableSize size,
                              cache_->TableSize(step.id, kGroup));
    result.indptr.resize(size.sequences + 1);
    result.pages.resize(size.pages);
    result.last.resize(size.sequences);
    result.first.resize(size.sequences);
    result.slots.resize(step.new_tokens.value());
    PAGED_KV_ASSIGN_OR_RETURN(
        result.table,
        cache_->ExportPageTable(
            step.id, kGroup,
            {absl::MakeSpan(result.indptr), absl::MakeSpan(result.pages),
             absl::MakeSpan(result.last), absl::MakeSpan(result.first)}));
    PAGED_KV_RETURN_IF_ERROR(cache_->ExportSlotMapping(
        step.id, kGroup, absl::MakeSpan(result.slots)));
    return result;
  }

  static Rows RowsOf(const ScheduledStep& step) {
    Rows rows;
    for (const WorkItem& item : step.items) {
      for (uint32_t i = 0; i < item.new_tokens.value(); ++i) {
        rows.tokens.push_back(item.tokens[i]);
        rows.positions.push_back(item.first_new.value() + i);
      }
      rows.qo_indptr.push_back(static_cast<int32_t>(rows.tokens.size()));
    }
    return rows;
  }

  absl::Status CopySharedBlocks(const ScheduledStep& step) {
    PAGED_KV_ASSIGN_OR_RETURN(const StepView view, cache_->View(step.id));
    std::vector<attention::PageCopy> copies;
    for (const BlockCopy& copy : view.copies) {
      copies.push_back(
          {copy.source.value(), copy.target.value(), copy.filled_tokens});
    }
    return attention::CopyBlocks(pages_, copies, threads_);
  }

  std::vector<float> ProjectAll(DemoModel::Projection projection,
                                const Rows& rows, uint32_t layer,
                                uint32_t heads) {
    const size_t width = size_t{heads} * DemoModel::kHeadDim;
    std::vector<float> values(rows.tokens.size() * width);
    threads_.Run(rows.tokens.size(), [&](size_t i, size_t) {
      model_.Project(projection, rows.tokens[i], rows.positions[i], layer,
                     absl::MakeSpan(values).subspan(i * width, width));
    });
    return values;
  }

  // Writes K/V and attends, layer by layer; adds up the logits of the rows
  // that end with an output token.
  absl::Status Forward(const ScheduledStep& step, const StepTable& table,
                       const Rows& rows, absl::Span<float> logits) {
    using Projection = DemoModel::Projection;
    check_time_ = {};
    PAGED_KV_ASSIGN_OR_RETURN(
        attention::AttentionPlan plan,
        attention::AttentionPlan::ForPrefill(pages_, DemoModel::kQueryHeads,
                                             table.table, rows.qo_indptr, {}));
    for (uint32_t layer = 0; layer < options_.layers; ++layer) {
      const auto k =
          ProjectAll(Projection::kKey, rows, layer, DemoModel::kKvHeads);
      const auto v =
          ProjectAll(Projection::kValue, rows, layer, DemoModel::kKvHeads);
      const auto q =
          ProjectAll(Projection::kQuery, rows, layer, DemoModel::kQueryHeads);
      PAGED_KV_RETURN_IF_ERROR(attention::AppendKv(
          pages_, layer, {k.data()}, {v.data()}, table.slots, threads_));
      std::vector<float> out(q.size());
      PAGED_KV_RETURN_IF_ERROR(
          plan.Run(pages_, layer, q, {absl::MakeSpan(out), {}}, threads_));
      AddLogits(step, rows, layer, out, logits);
      // The last layer of the first step and of every sixteenth one.
      if (layer + 1 == options_.layers && result_.steps % 16 == 0) {
        PAGED_KV_RETURN_IF_ERROR(Check(table, rows, layer, q, out));
      }
    }
    return absl::OkStatus();
  }

  void AddLogits(const ScheduledStep& step, const Rows& rows, uint32_t layer,
                 absl::Span<const float> out, absl::Span<float> logits) {
    constexpr size_t kWidth = DemoModel::kQueryHeads * DemoModel::kHeadDim;
    size_t output = 0;
    for (size_t i = 0; i < step.items.size(); ++i) {
      if (step.items[i].outputs == 0) continue;
      const auto row = static_cast<size_t>(rows.qo_indptr[i + 1] - 1);
      model_.AddLogits(layer, out.subspan(row * kWidth, kWidth),
                       logits.subspan(output * DemoModel::kVocabulary,
                                      DemoModel::kVocabulary));
      ++output;
    }
  }

  absl::Status Check(const StepTable& table, const Rows& rows, uint32_t layer,
                     absl::Span<const float> q, absl::Span<const float> out) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<double> expected(out.size());
    PAGED_KV_RETURN_IF_ERROR(attention::ReferenceAttention(
        {pages_, layer, table.table, DemoModel::kQueryHeads, q}, rows.qo_indptr,
        {}, {absl::MakeSpan(expected), {}}, threads_));
    for (size_t i = 0; i < out.size(); ++i) {
      result_.max_attention_error = std::max(
          result_.max_attention_error, std::abs(double{out[i]} - expected[i]));
    }
    ++result_.checked_steps;
    check_time_ = std::chrono::steady_clock::now() - begin;
    return absl::OkStatus();
  }

  static std::vector<TokenId> Sample(absl::Span<const float> logits) {
    std::vector<TokenId> tokens;
    for (size_t at = 0; at < logits.size(); at += DemoModel::kVocabulary) {
      const auto row = logits.subspan(at, DemoModel::kVocabulary);
      tokens.push_back(static_cast<TokenId>(
          std::max_element(row.begin(), row.end()) - row.begin()));
    }
    return tokens;
  }

  void TakeFinished() {
    while (const std::optional<FinishedRequest> done =
               scheduler_->TakeFinished()) {
      const absl::Span<const TokenId> output = done->Output(0);
      result_.answers[done->id.value()].assign(output.begin(), output.end());
      ++finished_;
    }
  }

  void Account(const ScheduledStep& step, double seconds) {
    ++result_.steps;
    uint64_t prompt = 0;
    for (const WorkItem& item : step.items) {
      const uint32_t first = item.first_new.value();
      const uint32_t length = prompt_lengths_[item.request.value()];
      prompt +=
          std::min(std::max(length, first) - first, item.new_tokens.value());
    }
    result_.computed_prompt_tokens += prompt;
    if (prompt > 0) {
      result_.prefill_seconds += seconds;
    } else {
      result_.decode_seconds += seconds;
      result_.decode_tokens += step.new_tokens.value();
    }
  }

  const DemoServingOptions& options_;
  DemoServingResult& result_;
  const DemoModel model_;
  attention::ThreadPool threads_;
  const SteadyClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<BatchScheduler> scheduler_;
  attention::KvPages pages_;
  std::vector<uint32_t> prompt_lengths_;  // [requests]
  uint32_t finished_ = 0;
  std::chrono::steady_clock::duration check_time_{};  // of the present step
};

}  // namespace

absl::StatusOr<DemoServingResult> ServeDemoBatch(
    const DemoServingOptions& options, Progress& progress) {
  DemoServingResult result;
  DemoEngine engine(options, result);
  PAGED_KV_RETURN_IF_ERROR(engine.Create());
  PAGED_KV_RETURN_IF_ERROR(engine.SubmitAll());
  while (!engine.Done()) {
    PAGED_KV_RETURN_IF_ERROR(engine.Step());
    progress.Update(engine.finished(), options.requests);
  }
  return result;
}

}  // namespace paged_kv::tool

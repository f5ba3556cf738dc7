// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/isa.h"
#include "benchmarks/tool/kernels/huge_buffer.h"
#include "benchmarks/tool/kernels/roof_kernels.h"
#include "benchmarks/tool/kernels/timing.h"
#include "benchmarks/tool/serving/lengths.h"
#include "docs/examples/llm/engine/attention_backend.h"
#include "docs/examples/llm/engine/sampling.h"
#include "docs/examples/llm/engine/step_runner.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using llm::SequenceRows;
using TimePoint = std::chrono::steady_clock::time_point;

TimePoint Now() { return std::chrono::steady_clock::now(); }

double SecondsSince(TimePoint begin) {
  return std::chrono::duration<double>(Now() - begin).count();
}

llm::StageTimes Difference(const llm::StageTimes& a, const llm::StageTimes& b) {
  return {a.embedding_s - b.embedding_s, a.linear_s - b.linear_s,
          a.attention_s - b.attention_s, a.output_s - b.output_s,
          a.other_s - b.other_s};
}

// A batch of equally long sequences, stepped by hand so that prefill and decode
// do not mix.
class BatchRun {
 public:
  BatchRun(LoadedModel& model, const LengthsCase& length,
           const LengthsOptions& options)
      : model_(model), length_(length), options_(options) {}

  absl::Status Create() {
    llm::ModelCacheOptions cache = options_.cache;
    const auto tokens =
        static_cast<uint32_t>(length_.tokens.size()) + options_.output_tokens;
    cache.max_tokens = tokens;
    cache.max_sequences = length_.batch;
    cache.prefix_caching = false;
    if (cache.blocks == 0) {
      cache.blocks = length_.batch *
                     ((tokens + cache.block_tokens - 1) / cache.block_tokens);
    }
    PAGED_KV_ASSIGN_OR_RETURN(cache_,
                              llm::MakeModelCache(model_.config(), cache));
    const uint32_t heads = model_.config().heads;
    PAGED_KV_ASSIGN_OR_RETURN(const attention::KvPages pages,
                              llm::PagesOf(*cache_));
    if (options_.attention) {
      PAGED_KV_ASSIGN_OR_RETURN(attention_, options_.attention(pages, heads));
    } else {
      attention_ = llm::MakeCpuAttention(pages, heads, model_.threads.get());
    }
    runner_ = std::make_unique<llm::StepRunner>(
        cache_.get(), model_.model.get(), attention_.get());
    return absl::OkStatus();
  }

  // One sequence after the other, each in chunks; its first token is drawn
  // with its last chunk.
  absl::Status Prefill(const std::function<bool()>& interrupted,
                       PhaseTimes* times) {
    const auto all = absl::MakeConstSpan(length_.tokens);
    for (uint32_t i = 0; i < length_.batch; ++i) {
      SequenceId id;
      for (size_t done = 0; done < all.size();) {
        if (interrupted()) return absl::CancelledError("interrupted");
        const size_t count =
            std::min<size_t>(options_.step_tokens, all.size() - done);
        StepRequest request;
        const auto chunk = TokenCount(static_cast<uint32_t>(count));
        if (done == 0) {
          request = StepRequest::Admit(all);
          request.new_tokens = chunk;
        } else {
          request = StepRequest::Extend(id, chunk);
        }
        const bool last = done + count == all.size();
        PAGED_KV_RETURN_IF_ERROR(
            Step({request},
                 {{all.subspan(done, count), static_cast<uint32_t>(done),
                   last ? 1u : 0u}},
                 &id, times));
        done += count;
      }
      ids_.push_back(id);
    }
    last_ = drawn_;
    outputs_ = drawn_;
    return absl::OkStatus();
  }

  // Before the first decode step; its steps are measured with the kernel alone
  // beside them from then on.
  absl::Status AddKernelTurns() {
    const auto context = static_cast<uint32_t>(length_.tokens.size()) +
                         options_.output_tokens / 2;
    PAGED_KV_ASSIGN_OR_RETURN(
        kernel_,
        KernelTurns::Create(model_.config(), options_.cache, length_.batch,
                            context, options_.seed, model_.threads.get()));
    return absl::OkStatus();
  }

  // A decode step and a turn of the kernel alone.
  absl::Status DecodeStepAndTurn(PhaseTimes* times,
                                 KernelComparison* comparison) {
    const double before = attention_->kernel_s();
    PAGED_KV_RETURN_IF_ERROR(DecodeStep(times));
    comparison->engine_s.push_back(attention_->kernel_s() - before);
    PAGED_KV_ASSIGN_OR_RETURN(const double alone, kernel_->Turn());
    comparison->alone_s.push_back(alone);
    comparison->alone_bytes = kernel_->turn_bytes();
    return absl::OkStatus();
  }

  absl::Status DecodeStep(PhaseTimes* times) {
    std::vector<StepRequest> requests;
    std::vector<SequenceRows> rows;
    const auto position =
        static_cast<uint32_t>(length_.tokens.size() + decoded_);
    for (size_t i = 0; i < ids_.size(); ++i) {
      const absl::Span<const TokenId> token(&last_[i], 1);
      requests.push_back(StepRequest::Extend(ids_[i], token));
      rows.push_back({token, position, 1});
    }
    drawn_.clear();
    PAGED_KV_RETURN_IF_ERROR(Step(requests, rows, nullptr, times));
    last_ = drawn_;
    outputs_.insert(outputs_.end(), drawn_.begin(), drawn_.end());
    ++decoded_;
    return absl::OkStatus();
  }

  const std::vector<TokenId>& outputs() const { return outputs_; }

 private:
  absl::Status Step(const std::vector<StepRequest>& requests,
                    const std::vector<SequenceRows>& rows, SequenceId* first,
                    PhaseTimes* times) {
    const TimePoint begin = Now();
    const llm::StageTimes forward_before = model_.model->times();
    PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, cache_->Plan(requests));
    PAGED_KV_ASSIGN_OR_RETURN(const StepId step,
                              cache_->Commit(std::move(plan)));
    if (first != nullptr) {
      PAGED_KV_ASSIGN_OR_RETURN(const StepView view, cache_->View(step));
      *first = view.sequences[0].id;
    }
    times->manager_s += SecondsSince(begin);
    const double tables_before = runner_->tables_s();
    PAGED_KV_ASSIGN_OR_RETURN(absl::Span<const float> logits,
                              runner_->Run(step, rows));
    times->tables_s += runner_->tables_s() - tables_before;
    const TimePoint sampling = Now();
    for (; !logits.empty(); logits.remove_prefix(model_.config().vocab)) {
      drawn_.push_back(llm::MostLikely(logits.first(model_.config().vocab)));
    }
    times->sample_s += SecondsSince(sampling);
    const TimePoint retiring = Now();
    PAGED_KV_RETURN_IF_ERROR(cache_->Retire(step));
    times->manager_s += SecondsSince(retiring);
    const llm::StageTimes forward =
        Difference(model_.model->times(), forward_before);
    times->forward.embedding_s += forward.embedding_s;
    times->forward.linear_s += forward.linear_s;
    times->forward.attention_s += forward.attention_s;
    times->forward.output_s += forward.output_s;
    times->forward.other_s += forward.other_s;
    times->wall_s += SecondsSince(begin);
    return absl::OkStatus();
  }

  LoadedModel& model_;
  const LengthsCase& length_;
  const LengthsOptions& options_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<llm::AttentionBackend> attention_;
  std::unique_ptr<llm::StepRunner> runner_;
  std::unique_ptr<KernelTurns> kernel_;
  std::vector<SequenceId> ids_;
  std::vector<TokenId> drawn_;    // by the steps of this phase
  std::vector<TokenId> last_;     // token of each sequence
  std::vector<TokenId> outputs_;  // of all, step by step
  size_t decoded_ = 0;
};

}  // namespace

double LengthsRow::DecodeStepSeconds() const {
  if (output_tokens < 2) return 0;
  return decode.wall_s / (output_tokens - 1);
}

absl::StatusOr<LengthsRow> MeasureLength(
    LoadedModel& model, const LengthsCase& length,
    const LengthsOptions& options, const std::function<bool()>& interrupted) {
  LengthsRow row;
  row.length = length;
  row.output_tokens = options.output_tokens;
  BatchRun run(model, length, options);
  PAGED_KV_RETURN_IF_ERROR(run.Create());
  PAGED_KV_RETURN_IF_ERROR(run.Prefill(interrupted, &row.prefill));
  if (options.kernel_turns) {
    PAGED_KV_RETURN_IF_ERROR(run.AddKernelTurns());
  }
  for (uint32_t i = 1; i < options.output_tokens; ++i) {
    if (interrupted()) return absl::CancelledError("interrupted");
    PAGED_KV_RETURN_IF_ERROR(
        options.kernel_turns ? run.DecodeStepAndTurn(&row.decode, &row.kernel)
                             : run.DecodeStep(&row.decode));
  }
  row.outputs = run.outputs();
  if (model.tokenizer != nullptr) {
    const TimePoint begin = Now();
    model.tokenizer->Decode(row.outputs, /*at_start=*/false);
    row.detokenize_s = SecondsSince(begin);
  }
  const BlockShape shape = llm::CacheShape(model.config(), options.cache.dtype,
                                           options.cache.block_tokens);
  const uint64_t token_bytes = BytesPerToken(shape).value();
  const uint64_t outputs = options.output_tokens;
  row.kv_bytes = length.batch * token_bytes * (row.PromptTokens() + outputs);
  // Step i reads the prompt and i tokens more, i from 1 to outputs - 1.
  row.kernel.engine_bytes = static_cast<double>(length.batch * token_bytes) *
                            (static_cast<double>(row.PromptTokens()) +
                             static_cast<double>(outputs) / 2);
  row.step_read_bytes =
      model.model->step_weight_bytes() +
      length.batch * token_bytes * (row.PromptTokens() + outputs / 2);
  return row;
}

absl::StatusOr<double> MeasureStreamRate(attention::ParallelFor& parallel) {
  constexpr size_t kBytes = size_t{256} << 20;
  constexpr size_t kParts = 64;
  PAGED_KV_ASSIGN_OR_RETURN(const HugeBuffer buffer,
                            HugeBuffer::Create(kBytes));
  PAGED_KV_ASSIGN_OR_RETURN(const attention::Isa isa,
                            attention::ResolveIsa(attention::Isa::kAuto));
  const RoofKernels kernels = RoofKernelsFor(isa);
  // Untouched memory is one page of zeros, which every cache holds.
  std::memset(buffer.data(), 1, buffer.size());
  double best = 0;
  // Which way of reading is the fastest differs between processors.
  for (const size_t streams : {1, 2, 4}) {
    for (const size_t ahead : {0, 512, 2048}) {
      for (int repetition = 0; repetition < 3; ++repetition) {
        const Timing timing = TimeOf([&] {
          parallel.Run(kParts, [&](size_t part, size_t) {
            kernels.read_streams(buffer.data() + part * (kBytes / kParts),
                                 kBytes / kParts, streams, ahead);
          });
        });
        best =
            std::max(best, static_cast<double>(kBytes) / timing.wall_seconds);
      }
    }
  }
  return best;
}

}  // namespace paged_kv::tool

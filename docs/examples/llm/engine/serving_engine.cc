// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/serving_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "docs/examples/llm/engine/prompt_lookup.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

TimePoint Now() { return std::chrono::steady_clock::now(); }

double SecondsSince(TimePoint begin) {
  return std::chrono::duration<double>(Now() - begin).count();
}

uint32_t BlocksOf(uint32_t tokens, uint32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

// Outputs of a sample before the item's own.
uint32_t OutputsBefore(const WorkItem& item, uint32_t prompt_tokens) {
  return item.first_new.value() + item.new_tokens.value() - prompt_tokens;
}

ModelCacheOptions Completed(ModelCacheOptions cache, const ModelConfig& config,
                            const BatchSchedulerOptions& scheduler) {
  if (cache.max_tokens == 0) cache.max_tokens = config.max_context;
  cache.max_sequences =
      std::max(cache.max_sequences, scheduler.max_batch_sequences);
  if (cache.blocks == 0 && cache.block_tokens > 0) {
    cache.blocks = scheduler.max_batch_sequences *
                   BlocksOf(cache.max_tokens, cache.block_tokens);
  }
  if (scheduler.decode_tier == Tier::kDevice && cache.device_pages == 0) {
    cache.device_pages = cache.blocks;
  }
  return cache;
}

}  // namespace

ServingEngine::ServingEngine(Transformer* model,
                             std::unique_ptr<TieredPages> tiers,
                             std::unique_ptr<KvCacheManager> cache,
                             std::unique_ptr<AttentionBackend> attention)
    : model_(model),
      tiers_(std::move(tiers)),
      cache_(std::move(cache)),
      attention_(std::move(attention)),
      runner_(cache_.get(), model, attention_.get(),
              tiers_ == nullptr ? 0 : tiers_->first_device_page()) {}

absl::StatusOr<std::unique_ptr<ServingEngine>> ServingEngine::Create(
    Transformer* model, const EngineOptions& options,
    attention::ParallelFor* parallel) {
  const ModelConfig& config = model->config();
  const ModelCacheOptions cache_options =
      Completed(options.cache, config, options.scheduler);
  const bool on_device = options.scheduler.decode_tier == Tier::kDevice;
  std::unique_ptr<TieredPages> tiers;
  if (on_device) {
    PAGED_KV_ASSIGN_OR_RETURN(
        tiers,
        TieredPages::Create(
            CacheShape(config, cache_options.dtype, cache_options.block_tokens),
            cache_options.blocks, cache_options.device_pages));
  }
  PAGED_KV_ASSIGN_OR_RETURN(
      std::unique_ptr<KvCacheManager> cache,
      MakeModelCache(config, cache_options,
                     tiers == nullptr ? nullptr : &tiers->pages().layout));
  PAGED_KV_ASSIGN_OR_RETURN(attention::KvPages pages, PagesOf(*cache));
  if (tiers != nullptr) pages = tiers->pages();
  std::unique_ptr<AttentionBackend> attention;
  if (options.attention) {
    PAGED_KV_ASSIGN_OR_RETURN(attention,
                              options.attention(pages, config.heads));
  } else {
    attention = MakeCpuAttention(pages, config.heads, parallel);
  }
  std::unique_ptr<ServingEngine> engine(new ServingEngine(
      model, std::move(tiers), std::move(cache), std::move(attention)));
  PAGED_KV_ASSIGN_OR_RETURN(
      engine->scheduler_,
      BatchScheduler::Create(engine->cache_.get(), &engine->clock_,
                             options.scheduler));
  return engine;
}

absl::Status ServingEngine::Submit(const EngineRequest& request) {
  PAGED_KV_RETURN_IF_ERROR(Validate(request.sampling));
  PAGED_KV_RETURN_IF_ERROR(CheckTokens(request.prompt));
  GenerationRequest generation;
  generation.id = request.id;
  generation.prompt = request.prompt;
  generation.max_output_tokens = request.max_output_tokens;
  generation.samples = request.samples;
  generation.priority = request.priority;
  generation.stop_tokens = request.stop_tokens;
  PAGED_KV_RETURN_IF_ERROR(scheduler_->Submit(generation));
  requests_[request.id] = {request.sampling,
                           static_cast<uint32_t>(request.prompt.size())};
  return absl::OkStatus();
}

absl::Status ServingEngine::CheckTokens(
    absl::Span<const TokenId> tokens) const {
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<uint32_t>(token) >= model_->config().vocab) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token ", token, " is not one of ", model_->config().vocab));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BeamResult> ServingEngine::SearchBeams(
    const BeamRequest& request) {
  PAGED_KV_RETURN_IF_ERROR(CheckTokens(request.prompt));
  const uint32_t most = cache_->options().max_sequences;
  if (request.beams > most) {
    return absl::OutOfRangeError(absl::StrCat(
        request.beams, " beams, but the cache holds ", most, " sequences"));
  }
  BeamSearch search(cache_.get(), &runner_, model_->config().vocab, &times_);
  return search.Run(request);
}

bool ServingEngine::Idle() const {
  const BatchSchedulerStats stats = scheduler_->Stats();
  return stats.waiting == 0 && stats.running == 0;
}

absl::StatusOr<absl::Span<const EmittedToken>> ServingEngine::Step() {
  emitted_.clear();
  last_items_.clear();
  TimePoint begin = Now();
  PAGED_KV_ASSIGN_OR_RETURN(const ScheduledStep step, NextStep());
  times_.schedule_s += SecondsSince(begin);
  if (step.empty()) return absl::MakeConstSpan(emitted_);
  last_items_.assign(step.items.begin(), step.items.end());

  const absl::StatusOr<absl::Span<const float>> logits = RunItems(step);
  if (!logits.ok()) {
    PAGED_KV_RETURN_IF_ERROR(scheduler_->AbandonStepsInFlight());
    return logits.status();
  }
  begin = Now();
  Sample(step, *logits);
  times_.sample_s += SecondsSince(begin);
  begin = Now();
  PAGED_KV_RETURN_IF_ERROR(scheduler_->Complete(step.id, tokens_));
  times_.schedule_s += SecondsSince(begin);
  ++times_.steps;
  Emit();
  begin = Now();
  Propose();
  times_.draft_s += SecondsSince(begin);
  return absl::MakeConstSpan(emitted_);
}

absl::StatusOr<ScheduledStep> ServingEngine::NextStep() {
  for (;;) {
    PAGED_KV_ASSIGN_OR_RETURN(const ScheduledStep step, scheduler_->Schedule());
    if (tiers_ == nullptr) return step;
    PAGED_KV_ASSIGN_OR_RETURN(const bool moved, MovePages());
    // What was moved may be what everybody waited for.
    if (!step.empty() || !moved) return step;
  }
}

absl::StatusOr<bool> ServingEngine::MovePages() {
  const absl::Span<const TierTransfer> taken = scheduler_->TakeTransfers();
  transfers_.assign(taken.begin(), taken.end());
  for (const TierTransfer& transfer : transfers_) {
    // Only what no step in flight writes is ever moved: this engine completes a
    // step before it schedules another.
    PAGED_KV_CHECK(transfer.after_step == StepId(0));
    tiers_->Move(transfer);
    attention_->PageReplaced(
        tiers_->IndexOf(transfer.target_tier, transfer.target_page));
    PAGED_KV_RETURN_IF_ERROR(scheduler_->FinishTransfer(transfer.id, true));
  }
  return !transfers_.empty();
}

absl::StatusOr<absl::Span<const float>> ServingEngine::RunItems(
    const ScheduledStep& step) {
  rows_.clear();
  drafted_rows_.clear();
  // Grown once: spans point into it.
  drafted_rows_.reserve(step.new_tokens.value() + step.draft_tokens.value());
  for (const WorkItem& item : step.items) {
    const uint32_t first = item.first_new.value();
    if (item.drafts.empty()) {
      rows_.push_back(
          {item.tokens, first, std::min(item.outputs, 1u), item.tier});
      continue;
    }
    const size_t begin = drafted_rows_.size();
    drafted_rows_.insert(drafted_rows_.end(), item.tokens.begin(),
                         item.tokens.end());
    drafted_rows_.insert(drafted_rows_.end(), item.drafts.begin(),
                         item.drafts.end());
    rows_.push_back({absl::MakeConstSpan(drafted_rows_).subspan(begin), first,
                     item.outputs, item.tier});
  }
  const TimePoint begin = Now();
  const double tables_before = runner_.tables_s();
  auto logits = runner_.Run(step.id, rows_);
  const double tables = runner_.tables_s() - tables_before;
  times_.tables_s += tables;
  times_.forward_s += SecondsSince(begin) - tables;
  return logits;
}

void ServingEngine::Sample(const ScheduledStep& step,
                           absl::Span<const float> logits) {
  tokens_.clear();
  for (const WorkItem& item : step.items) {
    if (item.outputs > 0) logits = SampleItem(item, logits);
  }
}

// Draws an item's outputs from the first rows of `logits` and returns the rest.
// At the end of a prompt all samples draw from one row; with drafts, each
// output has a row of its own, and those behind a wrong draft do not count.
absl::Span<const float> ServingEngine::SampleItem(
    const WorkItem& item, absl::Span<const float> logits) {
  const size_t vocab = model_->config().vocab;
  const RequestState& request = requests_.at(item.request);
  const uint32_t index = OutputsBefore(item, request.prompt_tokens);
  const auto draw = [&](uint32_t row, uint32_t sample) {
    return sampler_.Draw(logits.subspan(row * vocab, vocab), request.sampling,
                         sample, index + row);
  };
  if (item.drafts.empty()) {
    for (uint32_t i = 0; i < item.outputs; ++i) {
      tokens_.push_back(draw(0, item.outputs == 1 ? item.sample : i));
    }
    return logits.subspan(vocab);
  }
  bool counts = true;
  for (uint32_t row = 0; row < item.outputs; ++row) {
    tokens_.push_back(counts ? draw(row, item.sample) : TokenId{0});
    counts = counts && row < item.drafts.size() &&
             item.drafts[row] == tokens_.back();
  }
  return logits.subspan(item.outputs * vocab);
}

// The scheduler knows which outputs counted.
void ServingEngine::Emit() {
  for (const WorkItem& item : last_items_) {
    if (item.outputs == 0) continue;
    if (item.outputs == 1 || !item.drafts.empty()) {
      EmitSample(item, item.sample);
      continue;
    }
    for (uint32_t i = 0; i < item.outputs; ++i) EmitSample(item, i);
  }
}

void ServingEngine::EmitSample(const WorkItem& item, uint32_t sample) {
  const uint32_t before =
      OutputsBefore(item, requests_.at(item.request).prompt_tokens);
  const auto output = scheduler_->Output(item.request, sample);
  if (!output.ok()) return;
  for (size_t i = before; i < output->size(); ++i) {
    emitted_.push_back({item.request, sample, (*output)[i]});
  }
}

void ServingEngine::Propose() {
  const uint32_t most = scheduler_->options().max_draft_tokens;
  if (most == 0) return;
  for (size_t i = 0; i < emitted_.size(); ++i) {
    const EmittedToken& last = emitted_[i];
    const bool more = i + 1 < emitted_.size() &&
                      emitted_[i + 1].request == last.request &&
                      emitted_[i + 1].sample == last.sample;
    if (more) continue;
    const auto tokens = scheduler_->Tokens(last.request, last.sample);
    if (!tokens.ok()) continue;
    LookUpDraft(*tokens, most, &draft_);
    // One that has ended takes none, and needs none.
    scheduler_->Propose(last.request, last.sample, draft_).IgnoreError();
  }
}

std::optional<FinishedRequest> ServingEngine::TakeFinished() {
  std::optional<FinishedRequest> finished = scheduler_->TakeFinished();
  if (finished) requests_.erase(finished->id);
  return finished;
}

uint64_t ServingEngine::cache_bytes() const {
  const auto shape = cache_->options().groups[kAllLayers.value()].shape;
  const uint64_t pages = uint64_t{cache_->PoolBlocks(kAllLayers).value()} +
                         cache_->options().device.pages.value();
  return PageBytes(shape).value() * pages;
}

}  // namespace paged_kv::llm

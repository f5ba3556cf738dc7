// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/serving_stats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/serving/process_memory.h"
#include "benchmarks/tool/table.h"
#include "docs/examples/llm/engine/step_batch.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::tool {
namespace {

double Ratio(double part, double all) { return all > 0 ? part / all : 0; }

llm::StageTimes Difference(const llm::StageTimes& a, const llm::StageTimes& b) {
  return {a.embedding_s - b.embedding_s, a.linear_s - b.linear_s,
          a.attention_s - b.attention_s, a.output_s - b.output_s,
          a.other_s - b.other_s};
}

}  // namespace

double ServingStats::OutputTokensPerSecond() const {
  return Ratio(static_cast<double>(scheduler.output_tokens), wall_s);
}

uint64_t ServingStats::PartsBytes() const {
  return program_bytes + weight_bytes + peak_used_blocks * block_bytes +
         step_bytes;
}

double ServingStats::OverheadShare() const {
  return Ratio(engine.schedule_s + engine.tables_s, engine.Total());
}

double ServingStats::AcceptedShare() const {
  return Ratio(static_cast<double>(scheduler.accepted_tokens),
               static_cast<double>(scheduler.drafted_tokens));
}

ServingMeter::ServingMeter(const llm::ServingEngine* engine)
    : engine_(engine),
      forward_before_(engine->model().times()),
      begin_(std::chrono::steady_clock::now()) {}

ServingStats ServingMeter::Finish() const {
  ServingStats stats;
  stats.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_)
          .count();
  stats.engine = engine_->times();
  stats.forward = Difference(engine_->model().times(), forward_before_);
  stats.scheduler = engine_->scheduler().Stats();
  stats.cache = engine_->cache().Stats();
  const BlockShape& shape = engine_->cache().options().groups[0].shape;
  stats.peak_used_blocks = stats.cache.pools[0].peak_used.value();
  stats.block_bytes = PageBytes(shape).value();
  stats.pool_blocks = engine_->cache().PoolBlocks(llm::kAllLayers).value();
  stats.kv_bytes_per_token = BytesPerToken(shape).value();
  stats.weight_bytes = engine_->model().weight_bytes();
  stats.step_weight_bytes = engine_->model().step_weight_bytes();
  stats.step_bytes = engine_->step_bytes();
  stats.peak_process_bytes = PeakProcessBytes();
  return stats;
}

std::string BytesText(uint64_t bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
}

std::string ServingStatsText(const ServingStats& stats) {
  const double total = stats.engine.Total();
  const auto share = [&](double seconds) {
    return Percent(Ratio(seconds, total), 1);
  };
  std::string text = absl::StrFormat(
      "%s steps in %.3f s: %s output tokens, %.1f per second; %s tokens "
      "computed, %s of them again after preemption\n",
      Grouped(stats.engine.steps), stats.wall_s,
      Grouped(stats.scheduler.output_tokens), stats.OutputTokensPerSecond(),
      Grouped(stats.scheduler.computed_tokens),
      Grouped(stats.scheduler.recomputed_tokens));
  absl::StrAppend(&text, "time: linear layers ", share(stats.forward.linear_s),
                  ", logits ", share(stats.forward.output_s), ", attention ",
                  share(stats.forward.attention_s), ", norms and others ",
                  share(stats.forward.other_s + stats.forward.embedding_s),
                  ", sampling ",
                  share(stats.engine.sample_s + stats.engine.draft_s),
                  ", scheduler, manager and page tables ",
                  Percent(stats.OverheadShare(), 2), "\n");
  absl::StrAppend(
      &text, "cache: ", Grouped(stats.cache.hit_tokens), " of ",
      Grouped(stats.cache.prompt_tokens), " prompt tokens found; at most ",
      Grouped(stats.peak_used_blocks), " of ", Grouped(stats.pool_blocks),
      " blocks used, ", Grouped(stats.cache.blocks_evicted), " evicted, ",
      Grouped(stats.cache.blocks_copied), " copied on write; ",
      Grouped(stats.scheduler.preemptions), " preemptions, ",
      Grouped(stats.scheduler.swap_outs), " of them by swap\n");
  if (stats.scheduler.drafted_tokens > 0) {
    absl::StrAppend(
        &text, "speculation: ", Grouped(stats.scheduler.accepted_tokens),
        " of ", Grouped(stats.scheduler.drafted_tokens),
        " draft tokens right (", Percent(stats.AcceptedShare(), 1), "), ",
        Percent(Ratio(static_cast<double>(stats.scheduler.accepted_tokens),
                      static_cast<double>(stats.scheduler.output_tokens)),
                1),
        " of the output\n");
  }
  if (stats.beam_forks > 0) {
    absl::StrAppend(&text, "beam search: ", Grouped(stats.beam_forks),
                    " forks\n");
  }
  absl::StrAppend(
      &text, "memory: weights ", BytesText(stats.weight_bytes),
      ", KV cache at most ",
      BytesText(stats.peak_used_blocks * stats.block_bytes), " (",
      Grouped(stats.kv_bytes_per_token), " B per token), a step's values ",
      BytesText(stats.step_bytes), ", program ", BytesText(stats.program_bytes),
      "; peak of the process ", BytesText(stats.peak_process_bytes), ", ",
      Percent(Ratio(static_cast<double>(stats.peak_process_bytes),
                    static_cast<double>(stats.PartsBytes())) -
                  1,
              1),
      " above their sum\n", stats.card_text);
  return text;
}

nlohmann::ordered_json ServingStatsJson(const ServingStats& stats) {
  return {{"wall_s", stats.wall_s},
          {"steps", stats.engine.steps},
          {"output_tokens", stats.scheduler.output_tokens},
          {"output_tokens_per_s", stats.OutputTokensPerSecond()},
          {"computed_tokens", stats.scheduler.computed_tokens},
          {"recomputed_tokens", stats.scheduler.recomputed_tokens},
          {"seconds",
           {{"schedule", stats.engine.schedule_s},
            {"page_tables", stats.engine.tables_s},
            {"embedding", stats.forward.embedding_s},
            {"linear", stats.forward.linear_s},
            {"attention", stats.forward.attention_s},
            {"logits", stats.forward.output_s},
            {"other", stats.forward.other_s},
            {"sample", stats.engine.sample_s},
            {"draft", stats.engine.draft_s}}},
          {"overhead_share", stats.OverheadShare()},
          {"cache",
           {{"prompt_tokens", stats.cache.prompt_tokens},
            {"hit_tokens", stats.cache.hit_tokens},
            {"pool_blocks", stats.pool_blocks},
            {"peak_used_blocks", stats.peak_used_blocks},
            {"block_bytes", stats.block_bytes},
            {"blocks_evicted", stats.cache.blocks_evicted},
            {"blocks_copied", stats.cache.blocks_copied},
            {"kv_bytes_per_token", stats.kv_bytes_per_token}}},
          {"preemptions", stats.scheduler.preemptions},
          {"card", stats.card},
          {"swap_outs", stats.scheduler.swap_outs},
          {"pages_swapped_in", stats.scheduler.pages_in},
          {"pages_swapped_out", stats.scheduler.pages_out},
          {"speculation",
           {{"draft_tokens", stats.scheduler.drafted_tokens},
            {"accepted_tokens", stats.scheduler.accepted_tokens},
            {"accepted_share", stats.AcceptedShare()}}},
          {"beam_forks", stats.beam_forks},
          {"memory",
           {{"weight_bytes", stats.weight_bytes},
            {"step_weight_bytes", stats.step_weight_bytes},
            {"cache_peak_bytes", stats.peak_used_blocks * stats.block_bytes},
            {"step_bytes", stats.step_bytes},
            {"program_bytes", stats.program_bytes},
            {"parts_bytes", stats.PartsBytes()},
            {"process_peak_bytes", stats.peak_process_bytes}}}};
}

}  // namespace paged_kv::tool

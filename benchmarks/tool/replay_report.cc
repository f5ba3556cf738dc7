// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/replay_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

using nlohmann::ordered_json;

std::vector<absl::Duration> Arrivals(const Trace& trace) {
  std::vector<absl::Duration> arrivals;
  for (const Request& request : trace.requests) {
    arrivals.push_back(request.arrival);
  }
  return arrivals;
}

ordered_json SensitivityJson(const ReplaySummary& summary) {
  ordered_json rows = ordered_json::array();
  for (const SensitivityRow& row : summary.sensitivity) {
    rows.push_back({{"change", row.change},
                    {"effective_utilisation", row.effective_utilisation},
                    {"hit_rate", row.hit_rate},
                    {"preemptions", row.preemptions},
                    {"mean_running", row.mean_running},
                    {"simulated_seconds", row.simulated_seconds},
                    {"first_token_seconds_p50", row.first_token_seconds_p50}});
  }
  return rows;
}

ordered_json ModelJson(const StepTimeModel& model) {
  return {{"flops_per_second", model.flops_per_second},
          {"bytes_per_second", model.bytes_per_second},
          {"weights", model.weights},
          {"weight_bytes", model.weight_bytes},
          {"kv_bytes_per_token", model.kv_bytes_per_token},
          {"flops_per_query_and_key", model.flops_per_query_and_key}};
}

// Figures that only mean something with arrival times.
void AddServingJson(const Trace& trace, const ReplaySummary& summary,
                    ordered_json& json) {
  const ReplayResult& result = summary.result;
  const std::vector<absl::Duration> arrivals = Arrivals(trace);
  json["mean_running"] = result.usage.MeanRunning();
  json["peak_running"] = result.usage.peak_running();
  json["recomputed_tokens"] = result.recomputed_tokens;
  json["simulated_seconds"] = absl::ToDoubleSeconds(result.duration);
  json["first_token_seconds_p50"] = result.FirstTokenSeconds(0.5, arrivals);
  json["first_token_seconds_p99"] = result.FirstTokenSeconds(0.99, arrivals);
  json["max_running"] = summary.options.serving.max_running;
  json["step_tokens"] = summary.options.serving.step_tokens;
  json["step_time_model"] = ModelJson(summary.options.serving.model);
  json["sensitivity"] = SensitivityJson(summary);
}

std::string PoolText(const ReplaySummary& summary) {
  return absl::StrCat(Grouped(summary.pool_blocks), " blocks of ",
                      summary.options.block_tokens, " tokens",
                      summary.unbounded ? " (unbounded: never evicts)" : "");
}

void AppendLine(std::string* text, absl::string_view name,
                absl::string_view value) {
  absl::StrAppendFormat(text, "  %-24s %s\n", name, value);
}

std::string SensitivityText(const ReplaySummary& summary) {
  Table table({"step-time model", "utilisation", "hit rate", "preemptions",
               "mean running", "p50 first token", "duration"});
  for (const SensitivityRow& row : summary.sensitivity) {
    table.Add({row.change, Percent(row.effective_utilisation),
               Percent(row.hit_rate), Grouped(row.preemptions),
               absl::StrFormat("%.1f", row.mean_running),
               absl::StrFormat("%.2f s", row.first_token_seconds_p50),
               absl::StrFormat("%.0f s", row.simulated_seconds)});
  }
  return table.Text();
}

}  // namespace

ordered_json ReportHeader(const std::string& command, uint64_t seed,
                          const Trace& trace) {
  ordered_json json;
  json["schema_version"] = kJsonSchemaVersion;
  json["command"] = command;
  json["seed"] = seed;
  json["trace"] = trace.name;
  json["trace_format"] = std::string(TraceFormatName(trace.format));
  json["trace_sha256"] =
      trace.sha256.empty() ? ordered_json() : ordered_json(trace.sha256);
  json["skipped_lines"] = trace.skipped_lines;
  return json;
}

ordered_json WasteJson(const SlotShares& shares) {
  return {{"tail", shares.tail},
          {"lookahead", shares.lookahead},
          {"reserved", shares.reserved},
          {"duplicate", shares.duplicate}};
}

ordered_json ReplayJson(const Trace& trace, const ReplaySummary& summary,
                        uint64_t seed) {
  const ReplayResult& result = summary.result;
  const ReplayOptions& options = summary.options;
  ordered_json json = ReportHeader("replay", seed, trace);
  json["policy"] = std::string(PolicyName(options.policy));
  json["eviction"] = std::string(EvictionName(options.eviction));
  json["concurrency"] = std::string(ConcurrencyName(options.concurrency));
  json["block_tokens"] = options.block_tokens;
  json["pool_blocks"] = summary.pool_blocks;
  json["unbounded"] = summary.unbounded;
  json["requests_total"] = result.outcomes.size();
  json["requests_completed"] = result.Completed();
  json["requests_never_fits"] = result.NeverFits();
  json["prompt_tokens"] = result.prompt_tokens;
  json["hit_tokens"] = result.hit_tokens;
  json["hit_rate"] = result.HitRate();
  json["belady_hit_rate"] = summary.belady_hit_rate.has_value()
                                ? ordered_json(*summary.belady_hit_rate)
                                : ordered_json();
  json["final_tail_waste"] = result.FinalTailWaste();
  json["reserved_waste"] = result.FinalReservedWaste();
  json["waste"] = WasteJson(result.usage.SharesOfAllocated());
  json["effective_utilisation"] = result.usage.EffectiveUtilisation();
  json["peak_demand_blocks"] = summary.peak_demand_blocks;
  json["peak_held_blocks"] =
      (result.usage.peak_allocated() + options.block_tokens - 1) /
      options.block_tokens;
  json["evicted_blocks"] = result.evicted_blocks;
  json["preemptions"] = result.preemptions;
  json["steps"] = result.usage.steps();
  if (options.concurrency == Concurrency::kTrace) {
    AddServingJson(trace, summary, json);
  }
  return json;
}

std::string ReplayText(const Trace& trace, const ReplaySummary& summary) {
  const ReplayResult& result = summary.result;
  const ReplayOptions& options = summary.options;
  const SlotShares waste = result.usage.SharesOfAllocated();
  std::string text =
      absl::StrCat(trace.name, ": ", Grouped(result.outcomes.size()),
                   " requests, policy ", PolicyName(options.policy), ", ",
                   ConcurrencyName(options.concurrency), "\n");
  if (trace.skipped_lines > 0) {
    AppendLine(&text, "bad lines left out", Grouped(trace.skipped_lines));
  }
  AppendLine(&text, "pool", PoolText(summary));
  AppendLine(&text, "completed",
             absl::StrCat(Grouped(result.Completed()), ", ",
                          Grouped(result.NeverFits()), " never fit"));
  AppendLine(&text, "prompt tokens", Grouped(result.prompt_tokens));
  AppendLine(&text, "hit tokens",
             absl::StrCat(Grouped(result.hit_tokens), " (",
                          Percent(result.HitRate()), ")"));
  if (summary.belady_hit_rate.has_value()) {
    AppendLine(&text, "  Belady's optimum", Percent(*summary.belady_hit_rate));
  }
  AppendLine(&text, "peak demand",
             absl::StrCat(Grouped(summary.peak_demand_blocks), " blocks"));
  AppendLine(&text, "evicted blocks", Grouped(result.evicted_blocks));
  AppendLine(&text, "effective utilisation",
             Percent(result.usage.EffectiveUtilisation()));
  AppendLine(&text, "waste over time",
             absl::StrCat("tail ", Percent(waste.tail), ", reserved ",
                          Percent(waste.reserved), ", duplicate ",
                          Percent(waste.duplicate), ", lookahead ",
                          Percent(waste.lookahead)));
  AppendLine(&text, "waste at final length",
             absl::StrCat("tail ", Percent(result.FinalTailWaste()),
                          ", reserved ", Percent(result.FinalReservedWaste())));
  if (options.concurrency == Concurrency::kTrace) {
    AppendLine(&text, "requests at once",
               absl::StrFormat("%.1f on average, %d at most",
                               result.usage.MeanRunning(),
                               result.usage.peak_running()));
    AppendLine(&text, "preemptions",
               absl::StrCat(Grouped(result.preemptions), ", ",
                            Grouped(result.recomputed_tokens),
                            " tokens computed again"));
    if (!summary.sensitivity.empty()) {
      absl::StrAppend(&text, "\n", SensitivityText(summary));
    }
  }
  return text;
}

std::string ReplayCsv(const Trace& trace, const ReplaySummary& summary) {
  Table table({"request", "arrival_s", "prompt_tokens", "output_tokens",
               "completed", "hit_tokens", "final_live_slots",
               "final_tail_slots", "final_reserved_slots", "preemptions",
               "admitted_s", "first_token_s", "finished_s"});
  const auto seconds = [](absl::Duration d) {
    return absl::StrFormat("%.6f", absl::ToDoubleSeconds(d));
  };
  for (size_t i = 0; i < trace.requests.size(); ++i) {
    const Request& request = trace.requests[i];
    const RequestOutcome& o = summary.result.outcomes[i];
    std::vector<std::string> row = {absl::StrCat(i),
                                    seconds(request.arrival),
                                    absl::StrCat(request.prompt_tokens),
                                    absl::StrCat(request.output_tokens),
                                    o.completed ? "1" : "0",
                                    absl::StrCat(o.hit_tokens),
                                    absl::StrCat(o.final_slots.live),
                                    absl::StrCat(o.final_slots.tail),
                                    absl::StrCat(o.final_slots.reserved),
                                    absl::StrCat(o.preemptions)};
    for (const absl::Duration d : {o.admitted, o.first_token, o.finished}) {
      row.push_back(o.completed ? seconds(d) : "");
    }
    table.Add(std::move(row));
  }
  return table.Csv();
}

}  // namespace paged_kv::tool

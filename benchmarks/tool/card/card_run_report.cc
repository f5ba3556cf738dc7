// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_run_report.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

double Ms(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

std::vector<std::pair<const char*, absl::Duration>> Parts(
    const StepShares& shares) {
  return {{"sync", shares.sync},     {"launch", shares.launch},
          {"memory", shares.memory}, {"arithmetic", shares.arithmetic},
          {"stream", shares.stream}, {"host", shares.host}};
}

}  // namespace

std::string CardRunText(const CardRun& run) {
  const CardCase& c = run.card_case;
  std::string text = absl::StrFormat(
      "decode    %u x %s tokens, %u layers, %u/%u heads of %u, blocks of %u; "
      "%.0f %% of the blocks on the card\n"
      "mode      %s%s\n"
      "hand-off  %.1f MB in %.2f ms of the link, %s of it hidden by %.0f ms of "
      "prefill\n"
      "step      %.3f ms, %.2fx its bound of %.3f ms; predicted %.3f ms\n",
      c.batch, Grouped(c.context), c.shape.layers, c.query_heads,
      c.shape.kv_heads, c.shape.head_dim, c.shape.block_tokens,
      100 * c.resident, std::string(CardModeName(run.mode)),
      c.mode == CardMode::kAuto ? ", chosen by what it should take" : "",
      static_cast<double>(run.hand_off.bytes) / 1e6,
      Ms(run.hand_off.upload_busy), Percent(run.hand_off.Hidden(), 1),
      Ms(run.hand_off.prefill), Ms(run.step_time), run.bound_ratio,
      Ms(run.bound), Ms(run.predicted));
  absl::StrAppendFormat(
      &text,
      "error     %.1e at most, against the host's kernel over all pages\n"
      "banks     the busiest reads %s more than the mean\n\n",
      run.max_error, Percent(run.bank_imbalance, 1));
  Table table({"a step's time", "ms", "share"});
  for (const auto& [name, time] : Parts(run.shares)) {
    table.Add({name, absl::StrFormat("%.3f", Ms(time)),
               Percent(absl::FDivDuration(time, run.step_time), 1)});
  }
  absl::StrAppend(&text, table.Text());
  return text;
}

nlohmann::ordered_json CardRunJson(const CardRun& run) {
  const CardCase& c = run.card_case;
  nlohmann::ordered_json json = {
      {"batch", c.batch},
      {"context", c.context},
      {"layers", c.shape.layers},
      {"query_heads", c.query_heads},
      {"kv_heads", c.shape.kv_heads},
      {"head_dim", c.shape.head_dim},
      {"block_tokens", c.shape.block_tokens},
      {"resident", c.resident},
      {"host_bytes_per_second", c.host_bytes_per_second},
      {"prefill_flops", c.prefill_flops},
      {"asked_mode", std::string(CardModeName(c.mode))},
      {"mode", std::string(CardModeName(run.mode))},
      {"steps", run.steps.size()},
      {"kv_bytes", c.KvBytes()},
      {"handoff_bytes", run.hand_off.bytes},
      {"handoff_hidden", run.hand_off.Hidden()},
      {"handoff_upload_ms", Ms(run.hand_off.upload_busy)},
      {"prefill_ms", Ms(run.hand_off.prefill)},
      {"step_ms", Ms(run.step_time)},
      {"bound_ms", Ms(run.bound)},
      {"predicted_ms", Ms(run.predicted)},
      {"bound_ratio", run.bound_ratio},
      {"max_error", run.max_error},
      {"bank_imbalance", run.bank_imbalance}};
  for (const auto& [name, time] : Parts(run.shares)) {
    json["shares_ms"][name] = Ms(time);
  }
  for (const CardStep& step : run.steps) {
    json["steps_ms"].push_back(Ms(step.time));
  }
  json["kv_read_per_bank"] = run.steps.back().traffic.kv_read;
  return json;
}

}  // namespace paged_kv::tool

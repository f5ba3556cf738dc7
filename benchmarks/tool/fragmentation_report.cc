// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/fragmentation.h"
#include "benchmarks/tool/replay_report.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

using nlohmann::ordered_json;

std::string BlockName(const FragmentationRow& row) {
  return row.block_tokens == 0 ? "-" : absl::StrCat(row.block_tokens);
}

}  // namespace

std::string DescribeFragmentation(const Trace& trace,
                                  const FragmentationOptions& options) {
  return absl::StrFormat(
      "%s requests of %s, %.4g GiB of KV memory (%s tokens of Qwen2.5-7B)",
      Grouped(trace.requests.size()), trace.short_name(), options.memory_gib,
      Grouped(options.capacity_slots()));
}

std::string FragmentationText(const Trace& trace,
                              const FragmentationOptions& options,
                              const std::vector<FragmentationRow>& rows) {
  Table table({"policy", "block", "at once", "peak", "live", "tail", "reserved",
               "duplicate", "allocated", "hit rate", "preemptions",
               "never fit"});
  for (const FragmentationRow& row : rows) {
    const SlotShares& s = row.of_allocated;
    table.Add({std::string(PolicyName(row.policy)), BlockName(row),
               absl::StrFormat("%.1f", row.mean_running),
               absl::StrCat(row.peak_running), Percent(s.live), Percent(s.tail),
               Percent(s.reserved), Percent(s.duplicate),
               Percent(row.of_capacity.Allocated()), Percent(row.hit_rate),
               Grouped(row.preemptions), Grouped(row.never_fits)});
  }
  return absl::StrCat(
      DescribeFragmentation(trace, options), ", all waiting from the start.\n",
      "at once: requests running while others wait. live, tail, reserved, "
      "duplicate: shares of\nthe allocated slots then. allocated: share of "
      "the memory; the rest is cached or free.\n\n",
      table.Text());
}

std::string FragmentationCsv(const std::vector<FragmentationRow>& rows) {
  Table table({"policy", "block_tokens", "mean_running", "peak_running", "live",
               "tail", "lookahead", "reserved", "duplicate", "capacity_live",
               "capacity_cached", "capacity_free", "hit_rate", "preemptions",
               "never_fits", "simulated_seconds"});
  const auto number = [](double x) { return absl::StrFormat("%.9g", x); };
  for (const FragmentationRow& row : rows) {
    const SlotShares& s = row.of_allocated;
    const SlotShares& c = row.of_capacity;
    table.Add({std::string(PolicyName(row.policy)),
               row.block_tokens == 0 ? "" : absl::StrCat(row.block_tokens),
               number(row.mean_running), absl::StrCat(row.peak_running),
               number(s.live), number(s.tail), number(s.lookahead),
               number(s.reserved), number(s.duplicate), number(c.live),
               number(c.cached), number(c.free), number(row.hit_rate),
               absl::StrCat(row.preemptions), absl::StrCat(row.never_fits),
               number(row.simulated_seconds)});
  }
  return table.Csv();
}

ordered_json FragmentationJson(const Trace& trace,
                               const FragmentationOptions& options,
                               const std::vector<FragmentationRow>& rows,
                               uint64_t seed) {
  ordered_json json = ReportHeader("fragmentation", seed, trace);
  json["requests_total"] = trace.requests.size();
  json["memory_gib"] = options.memory_gib;
  json["capacity_slots"] = options.capacity_slots();
  json["rows"] = ordered_json::array();
  for (const FragmentationRow& row : rows) {
    ordered_json r;
    r["policy"] = std::string(PolicyName(row.policy));
    r["block_tokens"] =
        row.block_tokens == 0 ? ordered_json() : ordered_json(row.block_tokens);
    r["mean_running"] = row.mean_running;
    r["peak_running"] = row.peak_running;
    r["effective_utilisation"] = row.of_allocated.live;
    r["waste"] = WasteJson(row.of_allocated);
    r["capacity"] = {{"allocated", row.of_capacity.Allocated()},
                     {"cached", row.of_capacity.cached},
                     {"free", row.of_capacity.free}};
    r["hit_rate"] = row.hit_rate;
    r["preemptions"] = row.preemptions;
    r["requests_never_fits"] = row.never_fits;
    r["simulated_seconds"] = row.simulated_seconds;
    json["rows"].push_back(std::move(r));
  }
  return json;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/stress_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

using nlohmann::ordered_json;
using testing::Operation;

double Share(const StressResult::Count& count) {
  return count.operations == 0 ? 0
                               : static_cast<double>(count.granted) /
                                     static_cast<double>(count.operations);
}

}  // namespace

std::string StressAgain(const StressOptions& options,
                        const StressResult& result) {
  return absl::StrCat(
      "pagedkv stress --seed=", options.seed,
      " --first_round=", result.violation_round, " --ops=", kStressRound,
      " --pool_blocks=", options.pool_blocks,
      options.threads > 1 ? absl::StrCat(" --threads=", options.threads) : "");
}

ordered_json StressJson(const StressOptions& options,
                        const StressResult& result,
                        const std::string& log_path) {
  ordered_json json = {{"schema_version", kJsonSchemaVersion},
                       {"command", "stress"},
                       {"seed", options.seed},
                       {"threads", options.threads},
                       {"pool_blocks", options.pool_blocks},
                       {"first_round", options.first_round},
                       {"rounds", result.rounds},
                       {"operations", result.operations},
                       {"granted", result.granted},
                       {"success_share", result.SuccessShare()},
                       {"calls_compared", result.calls},
                       {"seconds", result.seconds},
                       {"violations", result.violations}};
  ordered_json kinds = ordered_json::object();
  for (uint32_t i = 0; i < testing::kOperationKinds; ++i) {
    const StressResult::Count& count = result.by_kind[i];
    kinds[testing::KindName(static_cast<Operation::Kind>(i))] = {
        {"operations", count.operations}, {"granted", count.granted}};
  }
  json["by_kind"] = std::move(kinds);
  if (result.violations > 0) {
    json["violation"] = {{"what", result.violation},
                         {"cache", result.cache},
                         {"round", result.violation_round},
                         {"again", StressAgain(options, result)}};
    if (!log_path.empty()) json["violation"]["log"] = log_path;
  }
  return json;
}

std::string StressText(const StressOptions& options, const StressResult& result,
                       const std::string& log_path) {
  Table table({"operation", "count", "granted", "share"});
  for (uint32_t i = 0; i < testing::kOperationKinds; ++i) {
    const StressResult::Count& count = result.by_kind[i];
    if (count.operations == 0) continue;
    table.Add({testing::KindName(static_cast<Operation::Kind>(i)),
               Grouped(count.operations), Grouped(count.granted),
               Percent(Share(count), 1)});
  }
  table.Add({"all", Grouped(result.operations), Grouped(result.granted),
             Percent(result.SuccessShare(), 1)});
  std::string text = absl::StrCat(table.Text(), "\n");
  absl::StrAppendFormat(
      &text,
      "seed %d, %d thread(s), pools of %d blocks, %d caches, %s calls compared "
      "with the model, %.1f s\n",
      options.seed, options.threads, options.pool_blocks, result.rounds,
      Grouped(result.calls), result.seconds);
  if (result.violations > 0) {
    absl::StrAppend(&text, "\nviolation: ", result.violation,
                    "\non a cache of kind: ", result.cache,
                    "\nagain:     ", StressAgain(options, result), "\n");
    if (!log_path.empty()) {
      absl::StrAppend(&text, "its log:   pagedkv stress --replay=", log_path,
                      "\n");
    }
  }
  absl::StrAppend(&text, "violations: ", result.violations, "\n");
  return text;
}

}  // namespace paged_kv::tool

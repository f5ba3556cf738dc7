// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/kernels/attention_report.h"
#include "benchmarks/tool/kernels/machine.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

constexpr double kMicro = 1e6;
constexpr double kGiga = 1e-9;

// Three digits or more.
std::string Figure(double value) {
  const double size = std::abs(value);
  if (size >= 1000) return Grouped(static_cast<uint64_t>(std::llround(size)));
  return absl::StrFormat("%.*f", size >= 100 ? 0 : size >= 10 ? 1 : 2, value);
}

std::string Share(double share) { return Percent(share, 1); }

std::string Rounds(const RoundCount& rounds) {
  return absl::StrCat(rounds.counted, " of ", rounds.total,
                      rounds.disturbed ? " (!)" : "");
}

std::string BoundName(const AttentionResult& r) {
  return r.BoundByMemory() ? "stream" : PeakName(r.peak_name);
}

std::string Heading(const AttentionResult& r) {
  const AttentionCase& c = r.attention_case;
  const BlockShape& shape = c.shape;
  return absl::StrFormat(
      "Paged %s: %d query / %d KV heads of %d, %s, blocks of %d tokens, K %s\n"
      "%s, %s, %d thread%s\n",
      c.prefill ? "prefill" : "decode", c.query_heads, shape.kv_heads,
      shape.head_dim, DTypeName(shape.dtype), shape.block_tokens,
      c.k_order == KOrder::kTiled16 ? "tiled" : "plain", ProcessorName(),
      attention::IsaName(r.isa), r.threads, r.threads == 1 ? "" : "s");
}

// One row per case: the kernel.
std::string KernelTable(const std::vector<AttentionResult>& results) {
  const bool prefill = results.front().attention_case.prefill;
  const bool appended = results.front().appended;
  std::vector<std::string> headings = {
      prefill ? "new over cached" : "batch x context",
      prefill ? "step ms" : "step us",
      "min",
      "p90",
      "tokens/s",
      prefill ? "GFLOP/s" : "GB/s",
      "of gather",
      "of stream",
      "of peak",
      "of bound",
      "max error",
      "rounds"};
  // Prefill also shows the kinds of multiply-add below the highest peak.
  const auto is_lower_peak = [&](const PeakRate& peak) {
    return prefill && peak.name != results.front().peak_name;
  };
  for (const PeakRate& peak : results.front().peaks) {
    if (is_lower_peak(peak)) headings.push_back("of " + PeakName(peak.name));
  }
  if (appended) {
    headings.push_back("append us");
    headings.push_back("of attention");
  }
  Table table(headings);
  for (const AttentionResult& r : results) {
    const double unit = prefill ? 1e3 : kMicro;
    std::vector<std::string> row = {
        r.attention_case.name,
        Figure(unit * r.step.median),
        Figure(unit * r.step.min),
        Figure(unit * r.step.p90),
        Figure(r.TokensPerSecond()),
        Figure(kGiga * (prefill ? r.FlopRate() : r.ReadRate())),
        Share(r.ShareOfGather()),
        Share(r.ShareOfStream()),
        Share(r.ShareOfPeak()),
        Share(r.ShareOfBound()),
        absl::StrFormat("%.1e", r.error.max_error),
        Rounds(r.rounds)};
    for (const PeakRate& peak : r.peaks) {
      if (is_lower_peak(peak)) row.push_back(Share(r.FlopRate() / peak.rate));
    }
    if (appended) {
      row.push_back(Figure(kMicro * r.append_seconds));
      row.push_back(Share(r.append_seconds / r.step.median));
    }
    table.Add(std::move(row));
  }
  return table.Text();
}

// One row per case: what bounds it.
std::string RoofTable(const std::vector<AttentionResult>& results) {
  Table table({"bounds, GB/s", "gather", "ahead", "stream", "ways",
               "GFLOP/s peak", "flop/byte", "peak as GB/s", "bound by",
               "KV MiB", "distinct", "layers"});
  for (const AttentionResult& r : results) {
    const AttentionCase& c = r.attention_case;
    table.Add(
        {c.name, Figure(kGiga * r.gather_rate),
         r.gather_ahead_bytes == 0
             ? "none"
             : absl::StrFormat("%.3g KiB", 0x1p-10 * static_cast<double>(
                                                         r.gather_ahead_bytes)),
         Figure(kGiga * r.stream_rate), absl::StrCat("x", r.streams),
         Figure(kGiga * r.peak_rate), Figure(r.FlopsPerByte()),
         Figure(kGiga * r.CeilingRate()), BoundName(r),
         Figure(0x1p-20 * c.KvBytes()), Figure(0x1p-20 * c.DistinctKvBytes()),
         absl::StrCat(c.shape.layers)});
  }
  return table.Text();
}

std::string Notes(const std::vector<AttentionResult>& results) {
  const AttentionResult& r = results.front();
  std::string text =
      "A step is the attention of one layer for the whole batch.\nPeaks, "
      "GFLOP/s: ";
  for (const PeakRate& peak : r.peaks) {
    absl::StrAppend(&text, &peak == r.peaks.data() ? "" : ", ",
                    PeakName(peak.name), " ", Figure(kGiga * peak.rate));
  }
  absl::StrAppend(&text,
                  "; the bound is the lower one of stream and the highest "
                  "peak.\n");
  if (r.huge_share >= 0) {
    absl::StrAppend(&text, "K/V: ", Figure(0x1p-30 * r.pool_bytes), " GiB, ",
                    Percent(r.huge_share, 0), " of it in huge pages.\n");
  }
  const bool disturbed = std::any_of(
      results.begin(), results.end(),
      [](const AttentionResult& result) { return result.rounds.disturbed; });
  if (disturbed) {
    absl::StrAppend(&text,
                    "(!) in most rounds the threads ran less than 97 % of the "
                    "time, because of other\nprograms or for want of work; "
                    "all rounds count.\n");
  }
  return text;
}

std::string ErrorVerdict(const std::vector<AttentionResult>& results) {
  std::string text;
  for (const AttentionResult& r : results) {
    if (r.error.within_limits) continue;
    const ErrorLimits limits = LimitsFor(r.attention_case.shape.dtype);
    absl::StrAppendFormat(
        &text,
        "%s: outputs differ from the reference by up to %.3e, more than %.0e "
        "and %.0e of their size\n",
        r.attention_case.name, r.error.max_error, limits.absolute,
        limits.relative);
  }
  return text;
}

}  // namespace

std::string PeakName(absl::string_view name) {
  if (name == "f32_fma") return "f32 FMA";
  return name == "bf16_dot" ? "bf16 dot" : "bf16 tiles";
}

std::string AttentionText(const std::vector<AttentionResult>& results) {
  return absl::StrCat(Heading(results.front()), "\n", KernelTable(results),
                      "\n", RoofTable(results), "\n", Notes(results),
                      ErrorVerdict(results));
}

}  // namespace paged_kv::tool

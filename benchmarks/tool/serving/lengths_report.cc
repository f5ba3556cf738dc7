// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/serving/lengths.h"
#include "benchmarks/tool/serving/serving_stats.h"
#include "benchmarks/tool/table.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::tool {
namespace {

// The rows by batch size, in the order of their first ones.
std::vector<uint32_t> BatchSizes(const std::vector<LengthsRow>& rows) {
  std::vector<uint32_t> sizes;
  for (const LengthsRow& row : rows) {
    if (std::find(sizes.begin(), sizes.end(), row.length.batch) ==
        sizes.end()) {
      sizes.push_back(row.length.batch);
    }
  }
  return sizes;
}

std::string Milliseconds(double seconds) {
  return absl::StrFormat("%.3g", 1e3 * seconds);
}

// Share of the least time in which these threads could read what a decode step
// reads.
double ShareOfBound(const LengthsResult& result, const LengthsRow& row) {
  const double bound =
      static_cast<double>(row.step_read_bytes) / result.stream_rate;
  return row.DecodeStepSeconds() > 0 ? bound / row.DecodeStepSeconds() : 0;
}

std::string MainTable(const LengthsResult& result) {
  Table table({"prompt", "tokens", "batch", "prefill s", "prompt tokens/s",
               "decode ms/step", "tokens/s", "K/V MB", "read MB/step",
               "of bound"});
  for (const LengthsRow& row : result.rows) {
    const double prompt = static_cast<double>(row.PromptTokens()) *
                          static_cast<double>(row.length.batch);
    const double step = row.DecodeStepSeconds();
    table.Add(
        {row.length.name, Grouped(row.PromptTokens()),
         absl::StrCat(row.length.batch),
         absl::StrFormat("%.3f", row.prefill.wall_s),
         absl::StrFormat("%.0f", prompt / row.prefill.wall_s),
         Milliseconds(step),
         step > 0 ? absl::StrFormat("%.1f", row.length.batch / step) : "-",
         absl::StrFormat("%.1f", 1e-6 * static_cast<double>(row.kv_bytes)),
         absl::StrFormat("%.1f",
                         1e-6 * static_cast<double>(row.step_read_bytes)),
         step > 0 ? Percent(ShareOfBound(result, row), 0) : "-"});
  }
  return table.Text();
}

// Where the time goes, in milliseconds: of the prefill, and of a decode step.
std::string StageTable(const LengthsResult& result) {
  Table table({"prompt", "batch", "phase", "tokenize", "manager", "tables",
               "embed", "linear", "attention", "logits", "other", "sample",
               "detokenize"});
  const auto add = [&](const LengthsRow& row, const char* name,
                       const PhaseTimes& phase, double steps, double tokenize,
                       double detokenize) {
    const auto ms = [&](double seconds) {
      return Milliseconds(seconds / steps);
    };
    table.Add({row.length.name, absl::StrCat(row.length.batch), name,
               ms(tokenize), ms(phase.manager_s), ms(phase.tables_s),
               ms(phase.forward.embedding_s), ms(phase.forward.linear_s),
               ms(phase.forward.attention_s), ms(phase.forward.output_s),
               ms(phase.forward.other_s), ms(phase.sample_s), ms(detokenize)});
  };
  for (const LengthsRow& row : result.rows) {
    add(row, "prefill", row.prefill, 1, row.length.tokenize_s, 0);
    if (row.output_tokens < 2) continue;
    add(row, "decode step", row.decode, row.output_tokens - 1, 0,
        row.detokenize_s);
  }
  return table.Text();
}

// Decode attention in the engine and by the kernel alone; empty if not asked
// for.
std::string KernelTable(const LengthsResult& result) {
  Table table({"prompt", "batch", "K/V MB/step", "engine GB/s", "of stream",
               "kernel GB/s", "of stream", "engine of kernel"});
  bool any = false;
  for (const LengthsRow& row : result.rows) {
    if (row.kernel.empty()) continue;
    any = true;
    const double engine = row.kernel.EngineRate();
    const double alone = row.kernel.AloneRate();
    table.Add({row.length.name, absl::StrCat(row.length.batch),
               absl::StrFormat("%.1f", 1e-6 * row.kernel.engine_bytes),
               absl::StrFormat("%.2f", 1e-9 * engine),
               Percent(engine / result.stream_rate, 0),
               absl::StrFormat("%.2f", 1e-9 * alone),
               Percent(alone / result.stream_rate, 0),
               absl::StrFormat("%.2f", engine / alone)});
  }
  if (!any) return "";
  return absl::StrCat(
      "Decode attention, in the engine and by the kernel alone (as `pagedkv "
      "decode`\nmeasures it, a turn after each step; medians):\n\n",
      table.Text(), "\n");
}

// " + 0.5", " - 0.5".
std::string Term(double coefficient) {
  return absl::StrFormat(" %c %.3g", coefficient < 0 ? '-' : '+',
                         std::abs(coefficient));
}

std::string FitText(const LengthsFit& fit) {
  std::string text;
  if (fit.prefill) {
    const auto& c = fit.prefill->coefficients;
    absl::StrAppendFormat(
        &text,
        "batch %d: prefill s = %.3g%s n%s n^2, R^2 %.5f; the n^2 term is %s at "
        "%.0f tokens\n",
        fit.batch, c[0], Term(c[1]), Term(c[2]), fit.prefill->r_squared,
        Percent(fit.prefill->Share(2, fit.longest), 0), fit.longest);
  }
  if (fit.decode) {
    const auto& c = fit.decode->coefficients;
    absl::StrAppendFormat(
        &text, "batch %d: decode ms per step = %.3g%s n, R^2 %.5f\n", fit.batch,
        1e3 * c[0], Term(1e3 * c[1]), fit.decode->r_squared);
  }
  return text;
}

nlohmann::ordered_json FitJson(const absl::optional<Polynomial>& fit) {
  if (!fit) return nullptr;
  return {{"coefficients", fit->coefficients}, {"r_squared", fit->r_squared}};
}

nlohmann::ordered_json KernelJson(const LengthsResult& result,
                                  const LengthsRow& row) {
  if (row.kernel.empty()) return nullptr;
  const double engine = row.kernel.EngineRate();
  const double alone = row.kernel.AloneRate();
  return {{"engine_bytes_per_s", engine},
          {"engine_share_of_stream", engine / result.stream_rate},
          {"kernel_bytes_per_s", alone},
          {"kernel_share_of_stream", alone / result.stream_rate},
          {"engine_of_kernel", engine / alone}};
}

nlohmann::ordered_json PhaseJson(const PhaseTimes& phase) {
  return {{"wall_s", phase.wall_s},
          {"manager_s", phase.manager_s},
          {"page_tables_s", phase.tables_s},
          {"embedding_s", phase.forward.embedding_s},
          {"linear_s", phase.forward.linear_s},
          {"attention_s", phase.forward.attention_s},
          {"logits_s", phase.forward.output_s},
          {"other_s", phase.forward.other_s},
          {"sample_s", phase.sample_s}};
}

}  // namespace

std::vector<LengthsFit> FitLengths(const std::vector<LengthsRow>& rows) {
  std::vector<LengthsFit> fits;
  for (const uint32_t batch : BatchSizes(rows)) {
    LengthsFit fit;
    fit.batch = batch;
    std::vector<double> n, prefill, decode;
    for (const LengthsRow& row : rows) {
      if (row.length.batch != batch) continue;
      n.push_back(static_cast<double>(row.PromptTokens()));
      prefill.push_back(row.prefill.wall_s);
      decode.push_back(row.DecodeStepSeconds());
      fit.longest = std::max(fit.longest, n.back());
    }
    // Three points lie on a parabola whatever they are.
    if (n.size() > 3) fit.prefill = FitPolynomial(n, prefill, 2);
    if (n.size() > 2) fit.decode = FitPolynomial(n, decode, 1);
    fits.push_back(std::move(fit));
  }
  return fits;
}

std::string LengthsText(const LengthsResult& result) {
  std::string text = absl::StrFormat(
      "%s: %s of weights, %s B of K/V per token; memory is read at %.1f GB/s "
      "at "
      "best\n\n",
      result.model, BytesText(result.weight_bytes),
      Grouped(result.kv_bytes_per_token), 1e-9 * result.stream_rate);
  if (result.rows.empty()) return text + "(interrupted)\n";
  absl::StrAppend(
      &text, MainTable(result),
      "\nof bound: the time in which the weights and the K/V of a step could "
      "be "
      "read, of\nthe time that it takes.\n\nWhere the time goes, in "
      "milliseconds:\n\n",
      StageTable(result), "\n", KernelTable(result));
  for (const LengthsFit& fit : FitLengths(result.rows)) {
    absl::StrAppend(&text, FitText(fit));
  }
  if (result.interrupted) absl::StrAppend(&text, "(interrupted)\n");
  return text;
}

nlohmann::ordered_json LengthsJson(const LengthsResult& result, uint64_t seed) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const LengthsRow& row : result.rows) {
    rows.push_back({{"prompt", row.length.name},
                    {"prompt_tokens", row.PromptTokens()},
                    {"batch", row.length.batch},
                    {"output_tokens", row.output_tokens},
                    {"tokenize_s", row.length.tokenize_s},
                    {"prefill", PhaseJson(row.prefill)},
                    {"decode", PhaseJson(row.decode)},
                    {"decode_step_s", row.DecodeStepSeconds()},
                    {"detokenize_s", row.detokenize_s},
                    {"kv_bytes", row.kv_bytes},
                    {"step_read_bytes", row.step_read_bytes},
                    {"share_of_bound", ShareOfBound(result, row)},
                    {"attention", KernelJson(result, row)}});
  }
  nlohmann::ordered_json fits = nlohmann::ordered_json::array();
  for (const LengthsFit& fit : FitLengths(result.rows)) {
    fits.push_back({{"batch", fit.batch},
                    {"prefill_s", FitJson(fit.prefill)},
                    {"square_share_at_longest",
                     fit.prefill ? fit.prefill->Share(2, fit.longest) : 0},
                    {"decode_step_s", FitJson(fit.decode)}});
  }
  return {{"schema_version", kJsonSchemaVersion},
          {"command", "lengths"},
          {"model", result.model},
          {"model_file", result.model_file},
          {"seed", seed},
          {"layers", result.config.layers},
          {"kv_bytes_per_token", result.kv_bytes_per_token},
          {"weight_bytes", result.weight_bytes},
          {"stream_bytes_per_s", result.stream_rate},
          {"interrupted", result.interrupted},
          {"rows", rows},
          {"fits", fits}};
}

}  // namespace paged_kv::tool

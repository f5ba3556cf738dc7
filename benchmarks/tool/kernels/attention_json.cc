// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "benchmarks/tool/command.h"
#include "benchmarks/tool/kernels/attention_report.h"
#include "benchmarks/tool/kernels/machine.h"

namespace paged_kv::tool {
namespace {

using nlohmann::ordered_json;

// A count, so that it is printed without a point.
uint64_t Whole(double count) { return static_cast<uint64_t>(count); }

ordered_json RoundsJson(const RoundCount& rounds) {
  return {{"counted", rounds.counted},
          {"total", rounds.total},
          {"disturbed", rounds.disturbed}};
}

ordered_json PeaksJson(const AttentionResult& r) {
  ordered_json peaks = ordered_json::object();
  for (const PeakRate& peak : r.peaks) {
    peaks[peak.name] = {{"flops_per_second", peak.rate},
                        {"share", r.FlopRate() / peak.rate}};
  }
  return peaks;
}

ordered_json BoundJson(const AttentionResult& r) {
  return {{"roof", r.BoundByMemory() ? "stream" : "peak"},
          {"bytes_per_second", r.BoundRate()},
          {"seconds", r.attention_case.DistinctKvBytes() / r.BoundRate()}};
}

ordered_json ErrorJson(const AttentionResult& r) {
  const ErrorLimits limits = LimitsFor(r.attention_case.shape.dtype);
  return {{"samples", r.error.samples},
          {"outputs", r.error.outputs},
          {"max_reference", r.error.max_reference},
          {"limit_absolute", limits.absolute},
          {"limit_relative", limits.relative},
          {"within_limits", r.error.within_limits}};
}

ordered_json RowJson(const AttentionResult& r) {
  const AttentionCase& c = r.attention_case;
  ordered_json json = {
      {"name", c.name},
      {"batch", c.tokens.size()},
      {"max_tokens", c.MaxTokens()},
      {"queries", c.TotalQueries()},
      {"shared_prefix_tokens", c.SharedBlocks() * c.shape.block_tokens},
      {"layers", c.shape.layers},
      {"pages", c.NumPages()},
      {"pool_bytes", Whole(r.pool_bytes)},
      {"share_of_stream", r.ShareOfStream()},
      {"share_of_gather", r.ShareOfGather()},
      {"share_of_peak", r.ShareOfPeak()},
      {"share_of_bound", r.ShareOfBound()},
      {"kv_bytes", Whole(c.KvBytes())},
      {"distinct_kv_bytes", Whole(c.DistinctKvBytes())},
      {"flops", Whole(c.Flops())},
      {"flops_per_byte", r.FlopsPerByte()},
      {"step_seconds",
       {{"min", r.step.min}, {"median", r.step.median}, {"p90", r.step.p90}}},
      {"plan_seconds", r.plan_seconds},
      {"tokens_per_second", r.TokensPerSecond()},
      {"bytes_per_second", r.ReadRate()},
      {"flops_per_second", r.FlopRate()},
      {"stream_bytes_per_second", r.stream_rate},
      {"streams", r.streams},
      {"stream_ahead_bytes", r.stream_ahead_bytes},
      {"gather_bytes_per_second", r.gather_rate},
      {"gather_ahead_bytes", r.gather_ahead_bytes},
      {"peak_flops_per_second", r.peak_rate},
      {"peak", r.peak_name},
      {"peaks", PeaksJson(r)},
      {"arithmetic_ceiling_bytes_per_second", r.CeilingRate()},
      {"bound", BoundJson(r)},
      {"max_error", r.error.max_error},
      {"error", ErrorJson(r)},
      {"rounds",
       {{"kernel", RoundsJson(r.rounds)},
        {"gather", RoundsJson(r.gather_rounds)},
        {"stream", RoundsJson(r.stream_rounds)},
        {"peak", RoundsJson(r.peak_rounds)}}}};
  if (r.huge_share >= 0) json["huge_page_share"] = r.huge_share;
  if (r.appended) {
    json["append_seconds"] = r.append_seconds;
    json["append_share_of_attention"] = r.append_seconds / r.step.median;
  }
  return json;
}

}  // namespace

ordered_json AttentionJson(const std::vector<AttentionResult>& results,
                           uint64_t seed) {
  const AttentionResult& first = results.front();
  const AttentionCase& c = first.attention_case;
  ordered_json json = {
      {"schema_version", kJsonSchemaVersion},
      {"command", c.prefill ? "prefill" : "decode"},
      {"seed", seed},
      {"trace_sha256", c.trace_sha256.empty() ? ordered_json(nullptr)
                                              : ordered_json(c.trace_sha256)},
      {"machine",
       {{"processor", ProcessorName()},
        {"isa", attention::IsaName(first.isa)},
        {"threads", first.threads}}},
      {"query_heads", c.query_heads},
      {"kv_heads", c.shape.kv_heads},
      {"head_dim", c.shape.head_dim},
      {"dtype", DTypeName(c.shape.dtype)},
      {"block_tokens", c.shape.block_tokens},
      {"k_order", c.k_order == KOrder::kTiled16 ? "tiled" : "plain"}};
  if (results.size() == 1) {
    json.update(RowJson(first));
    return json;
  }
  json["rows"] = ordered_json::array();
  for (const AttentionResult& r : results) json["rows"].push_back(RowJson(r));
  return json;
}

}  // namespace paged_kv::tool

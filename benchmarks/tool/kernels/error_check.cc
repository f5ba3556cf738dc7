// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/error_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/reference_attention.h"
#include "benchmarks/tool/random.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using attention::AttentionInputs;
using attention::KvPages;

// Keys that the reference reads over all samples, about: some tenths of a
// second.
constexpr int64_t kReferenceKeys = int64_t{1} << 18;
constexpr int64_t kMinSamples = 2;
constexpr int64_t kMaxSamples = 12;

struct Sample {
  uint32_t layer = 0;
  size_t sequence = 0;
  int64_t query = 0;  // of the sequence
  uint32_t kv_head = 0;
};

std::vector<Sample> DrawSamples(const AttentionCase& c, uint64_t seed) {
  const int64_t count =
      std::clamp(kReferenceKeys / c.MaxTokens(), kMinSamples, kMaxSamples);
  Random random(seed + 2);
  std::vector<Sample> samples;
  for (int64_t i = 0; i < count; ++i) {
    Sample sample;
    sample.layer = i % 2 == 0 ? 0 : c.shape.layers - 1;
    sample.sequence = random.Below(static_cast<uint32_t>(c.tokens.size()));
    const int64_t queries = c.queries[sample.sequence];
    // The last, the first, and others.
    sample.query = i == 0   ? queries - 1
                   : i == 1 ? 0
                            : random.Below(static_cast<uint32_t>(queries));
    sample.kv_head = random.Below(c.shape.kv_heads);
    samples.push_back(sample);
  }
  return samples;
}

// The reference's outputs [group, v_head_dim] of one query and KV head: a
// decode of the tokens up to the query's, over pages of that head alone.
absl::StatusOr<std::vector<double>> ReferenceOutputs(
    const KvBatch& batch, const Sample& sample, int64_t query_row,
    attention::ParallelFor& parallel) {
  const AttentionCase& c = batch.attention_case();
  const PageTable whole = batch.table();
  const uint32_t group = c.query_heads / c.shape.kv_heads;
  const int64_t tokens =
      c.tokens[sample.sequence] - c.queries[sample.sequence] + sample.query + 1;
  const int64_t block_tokens = c.shape.block_tokens;
  const int64_t pages = (tokens + block_tokens - 1) / block_tokens;
  const std::vector<int32_t> indptr = {0, static_cast<int32_t>(pages)};
  const std::vector<int32_t> last_page_tokens = {
      static_cast<int32_t>((tokens - 1) % block_tokens + 1)};
  const std::vector<int32_t> first_token = {0};

  AttentionInputs inputs;
  inputs.pages = batch.pages();
  inputs.pages.shape.kv_heads = 1;
  inputs.pages.layout.base =
      static_cast<uint8_t*>(inputs.pages.layout.base) +
      int64_t{sample.kv_head} * inputs.pages.layout.head_stride;
  inputs.layer = sample.layer;
  inputs.table = whole;
  inputs.table.indptr = indptr;
  inputs.table.page_indices = whole.page_indices.subspan(
      static_cast<size_t>(whole.indptr[sample.sequence]),
      static_cast<size_t>(pages));
  inputs.table.last_page_tokens = last_page_tokens;
  inputs.table.first_token = first_token;
  inputs.query_heads = group;
  inputs.q =
      batch.q().subspan(static_cast<size_t>(query_row * c.query_heads +
                                            int64_t{sample.kv_head} * group) *
                            c.shape.head_dim,
                        size_t{group} * c.shape.head_dim);

  const std::vector<int32_t> qo_indptr = {0, 1};
  std::vector<double> out(size_t{group} * c.shape.VHeadDim());
  PAGED_KV_RETURN_IF_ERROR(ReferenceAttention(
      inputs, qo_indptr, {}, {absl::MakeSpan(out), {}}, parallel));
  return out;
}

void Compare(absl::Span<const double> want, absl::Span<const float> got,
             const ErrorLimits& limits, ErrorCheck* check) {
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]);
    const double size = std::abs(want[i]);
    // A NaN is the largest of all, and stays.
    if (!(error <= check->max_error) && !std::isnan(check->max_error)) {
      check->max_error = error;
    }
    check->max_reference = std::max(check->max_reference, size);
    if (!(error <= std::max(limits.absolute, limits.relative * size))) {
      check->within_limits = false;
    }
  }
  check->outputs += want.size();
}

}  // namespace

ErrorLimits LimitsFor(DType dtype) {
  return dtype == DType::kF32 ? ErrorLimits{1e-5, 1e-5}
                              : ErrorLimits{1e-3, 1e-2};
}

absl::StatusOr<ErrorCheck> CheckSampledHeads(KvBatch& batch,
                                             attention::AttentionPlan& plan,
                                             attention::ParallelFor& parallel,
                                             uint64_t seed) {
  const AttentionCase& c = batch.attention_case();
  const uint32_t group = c.query_heads / c.shape.kv_heads;
  const size_t out_floats = size_t{group} * c.shape.VHeadDim();
  std::vector<Sample> samples = DrawSamples(c, seed);
  std::stable_sort(
      samples.begin(), samples.end(),
      [](const Sample& a, const Sample& b) { return a.layer < b.layer; });

  ErrorCheck check;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    if (i == 0 || sample.layer != samples[i - 1].layer) {
      PAGED_KV_RETURN_IF_ERROR(batch.Attend(plan, sample.layer, parallel));
    }
    int64_t query_row = sample.query;
    for (size_t s = 0; s < sample.sequence; ++s) query_row += c.queries[s];
    PAGED_KV_ASSIGN_OR_RETURN(
        const std::vector<double> want,
        ReferenceOutputs(batch, sample, query_row, parallel));
    const size_t first = static_cast<size_t>(query_row * c.query_heads +
                                             int64_t{sample.kv_head} * group) *
                         c.shape.VHeadDim();
    Compare(want, batch.out().subspan(first, out_floats),
            LimitsFor(c.shape.dtype), &check);
  }
  check.samples = samples.size();
  return check;
}

}  // namespace paged_kv::tool

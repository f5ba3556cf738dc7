// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attention/paged_decode.h"
#include "attention/paged_prefill.h"
#include "attention/reference_attention.h"
#include "paged_kv/status_macros.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention::testing {
namespace {

// Pages that no table names, so that a wrong index finds poison.
constexpr uint32_t kSparePages = 3;
// About that of a unit normal distribution.
constexpr float kMagnitude = 1.7f;

uint32_t DivideUp(uint32_t value, uint32_t divisor) {
  return (value + divisor - 1) / divisor;
}

uint32_t PagesOf(const AttentionSpec& spec) {
  uint32_t pages = kSparePages;
  for (const SequenceLengths& lengths : spec.sequences) {
    pages += DivideUp(lengths.tokens, spec.shape.block_tokens);
  }
  return pages;
}

std::string CompareArray(const char* name, const std::vector<double>& want,
                         const std::vector<float>& got, double absolute,
                         double relative) {
  if (want.size() != got.size()) {
    return absl::StrCat(name, " has ", got.size(), " elements, not ",
                        want.size());
  }
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]);
    const bool same_infinity = std::isinf(want[i]) && got[i] == want[i];
    // Written so that a NaN is a disagreement.
    if (same_infinity || error <= absolute + relative * std::abs(want[i])) {
      continue;
    }
    return absl::StrCat(name, "[", i, "] is ", got[i], ", want ", want[i],
                        ", error ", error);
  }
  return "";
}

}  // namespace

std::string ToString(const AttentionSpec& spec) {
  const BlockShape& shape = spec.shape;
  const auto append_lengths = [](std::string* out, const SequenceLengths& s) {
    absl::StrAppend(out, s.queries, "/", s.tokens);
  };
  return absl::StrCat(
      spec.decode ? "decode " : "prefill ", DTypeName(shape.dtype), " heads ",
      shape.kv_heads * spec.group, "/", shape.kv_heads, " head_dim ",
      shape.head_dim, "/", shape.VHeadDim(), " block ", shape.block_tokens,
      " layer ", spec.layer, " of ", shape.layers, " order ",
      PageOrderName(spec.order), " window ", spec.options.window, " sinks ",
      spec.options.sink_tokens, spec.release_blocks ? " released" : "", " cap ",
      spec.options.soft_cap, " scale ", spec.options.scale,
      spec.options.causal ? "" : " not causal", " queries/tokens ",
      absl::StrJoin(spec.sequences, " ", append_lengths), " seed ", spec.seed);
}

AttentionProblem::AttentionProblem(const AttentionSpec& spec)
    : spec_(spec), memory_(spec.shape, PagesOf(spec), spec.order, spec.poison) {
  AssignPages();
  qo_indptr_.push_back(0);
  for (size_t i = 0; i < spec_.sequences.size(); ++i) {
    FillSequence(i);
    qo_indptr_.push_back(qo_indptr_.back() +
                         static_cast<int32_t>(spec_.sequences[i].queries));
  }
  Random random(spec_.seed ^ 0x51u);
  q_.resize(num_rows() * spec_.shape.head_dim);
  for (float& x : q_) x = random.Uniform(kMagnitude);
}

size_t AttentionProblem::num_rows() const {
  return static_cast<size_t>(qo_indptr_.back()) * spec_.group *
         spec_.shape.kv_heads;
}

AttentionInputs AttentionProblem::inputs() const {
  AttentionInputs inputs;
  inputs.pages = memory_.pages();
  inputs.layer = spec_.layer;
  inputs.table.indptr = indptr_;
  inputs.table.page_indices = page_indices_;
  inputs.table.last_page_tokens = last_page_tokens_;
  inputs.table.first_token = first_token_;
  inputs.table.block_tokens = static_cast<int32_t>(spec_.shape.block_tokens);
  inputs.table.sink_pages = sink_pages_;
  inputs.query_heads = spec_.group * spec_.shape.kv_heads;
  inputs.q = q_;
  return inputs;
}

void AttentionProblem::SharePages(size_t sequence, size_t other,
                                  uint32_t pages) {
  std::copy_n(page_indices_.begin() + indptr_[other], pages,
              page_indices_.begin() + indptr_[sequence]);
}

void AttentionProblem::AssignPages() {
  const uint32_t block = spec_.shape.block_tokens;
  std::vector<int32_t> free_pages(memory_.pages().num_pages);
  std::iota(free_pages.begin(), free_pages.end(), 0);
  Random random(spec_.seed);
  random.Shuffle(&free_pages);

  const uint32_t sink_pages = DivideUp(spec_.options.sink_tokens, block);
  sink_pages_ = static_cast<int32_t>(sink_pages);
  indptr_.push_back(0);
  for (const SequenceLengths& lengths : spec_.sequences) {
    const uint32_t pages = DivideUp(lengths.tokens, block);
    // Pages [sink_pages, first_kept) lie wholly outside every query's window.
    uint32_t first_kept = 0;
    const int64_t first_seen =
        int64_t{lengths.tokens} - lengths.queries + 1 - spec_.options.window;
    if (spec_.release_blocks && spec_.options.window != 0 && first_seen > 0) {
      first_kept = static_cast<uint32_t>(first_seen) / block;
    }
    const bool releases = first_kept > sink_pages;
    for (uint32_t p = 0; p < pages; ++p) {
      if (releases && p >= sink_pages && p < first_kept) continue;
      page_indices_.push_back(free_pages.back());
      free_pages.pop_back();
    }
    first_token_.push_back(releases ? static_cast<int32_t>(first_kept * block)
                                    : 0);
    indptr_.push_back(static_cast<int32_t>(page_indices_.size()));
    last_page_tokens_.push_back(
        pages == 0
            ? 0
            : static_cast<int32_t>(lengths.tokens - (pages - 1) * block));
  }
}

bool AttentionProblem::IsSeen(const SequenceLengths& lengths,
                              int64_t key) const {
  const AttentionOptions& options = spec_.options;
  if (options.window == 0 || key < int64_t{options.sink_tokens}) return true;
  const int64_t first_position = int64_t{lengths.tokens} - lengths.queries;
  return key > first_position - int64_t{options.window};
}

void AttentionProblem::FillSequence(size_t i) {
  const BlockShape& shape = spec_.shape;
  const int32_t block = static_cast<int32_t>(shape.block_tokens);
  Random random(spec_.seed * 1000003 + i);
  for (int32_t entry = indptr_[i]; entry < indptr_[i + 1]; ++entry) {
    const auto page = static_cast<uint32_t>(page_indices_[entry]);
    int64_t position = int64_t{entry - indptr_[i]} * block;
    if (first_token_[i] != 0 && entry - indptr_[i] >= sink_pages_) {
      position += first_token_[i] - int64_t{sink_pages_} * block;
    }
    for (uint32_t t = 0; t < shape.block_tokens; ++t, ++position) {
      if (position >= spec_.sequences[i].tokens) break;
      if (!IsSeen(spec_.sequences[i], position)) continue;
      for (uint32_t head = 0; head < shape.kv_heads; ++head) {
        FillToken(page, head, t, &random);
      }
    }
  }
}

// K and V of one token and head, of 8-bit types with scales of their own.
void AttentionProblem::FillToken(uint32_t page, uint32_t head, uint32_t token,
                                 Random* random) {
  const BlockShape& shape = spec_.shape;
  float limit = kMagnitude;
  if (HasScales(shape.dtype)) {
    limit = shape.dtype == DType::kInt8 ? 127.4f : 460.0f;
    const auto scale = [&] {
      return kMagnitude / limit * (1.0f + random->Uniform(0.9f));
    };
    memory_.StoreScale(memory_.KeyScaleOffset(page, spec_.layer, head, token),
                       scale());
    memory_.StoreScale(memory_.ValueScaleOffset(page, spec_.layer, head, token),
                       scale());
  }
  for (uint32_t d = 0; d < shape.head_dim; ++d) {
    memory_.Store(memory_.KeyOffset(page, spec_.layer, head, token, d),
                  random->Uniform(limit));
  }
  for (uint32_t d = 0; d < shape.VHeadDim(); ++d) {
    memory_.Store(memory_.ValueOffset(page, spec_.layer, head, token, d),
                  random->Uniform(limit));
  }
}

absl::StatusOr<AttentionResult> RunKernel(const AttentionProblem& problem,
                                          Isa isa, ParallelFor& parallel) {
  const AttentionInputs inputs = problem.inputs();
  AttentionOptions options = problem.spec().options;
  options.isa = isa;
  AttentionResult result;
  // Outputs start as NaN, so that one left unwritten shows.
  result.out.assign(problem.num_rows() * inputs.pages.shape.VHeadDim(),
                    std::nanf(""));
  result.lse.assign(problem.num_rows(), std::nanf(""));
  const AttentionOutputs outputs{absl::MakeSpan(result.out),
                                 absl::MakeSpan(result.lse)};
  if (problem.spec().decode) {
    PAGED_KV_RETURN_IF_ERROR(PagedDecode(inputs, options, outputs, parallel));
  } else {
    PAGED_KV_RETURN_IF_ERROR(
        PagedPrefill(inputs, problem.qo_indptr(), options, outputs, parallel));
  }
  return result;
}

absl::StatusOr<ReferenceResult> RunReference(const AttentionProblem& problem,
                                             ParallelFor& parallel) {
  AttentionInputs inputs = problem.inputs();
  const size_t q_row = size_t{inputs.query_heads} * inputs.pages.shape.head_dim;
  const size_t out_row =
      size_t{inputs.query_heads} * inputs.pages.shape.VHeadDim();
  // The reference knows no queries of sequences without tokens: leave them out.
  std::vector<int32_t> qo_indptr = {0};
  std::vector<float> q;
  std::vector<int32_t> kept_rows;  // row of q -> row of the problem's q
  for (size_t i = 0; i < problem.spec().sequences.size(); ++i) {
    const bool empty = problem.spec().sequences[i].tokens == 0;
    for (int32_t row = problem.qo_indptr()[i];
         row < problem.qo_indptr()[i + 1] && !empty; ++row) {
      kept_rows.push_back(row);
      q.insert(q.end(), inputs.q.begin() + row * q_row,
               inputs.q.begin() + (row + 1) * q_row);
    }
    qo_indptr.push_back(static_cast<int32_t>(kept_rows.size()));
  }
  inputs.q = q;
  ReferenceResult kept;
  kept.out.resize(kept_rows.size() * out_row);
  kept.lse.resize(kept_rows.size() * inputs.query_heads);
  PAGED_KV_RETURN_IF_ERROR(ReferenceAttention(
      inputs, qo_indptr, problem.spec().options,
      {absl::MakeSpan(kept.out), absl::MakeSpan(kept.lse)}, parallel));

  ReferenceResult result;
  result.out.assign(problem.num_rows() * inputs.pages.shape.VHeadDim(), 0.0);
  result.lse.assign(problem.num_rows(),
                    -std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < kept_rows.size(); ++i) {
    std::copy_n(kept.out.begin() + i * out_row, out_row,
                result.out.begin() + kept_rows[i] * out_row);
    std::copy_n(kept.lse.begin() + i * inputs.query_heads, inputs.query_heads,
                result.lse.begin() + kept_rows[i] * inputs.query_heads);
  }
  return result;
}

Tolerance ToleranceFor(Isa isa, DType dtype) {
  const absl::StatusOr<Isa> resolved = ResolveIsa(isa);
  if (!resolved.ok()) return kPortableTolerance;
  const bool tiles = *resolved == Isa::kAmxBf16;
  const bool bytes = tiles || *resolved == Isa::kAvx512Dl;
  if (bytes && dtype == DType::kInt8) return kByteTolerance;
  return tiles ? kTileTolerance : kPortableTolerance;
}

std::string Compare(const ReferenceResult& want, const AttentionResult& got,
                    const Tolerance& tolerance) {
  const std::string out = CompareArray("out", want.out, got.out,
                                       tolerance.absolute, tolerance.relative);
  if (!out.empty()) return out;
  return CompareArray("lse", want.lse, got.lse, tolerance.absolute,
                      tolerance.relative);
}

}  // namespace paged_kv::attention::testing

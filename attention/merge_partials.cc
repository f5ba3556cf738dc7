// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/merge_partials.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attention/plan_checks_internal.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::attention {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

absl::Status CheckArrays(absl::Span<const PartialAttention> parts, size_t rows,
                         uint32_t v_head_dim, const AttentionOutputs& outputs) {
  using internal::CheckArray;
  if (v_head_dim == 0 ||
      rows > std::numeric_limits<size_t>::max() / v_head_dim) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot merge ", rows, " rows of v_head_dim ", v_head_dim));
  }
  const size_t elements = rows * v_head_dim;
  for (size_t i = 0; i < parts.size(); ++i) {
    PAGED_KV_RETURN_IF_ERROR(
        CheckArray(absl::StrCat("parts[", i, "].out"), parts[i].out.data(),
                   parts[i].out.size(), elements, alignof(float)));
    PAGED_KV_RETURN_IF_ERROR(
        CheckArray(absl::StrCat("parts[", i, "].lse"), parts[i].lse.data(),
                   parts[i].lse.size(), rows, alignof(float)));
  }
  PAGED_KV_RETURN_IF_ERROR(CheckArray(
      "out", outputs.out.data(), outputs.out.size(), elements, alignof(float)));
  if (outputs.lse.empty()) return absl::OkStatus();
  return CheckArray("lse", outputs.lse.data(), outputs.lse.size(), rows,
                    alignof(float));
}

// One row. `weights` is scratch, one per part.
void MergeRow(absl::Span<const PartialAttention> parts, size_t row,
              size_t columns, absl::Span<float> weights, float* out,
              float* lse) {
  const PartialAttention* only = nullptr;
  size_t num_with_keys = 0;
  float max = -kInfinity;
  for (const PartialAttention& part : parts) {
    if (part.lse[row] == -kInfinity) continue;
    only = &part;
    ++num_with_keys;
    max = std::max(max, part.lse[row]);
  }
  if (num_with_keys == 0) {
    std::fill_n(out, columns, 0.0f);
    if (lse != nullptr) *lse = -kInfinity;
    return;
  }
  if (num_with_keys == 1) {
    if (lse != nullptr) *lse = only->lse[row];
    const float* from = only->out.data() + row * columns;
    if (from != out) std::memcpy(out, from, columns * sizeof(float));
    return;
  }
  float sum = 0.0f;
  for (size_t i = 0; i < parts.size(); ++i) {
    weights[i] = std::exp(parts[i].lse[row] - max);
    sum += weights[i];
  }
  // All parts of a column are read before it is written: `out` may be one.
  for (size_t c = 0; c < columns; ++c) {
    float value = 0.0f;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].lse[row] == -kInfinity) continue;
      value += weights[i] * parts[i].out[row * columns + c];
    }
    out[c] = value / sum;
  }
  if (lse != nullptr) *lse = max + std::log(sum);
}

}  // namespace

absl::Status MergePartials(absl::Span<const PartialAttention> parts,
                           size_t rows, uint32_t v_head_dim,
                           const AttentionOutputs& outputs) {
  PAGED_KV_RETURN_IF_ERROR(CheckArrays(parts, rows, v_head_dim, outputs));
  std::vector<float> weights(parts.size());
  for (size_t row = 0; row < rows; ++row) {
    MergeRow(parts, row, v_head_dim, absl::MakeSpan(weights),
             outputs.out.data() + row * v_head_dim,
             outputs.lse.empty() ? nullptr : outputs.lse.data() + row);
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::attention

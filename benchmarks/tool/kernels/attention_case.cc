// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/attention_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/kernels/machine.h"
#include "benchmarks/tool/table.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// More than any cache holds, so that every step finds its K/V in memory.
constexpr double kMinKvBytes = 0x1p30;

double BytesPerTokenOfLayer(const AttentionCase& c) {
  BlockShape layer = c.shape;
  layer.layers = 1;
  return static_cast<double>(BytesPerToken(layer).value());
}

// K/V, queries and outputs, and what the reference unpacks of one sequence.
double NeededBytes(const AttentionCase& c, double page_bytes) {
  const double rows = static_cast<double>(c.TotalQueries()) * c.query_heads;
  const double dims = c.shape.head_dim + c.shape.VHeadDim();
  return page_bytes * static_cast<double>(c.NumPages()) +
         rows * dims * sizeof(float) +
         static_cast<double>(c.MaxTokens()) * (dims + 1) * sizeof(double);
}

}  // namespace

int64_t AttentionCase::TotalQueries() const {
  return std::accumulate(queries.begin(), queries.end(), int64_t{0});
}

int64_t AttentionCase::MaxTokens() const {
  return *std::max_element(tokens.begin(), tokens.end());
}

int64_t AttentionCase::NumPages() const {
  int64_t pages = SharedBlocks();
  for (const int64_t t : tokens) {
    pages += (t + shape.block_tokens - 1) / shape.block_tokens - SharedBlocks();
  }
  return pages;
}

double AttentionCase::KvBytes() const {
  const int64_t all = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
  return static_cast<double>(all) * BytesPerTokenOfLayer(*this);
}

double AttentionCase::DistinctKvBytes() const {
  const int64_t shared = SharedBlocks() * shape.block_tokens;
  const auto repeats = static_cast<double>(tokens.size() - 1);
  return KvBytes() -
         repeats * static_cast<double>(shared) * BytesPerTokenOfLayer(*this);
}

double AttentionCase::Flops() const {
  double pairs = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    // Query j of q sees the tokens before the queries and j + 1 of them.
    const auto q = static_cast<double>(queries[i]);
    pairs += q * (static_cast<double>(tokens[i]) - q) + q * (q + 1) / 2;
  }
  return pairs * query_heads * 2.0 * (shape.head_dim + shape.VHeadDim());
}

absl::Status CompleteCase(AttentionCase* attention_case) {
  AttentionCase& c = *attention_case;
  const int64_t shortest = *std::min_element(c.tokens.begin(), c.tokens.end());
  if (c.shared_prefix > shortest) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a shared prefix of ", c.shared_prefix,
        " tokens is longer than a sequence of ", shortest, " tokens"));
  }
  BlockShape layer = c.shape;
  layer.layers = 1;
  PAGED_KV_RETURN_IF_ERROR(Validate(layer));
  const auto layer_page_bytes = static_cast<double>(PageBytes(layer).value());
  const int64_t pages = c.NumPages();
  if (pages > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the batch has ", pages, " pages; page tables hold 2^31 - 1 at most"));
  }
  double layers = c.shape.layers;
  if (c.shape.layers == 0) {
    layers = std::ceil(kMinKvBytes /
                       (layer_page_bytes * static_cast<double>(pages)));
  }
  const double needed = NeededBytes(c, layer_page_bytes * layers);
  const uint64_t available = AvailableMemoryBytes();
  if (needed > static_cast<double>(available)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "needs %.4g GiB (%s pages of %.4g KiB in %.0f layers), but %.4g GiB "
        "are available",
        needed * 0x1p-30, Grouped(static_cast<uint64_t>(pages)),
        layer_page_bytes * 0x1p-10, layers,
        static_cast<double>(available) * 0x1p-30));
  }
  c.shape.layers = static_cast<uint32_t>(layers);
  return Validate(c.shape);
}

}  // namespace paged_kv::tool

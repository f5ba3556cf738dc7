// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/kv_batch.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "benchmarks/tool/random.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using attention::AttentionOptions;
using attention::AttentionPlan;
using attention::KvRows;
using attention::ParallelFor;

// Tokens written at a time while pages are filled.
constexpr int64_t kFillTokens = 512;
// Rows start at one of this many places of the random numbers, a prime.
constexpr size_t kStarts = 65'521;

// Kernels may load the rest of a vector behind the last element.
constexpr size_t kSlackBytes = 4096;

// Standard normal (Box and Muller 1958).
std::vector<float> Normals(size_t size, Random& random) {
  std::vector<float> values(size + size % 2);
  for (size_t i = 0; i < values.size(); i += 2) {
    const double u = (random.Bits() + 0.5) * 0x1p-32;
    const double angle = 2 * std::numbers::pi * random.Bits() * 0x1p-32;
    const double radius = std::sqrt(-2 * std::log(u));
    values[i] = static_cast<float>(radius * std::cos(angle));
    values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  values.resize(size);
  return values;
}

}  // namespace

absl::StatusOr<KvBatch> KvBatch::Create(const AttentionCase& attention_case,
                                        uint64_t seed) {
  const uint64_t bytes = PageBytes(attention_case.shape).value() *
                         static_cast<uint64_t>(attention_case.NumPages());
  PAGED_KV_ASSIGN_OR_RETURN(HugeBuffer memory,
                            HugeBuffer::Create(bytes + kSlackBytes));
  return KvBatch(attention_case, seed, std::move(memory));
}

KvBatch::KvBatch(const AttentionCase& attention_case, uint64_t seed,
                 HugeBuffer memory)
    : case_(attention_case), seed_(seed), memory_(std::move(memory)) {
  const BlockShape& shape = case_.shape;
  pages_.shape = shape;
  pages_.layout = OwnPageLayout(shape, memory_.data());
  if (case_.k_order == KOrder::kTokenDim) {
    pages_.layout.k_order = KOrder::kTokenDim;
  }
  case_.k_order = pages_.layout.k_order;
  pages_.num_pages = static_cast<uint32_t>(case_.NumPages());
  MakeTable();
  MakeSlots();

  Random random(seed_);
  const auto rows = static_cast<size_t>(case_.TotalQueries());
  const size_t row_floats =
      size_t{shape.kv_heads} * std::max(shape.head_dim, shape.VHeadDim());
  normals_ = Normals(std::max<size_t>(rows, kFillTokens) * row_floats + kStarts,
                     random);
  q_ = Normals(rows * case_.query_heads * shape.head_dim, random);
  out_.resize(rows * case_.query_heads * shape.VHeadDim());
}

void KvBatch::MakeTable() {
  const int64_t block_tokens = case_.shape.block_tokens;
  std::vector<int32_t> unused(pages_.num_pages);
  std::iota(unused.begin(), unused.end(), 0);
  Random random(seed_ + 1);
  for (size_t i = unused.size(); i > 1; --i) {
    std::swap(unused[i - 1], unused[random.Below(static_cast<uint32_t>(i))]);
  }
  const int64_t shared = case_.SharedBlocks();
  const std::vector<int32_t> prefix(unused.end() - shared, unused.end());
  unused.resize(unused.size() - static_cast<size_t>(shared));

  indptr_ = {0};
  qo_indptr_ = {0};
  for (size_t i = 0; i < case_.tokens.size(); ++i) {
    const int64_t tokens = case_.tokens[i];
    page_indices_.insert(page_indices_.end(), prefix.begin(), prefix.end());
    const int64_t own = (tokens + block_tokens - 1) / block_tokens - shared;
    page_indices_.insert(page_indices_.end(), unused.end() - own, unused.end());
    unused.resize(unused.size() - static_cast<size_t>(own));
    indptr_.push_back(static_cast<int32_t>(page_indices_.size()));
    last_page_tokens_.push_back(
        static_cast<int32_t>((tokens - 1) % block_tokens + 1));
    qo_indptr_.push_back(qo_indptr_.back() +
                         static_cast<int32_t>(case_.queries[i]));
  }
  first_token_.assign(case_.tokens.size(), 0);
}

void KvBatch::MakeSlots() {
  const int64_t block_tokens = case_.shape.block_tokens;
  for (size_t i = 0; i < case_.tokens.size(); ++i) {
    const int64_t end = case_.tokens[i];
    for (int64_t t = end - case_.queries[i]; t < end; ++t) {
      const int64_t page = page_indices_[indptr_[i] + t / block_tokens];
      append_slots_.push_back(page * block_tokens + t % block_tokens);
    }
  }
}

PageTable KvBatch::table() const {
  return {indptr_,
          page_indices_,
          last_page_tokens_,
          first_token_,
          static_cast<int32_t>(case_.shape.block_tokens),
          0};
}

absl::StatusOr<AttentionPlan> KvBatch::Plan(attention::Isa isa,
                                            bool share_prefixes) const {
  AttentionOptions options;
  options.isa = isa;
  options.share_prefixes = share_prefixes;
  if (case_.prefill) {
    return AttentionPlan::ForPrefill(pages_, case_.query_heads, table(),
                                     qo_indptr_, options);
  }
  return AttentionPlan::ForDecode(pages_, case_.query_heads, table(), options);
}

KvRows KvBatch::RandomRows(uint32_t dim, uint64_t* draw) const {
  // Steps of a number without a common factor visit all starts.
  constexpr uint64_t kStep = 40'503;
  KvRows rows;
  rows.data = normals_.data() + *draw * kStep % kStarts;
  rows.head_stride = int64_t{dim} * int64_t{sizeof(float)};
  ++*draw;
  return rows;
}

absl::Status KvBatch::Fill(ParallelFor& parallel, Progress& progress) {
  const BlockShape& shape = case_.shape;
  const int64_t slots = int64_t{pages_.num_pages} * shape.block_tokens;
  progress.Start("filling pages");
  std::vector<int64_t> mapping;
  uint64_t draw = 0;
  for (int64_t first = 0; first < slots; first += kFillTokens) {
    mapping.resize(
        static_cast<size_t>(std::min<int64_t>(kFillTokens, slots - first)));
    std::iota(mapping.begin(), mapping.end(), first);
    for (uint32_t layer = 0; layer < shape.layers; ++layer) {
      const KvRows k = RandomRows(shape.head_dim, &draw);
      const KvRows v = RandomRows(shape.VHeadDim(), &draw);
      PAGED_KV_RETURN_IF_ERROR(
          attention::AppendKv(pages_, layer, k, v, mapping, parallel));
      progress.Update(static_cast<uint64_t>(first) * shape.layers +
                          uint64_t{layer} * mapping.size(),
                      static_cast<uint64_t>(slots) * shape.layers);
    }
  }
  progress.Clear();
  return absl::OkStatus();
}

absl::Status KvBatch::Attend(AttentionPlan& plan, uint32_t layer,
                             ParallelFor& parallel) {
  return plan.Run(pages_, layer, q_, {absl::MakeSpan(out_), {}}, parallel);
}

absl::Status KvBatch::Append(uint32_t layer, ParallelFor& parallel,
                             attention::Isa isa) {
  uint64_t draw = layer;
  const KvRows k = RandomRows(case_.shape.head_dim, &draw);
  const KvRows v = RandomRows(case_.shape.VHeadDim(), &draw);
  return attention::AppendKv(pages_, layer, k, v, append_slots_, parallel, isa);
}

}  // namespace paged_kv::tool

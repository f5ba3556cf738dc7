// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory that attention is measured over, its bounds and its check.

#include "benchmarks/tool/kernels/kv_batch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "attention/parallel_for.h"
#include "attention/reference_attention.h"
#include "benchmarks/tool/kernels/error_check.h"
#include "benchmarks/tool/kernels/roofs.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

using attention::Isa;
using attention::SerialFor;

AttentionCase SmallCase() {
  AttentionCase c;
  c.shape.layers = 2;
  c.shape.kv_heads = 2;
  c.shape.head_dim = 32;
  c.shape.block_tokens = 16;
  c.shape.dtype = DType::kBF16;
  c.query_heads = 6;
  c.tokens = {40, 33, 64};
  c.queries = {1, 1, 1};
  return c;
}

KvBatch FilledBatch(const AttentionCase& c, uint64_t seed) {
  absl::StatusOr<KvBatch> batch = KvBatch::Create(c, seed);
  EXPECT_TRUE(batch.ok()) << batch.status();
  SerialFor serial;
  Progress progress(nullptr);
  EXPECT_TRUE(batch->Fill(serial, progress).ok());
  return *std::move(batch);
}

TEST(AttentionCaseTest, CountsBytesAndFlopsOfWhatIsSeen) {
  AttentionCase c = SmallCase();
  // 137 tokens, K and V of 32 bf16 in two heads.
  EXPECT_EQ(c.KvBytes(), 137 * 2 * 2 * 32 * 2);
  EXPECT_EQ(c.DistinctKvBytes(), c.KvBytes());
  EXPECT_EQ(c.Flops(), 137 * 6 * 4 * 32);
  EXPECT_EQ(c.NumPages(), 3 + 3 + 4);
  EXPECT_EQ(c.MaxTokens(), 64);

  c.shared_prefix = 33;  // two whole blocks
  EXPECT_EQ(c.NumPages(), 2 + 1 + 1 + 2);
  EXPECT_EQ(c.DistinctKvBytes(), (137 - 2 * 32) * 2 * 2 * 32 * 2);

  c.shared_prefix = 0;
  c.prefill = true;
  c.queries = {40, 3, 1};
  // 1 + 2 + ... + 40, then 31, 32, 33, then 64 keys.
  EXPECT_EQ(c.Flops(), (820 + 96 + 64) * 6 * 4 * 32);
  EXPECT_EQ(c.TotalQueries(), 44);
}

TEST(AttentionCaseTest, LayersFillMoreThanTheCachesUnlessGiven) {
  AttentionCase c = SmallCase();
  ASSERT_TRUE(CompleteCase(&c).ok());
  EXPECT_EQ(c.shape.layers, 2u);
  c.shape.layers = 0;
  c.tokens = {1 << 16, 1 << 16};
  c.queries = {1, 1};
  ASSERT_TRUE(CompleteCase(&c).ok());
  // 32 MiB per layer.
  EXPECT_EQ(c.shape.layers, 32u);
}

TEST(AttentionCaseTest, RefusesWhatDoesNotFit) {
  AttentionCase c = SmallCase();
  c.shared_prefix = 34;
  EXPECT_EQ(CompleteCase(&c).code(), absl::StatusCode::kInvalidArgument);

  c = SmallCase();
  c.tokens = {int64_t{1} << 40};
  c.queries = {1};
  EXPECT_EQ(CompleteCase(&c).code(), absl::StatusCode::kInvalidArgument);

  c = SmallCase();
  c.tokens.assign(1 << 16, 1 << 16);
  c.queries.assign(1 << 16, 1);
  c.shape.layers = 1024;
  const absl::Status status = CompleteCase(&c);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("GiB are available"), std::string::npos)
      << status;
}

TEST(KvBatchTest, EveryPageIsUsedOnceAndInRandomOrder) {
  AttentionCase c = SmallCase();
  c.tokens = {1000, 1};
  c.queries = {1, 1};
  const absl::StatusOr<KvBatch> batch = KvBatch::Create(c, 7);
  ASSERT_TRUE(batch.ok());
  const PageTable table = batch->table();
  EXPECT_EQ(table.SequenceTokens(0), 1000);
  EXPECT_EQ(table.SequenceTokens(1), 1);
  const std::set<int32_t> pages(table.page_indices.begin(),
                                table.page_indices.end());
  EXPECT_EQ(pages.size(), 64u);
  EXPECT_EQ(*pages.begin(), 0);
  EXPECT_EQ(*pages.rbegin(), 63);
  EXPECT_FALSE(
      std::is_sorted(table.page_indices.begin(), table.page_indices.end()));
}

TEST(KvBatchTest, SequencesShareThePagesOfTheirPrefixOnly) {
  AttentionCase c = SmallCase();
  c.shared_prefix = 32;
  const absl::StatusOr<KvBatch> batch = KvBatch::Create(c, 7);
  ASSERT_TRUE(batch.ok());
  const PageTable table = batch->table();
  std::set<int32_t> seen;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(table.SequenceTokens(i), c.tokens[i]);
    for (int32_t p = table.indptr[i]; p < table.indptr[i + 1]; ++p) {
      const int32_t nth = p - table.indptr[i];
      if (nth < 2) {
        EXPECT_EQ(table.page_indices[p], table.page_indices[nth]);
      } else {
        EXPECT_TRUE(seen.insert(table.page_indices[p]).second);
      }
    }
  }
  EXPECT_EQ(seen.size() + 2, batch->pages().num_pages);
}

TEST(KvBatchTest, AllSlotsHoldStandardNormalValues) {
  for (const KOrder order : {KOrder::kTiled16, KOrder::kTokenDim}) {
    AttentionCase c = SmallCase();
    c.k_order = order;
    const KvBatch batch = FilledBatch(c, 3);
    EXPECT_EQ(batch.pages().layout.k_order, order);
    double sum = 0, squares = 0;
    int count = 0, zeros = 0;
    for (uint32_t page = 0; page < batch.pages().num_pages; ++page) {
      for (uint32_t token = 0; token < 16; ++token) {
        for (uint32_t d = 0; d < 32; ++d) {
          const double k =
              attention::StoredKey(batch.pages(), page, 1, 1, token, d);
          const double v =
              attention::StoredValue(batch.pages(), page, 1, 0, token, d);
          zeros += (k == 0) + (v == 0);
          sum += k + v;
          squares += k * k + v * v;
          count += 2;
        }
      }
    }
    EXPECT_NEAR(sum / count, 0, 0.06);
    EXPECT_NEAR(squares / count, 1, 0.1);
    EXPECT_LT(zeros, 5);
  }
}

TEST(RoofsTest, ReadEveryPageOfEveryLayerAndHead) {
  AttentionCase c = SmallCase();
  c.shared_prefix = 32;
  const KvBatch batch = FilledBatch(c, 3);
  SerialFor serial;
  Roofs roofs(batch, attention::SupportedIsas().front(), serial);
  roofs.Calibrate();
  roofs.Gather();
  roofs.Stream();
  roofs.Peak(0);
  const double pool_bytes = 6.0 * 2 * 2 * 2 * 16 * 32 * 2;
  EXPECT_EQ(roofs.GatherBytes(), pool_bytes);
  EXPECT_EQ(roofs.StreamBytes(), pool_bytes);
  EXPECT_GT(roofs.PeakFlops(0), 1e5);
}

TEST(ErrorCheckTest, TheKernelsPass) {
  SerialFor serial;
  for (const bool prefill : {false, true}) {
    AttentionCase c = SmallCase();
    c.prefill = prefill;
    if (prefill) c.queries = {40, 3, 17};
    KvBatch batch = FilledBatch(c, 3);
    auto plan = batch.Plan(Isa::kAuto);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto check = CheckSampledHeads(batch, *plan, serial, 1);
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_TRUE(check->within_limits) << check->max_error;
    EXPECT_GT(check->max_error, 0);
    EXPECT_LT(check->max_error, 1e-3);
    EXPECT_GT(check->max_reference, 0.1);
    EXPECT_EQ(check->outputs, check->samples * 3 * 32);
    EXPECT_GE(check->samples, 2u);
  }
}

TEST(ErrorCheckTest, WrongPagesFail) {
  SerialFor serial;
  KvBatch batch = FilledBatch(SmallCase(), 3);
  const KvBatch other = FilledBatch(SmallCase(), 4);
  auto plan = other.Plan(Isa::kAuto);
  ASSERT_TRUE(plan.ok());
  const auto check = CheckSampledHeads(batch, *plan, serial, 1);
  ASSERT_TRUE(check.ok());
  EXPECT_FALSE(check->within_limits);
  EXPECT_GT(check->max_error, 1e-2);
}

TEST(ErrorCheckTest, NanIsTheLargestError) {
  SerialFor serial;
  AttentionCase c = SmallCase();
  c.shape.dtype = DType::kF32;
  KvBatch batch = FilledBatch(c, 3);
  auto plan = batch.Plan(Isa::kAuto);
  ASSERT_TRUE(plan.ok());
  std::fill_n(reinterpret_cast<float*>(batch.memory().data()),
              batch.memory().size() / sizeof(float),
              std::numeric_limits<float>::quiet_NaN());
  const auto check = CheckSampledHeads(batch, *plan, serial, 1);
  ASSERT_TRUE(check.ok());
  EXPECT_FALSE(check->within_limits);
  EXPECT_TRUE(std::isnan(check->max_error));
}

}  // namespace
}  // namespace paged_kv::tool

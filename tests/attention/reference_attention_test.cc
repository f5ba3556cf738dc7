// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Anchors the reference itself: answers worked out by hand.

#include "attention/reference_attention.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/attention_pages.h"

namespace paged_kv::attention {
namespace {

using testing::PageMemory;
using testing::PageOrder;
using testing::Poison;

// One sequence of five tokens in blocks of two, pages 3, 0, 2; head_dim 2.
// Keys are (j, 0), values (j, 1); slots without a token are NaN.
class ReferenceAttentionTest : public ::testing::Test {
 protected:
  ReferenceAttentionTest()
      : memory_(Shape(), 4, PageOrder::kOwnPlain, Poison::kNan) {
    for (uint32_t j = 0; j < 5; ++j) {
      const auto page = static_cast<uint32_t>(page_indices_[j / 2]);
      const auto value = static_cast<float>(j);
      memory_.Store(memory_.KeyOffset(page, 0, 0, j % 2, 0), value);
      memory_.Store(memory_.KeyOffset(page, 0, 0, j % 2, 1), 0.0f);
      memory_.Store(memory_.ValueOffset(page, 0, 0, j % 2, 0), value);
      memory_.Store(memory_.ValueOffset(page, 0, 0, j % 2, 1), 1.0f);
    }
  }

  static BlockShape Shape() {
    BlockShape shape;
    shape.head_dim = 2;
    shape.block_tokens = 2;
    shape.dtype = DType::kF32;
    return shape;
  }

  // Attends with queries (1, 0) for the last `queries` tokens.
  void Attend(int32_t queries, const AttentionOptions& options) {
    AttentionInputs inputs;
    inputs.pages = memory_.pages();
    inputs.table.indptr = indptr_;
    inputs.table.page_indices = page_indices_;
    inputs.table.last_page_tokens = last_page_tokens_;
    inputs.table.first_token = first_token_;
    inputs.table.block_tokens = 2;
    inputs.query_heads = 1;
    std::vector<float> q;
    for (int32_t i = 0; i < queries; ++i) q.insert(q.end(), {1.0f, 0.0f});
    inputs.q = q;
    out_.assign(2 * queries, -1.0);
    lse_.assign(queries, -1.0);
    SerialFor serial;
    const absl::Status status = ReferenceAttention(
        inputs, std::vector<int32_t>{0, queries}, options,
        {absl::MakeSpan(out_), absl::MakeSpan(lse_)}, serial);
    ASSERT_TRUE(status.ok()) << status;
  }

  // The softmax-weighted mean of j and the log of the sum of exponentials over
  // keys with the given scores.
  void ExpectRow(size_t row, const std::vector<std::pair<int, double>>& keys) {
    double sum = 0.0;
    double mean = 0.0;
    for (const auto& [j, score] : keys) {
      sum += std::exp(score);
      mean += j * std::exp(score);
    }
    EXPECT_NEAR(out_[2 * row], mean / sum, 1e-12) << row;
    EXPECT_NEAR(out_[2 * row + 1], 1.0, 1e-12) << row;
    EXPECT_NEAR(lse_[row], std::log(sum), 1e-12) << row;
  }

  PageMemory memory_;
  std::vector<int32_t> indptr_ = {0, 3};
  std::vector<int32_t> page_indices_ = {3, 0, 2};
  std::vector<int32_t> last_page_tokens_ = {1};
  std::vector<int32_t> first_token_ = {0};
  std::vector<double> out_, lse_;
};

TEST_F(ReferenceAttentionTest, DefaultScaleIsOneOverRootOfHeadDim) {
  Attend(1, {});
  const double s = 1.0 / std::sqrt(2.0);
  ExpectRow(0, {{0, 0.0}, {1, s}, {2, 2 * s}, {3, 3 * s}, {4, 4 * s}});
}

TEST_F(ReferenceAttentionTest, CausalRowsSeeUpToThemselves) {
  AttentionOptions options;
  options.scale = 0.5f;
  Attend(3, options);
  ExpectRow(0, {{0, 0.0}, {1, 0.5}, {2, 1.0}});
  ExpectRow(1, {{0, 0.0}, {1, 0.5}, {2, 1.0}, {3, 1.5}});
  ExpectRow(2, {{0, 0.0}, {1, 0.5}, {2, 1.0}, {3, 1.5}, {4, 2.0}});
}

TEST_F(ReferenceAttentionTest, WithoutCausalRowsSeeEverything) {
  AttentionOptions options;
  options.scale = 0.5f;
  options.causal = false;
  Attend(2, options);
  for (const size_t row : {0, 1}) {
    ExpectRow(row, {{0, 0.0}, {1, 0.5}, {2, 1.0}, {3, 1.5}, {4, 2.0}});
  }
}

TEST_F(ReferenceAttentionTest, WindowCountsTheQueryItself) {
  AttentionOptions options;
  options.scale = 1.0f;
  options.window = 2;
  Attend(2, options);
  ExpectRow(0, {{2, 2.0}, {3, 3.0}});
  ExpectRow(1, {{3, 3.0}, {4, 4.0}});
}

TEST_F(ReferenceAttentionTest, SinksStaySeen) {
  AttentionOptions options;
  options.scale = 1.0f;
  options.window = 1;
  options.sink_tokens = 2;
  Attend(1, options);
  ExpectRow(0, {{0, 0.0}, {1, 1.0}, {4, 4.0}});
}

TEST_F(ReferenceAttentionTest, ReleasedBlocksShiftTheTable) {
  // The middle block is gone: page 3 holds tokens 0 and 1, page 2 token 4.
  indptr_ = {0, 2};
  page_indices_ = {3, 2};
  first_token_ = {4};
  AttentionOptions options;
  options.scale = 1.0f;
  options.window = 1;
  options.sink_tokens = 1;
  AttentionInputs inputs;
  inputs.pages = memory_.pages();
  inputs.table = {indptr_, page_indices_, last_page_tokens_, first_token_, 2,
                  1};
  inputs.query_heads = 1;
  const std::vector<float> q = {1.0f, 0.0f};
  inputs.q = q;
  out_.assign(2, -1.0);
  lse_.assign(1, -1.0);
  SerialFor serial;
  ASSERT_TRUE(ReferenceAttention(inputs, std::vector<int32_t>{0, 1}, options,
                                 {absl::MakeSpan(out_), absl::MakeSpan(lse_)},
                                 serial)
                  .ok());
  ExpectRow(0, {{0, 0.0}, {4, 4.0}});
}

TEST_F(ReferenceAttentionTest, SoftCapBendsScores) {
  AttentionOptions options;
  options.scale = 1.0f;
  options.soft_cap = 2.0f;
  options.window = 2;
  Attend(1, options);
  ExpectRow(0, {{3, 2 * std::tanh(1.5)}, {4, 2 * std::tanh(2.0)}});
}

}  // namespace
}  // namespace paged_kv::attention

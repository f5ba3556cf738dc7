// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the entry refuses, and what a plan is used for.

#include "attention/attention_plan.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "attention/paged_decode.h"
#include "attention/paged_prefill.h"
#include "gtest/gtest.h"
#include "tests/support/attention_problem.h"

namespace paged_kv::attention {
namespace {

using testing::AttentionProblem;
using testing::AttentionSpec;

AttentionSpec SmallSpec() {
  AttentionSpec spec;
  spec.shape.layers = 2;
  spec.shape.kv_heads = 2;
  spec.shape.head_dim = 16;
  spec.group = 3;
  spec.sequences = {{2, 20}, {1, 33}};
  return spec;
}

class AttentionPlanTest : public ::testing::Test {
 protected:
  AttentionPlanTest()
      : problem_(SmallSpec()),
        inputs_(problem_.inputs()),
        indptr_(inputs_.table.indptr.begin(), inputs_.table.indptr.end()),
        page_indices_(inputs_.table.page_indices.begin(),
                      inputs_.table.page_indices.end()),
        last_page_tokens_(inputs_.table.last_page_tokens.begin(),
                          inputs_.table.last_page_tokens.end()),
        first_token_(2, 0),
        q_(inputs_.q.begin(), inputs_.q.end()),
        out_(problem_.num_rows() * 16, 7.0f),
        lse_(problem_.num_rows(), 7.0f) {
    UseOwnArrays();
  }

  // Points the inputs at arrays that a test may change.
  void UseOwnArrays() {
    inputs_.table.indptr = indptr_;
    inputs_.table.page_indices = page_indices_;
    inputs_.table.last_page_tokens = last_page_tokens_;
    inputs_.table.first_token = first_token_;
    inputs_.q = q_;
  }

  absl::Status Prefill(const AttentionOptions& options = {}) {
    SerialFor serial;
    return PagedPrefill(inputs_, qo_indptr_, options,
                        {absl::MakeSpan(out_), absl::MakeSpan(lse_)}, serial);
  }

  // The prefill fails with `text` in its message and writes nothing.
  void ExpectRefused(const std::string& text,
                     const AttentionOptions& options = {}) {
    const absl::Status status = Prefill(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
    EXPECT_EQ(out_, std::vector<float>(out_.size(), 7.0f));
    EXPECT_EQ(lse_, std::vector<float>(lse_.size(), 7.0f));
  }

  AttentionProblem problem_;
  AttentionInputs inputs_;
  std::vector<int32_t> indptr_, page_indices_, last_page_tokens_, first_token_;
  std::vector<int32_t> qo_indptr_ = {0, 2, 3};
  std::vector<float> q_, out_, lse_;
};

TEST_F(AttentionPlanTest, TakesWhatIsRight) {
  EXPECT_TRUE(Prefill().ok()) << Prefill();
  SerialFor serial;
  EXPECT_EQ(out_, RunKernel(problem_, Isa::kAuto, serial)->out);
}

TEST_F(AttentionPlanTest, RefusesHeadsThatDoNotDivide) {
  // As vLLM: 16 query heads, 5 KV heads.
  inputs_.query_heads = 7;
  ExpectRefused("7 query heads are not a multiple of 2 KV heads");
  inputs_.query_heads = 0;
  ExpectRefused("0 query heads");
}

TEST_F(AttentionPlanTest, RefusesSixteenQueryHeadsOverFive) {
  inputs_.pages.shape.kv_heads = 5;
  inputs_.pages.layout =
      OwnPageLayout(inputs_.pages.shape, inputs_.pages.layout.base);
  inputs_.query_heads = 16;
  ExpectRefused("16 query heads are not a multiple of 5 KV heads");
}

TEST_F(AttentionPlanTest, RefusesHeadDims) {
  for (const uint32_t head_dim : {4, 12, 20, 264, 512}) {
    BlockShape& shape = inputs_.pages.shape;
    shape.head_dim = head_dim;
    shape.v_head_dim = 16;
    inputs_.pages.layout = OwnPageLayout(shape, inputs_.pages.layout.base);
    ExpectRefused(absl::StrCat("BlockShape::head_dim is ", head_dim));
    shape.v_head_dim = head_dim;
    shape.head_dim = 16;
    inputs_.pages.layout = OwnPageLayout(shape, inputs_.pages.layout.base);
    ExpectRefused(absl::StrCat("BlockShape::v_head_dim is ", head_dim));
  }
}

TEST_F(AttentionPlanTest, RefusesPagesOutsideThePool) {
  page_indices_[2] = static_cast<int32_t>(inputs_.pages.num_pages);
  ExpectRefused("PageTable::page_indices[2] is 8, outside the 8 pages");
  page_indices_[2] = -1;
  ExpectRefused("PageTable::page_indices[2] is -1");
}

TEST_F(AttentionPlanTest, RefusesIndptrThatFallsOrEndsTooFar) {
  indptr_[1] = 6;
  ExpectRefused("PageTable::indptr falls from 6 to 5 at sequence 1");
  indptr_[1] = 2;
  indptr_[2] = 6;
  ExpectRefused("PageTable::indptr ends at 6, but there are 5 page indices");
  indptr_[0] = -1;
  ExpectRefused("PageTable::indptr[0] is -1");
}

TEST_F(AttentionPlanTest, RefusesArraysOfOtherLengths) {
  inputs_.table.indptr = absl::MakeConstSpan(indptr_).first(2);
  ExpectRefused("PageTable::indptr has 2 entries for 2 sequences");
  UseOwnArrays();
  inputs_.table.first_token = {};
  ExpectRefused("PageTable::first_token has 0 entries for 2 sequences");
  UseOwnArrays();
  inputs_.table.block_tokens = 32;
  ExpectRefused("PageTable::block_tokens is 32, but pages hold 16");
}

TEST_F(AttentionPlanTest, RefusesLengthsBeyondTheTable) {
  last_page_tokens_[0] = 17;
  ExpectRefused("PageTable::last_page_tokens[0] is 17 for 2 pages of 16");
  last_page_tokens_[0] = 0;
  ExpectRefused("PageTable::last_page_tokens[0] is 0 for 2 pages");
  last_page_tokens_[0] = 4;
  indptr_ = {0, 0, 5};
  ExpectRefused("PageTable::last_page_tokens[0] is 4 for 0 pages");
}

TEST_F(AttentionPlanTest, RefusesReleasedTokensThatAreSeen) {
  first_token_[1] = 8;
  ExpectRefused("PageTable::first_token[1] is 8, not a multiple of 16");
  // Sequence 1 now ends at token 81 and lacks tokens 0 to 47.
  first_token_[1] = 48;
  ExpectRefused("its tokens 0 to 47 were released");
  AttentionOptions options;
  options.window = 34;
  ExpectRefused("its tokens 0 to 47 were released", options);
  options.window = 33;
  EXPECT_TRUE(Prefill(options).ok()) << Prefill(options);
}

TEST_F(AttentionPlanTest, RefusesSinksThatWereReleased) {
  first_token_[1] = 48;
  inputs_.table.sink_pages = 1;
  AttentionOptions options;
  options.window = 10;
  options.sink_tokens = 16;
  EXPECT_TRUE(Prefill(options).ok()) << Prefill(options);
  out_.assign(out_.size(), 7.0f);
  lse_.assign(lse_.size(), 7.0f);
  options.sink_tokens = 17;
  ExpectRefused("sequence 1 kept only the first 16 tokens", options);
  inputs_.table.sink_pages = 4;
  ExpectRefused("4 sink pages", options);
  inputs_.table.sink_pages = -1;
  ExpectRefused("PageTable::sink_pages is -1", options);
}

TEST_F(AttentionPlanTest, RefusesQueryOffsets) {
  qo_indptr_ = {0, 2};
  ExpectRefused("qo_indptr has 2 entries for 2 sequences");
  qo_indptr_ = {1, 2, 3};
  ExpectRefused("qo_indptr[0] is 1");
  qo_indptr_ = {0, 4, 3};
  ExpectRefused("qo_indptr falls from 4 to 3 at sequence 1");
  qo_indptr_ = {0, 21, 22};
  ExpectRefused("sequence 0 has 21 queries, but only 20 tokens");
}

TEST_F(AttentionPlanTest, RefusesOptions) {
  AttentionOptions options;
  options.scale = std::nanf("");
  ExpectRefused("scale is nan", options);
  options.scale = std::numeric_limits<float>::infinity();
  ExpectRefused("scale is inf", options);
  options = {};
  options.soft_cap = -1.0f;
  ExpectRefused("soft_cap is -1", options);
  options.soft_cap = std::nanf("");
  ExpectRefused("soft_cap is nan", options);
}

TEST_F(AttentionPlanTest, RefusesArrays) {
  q_.pop_back();
  inputs_.q = q_;
  ExpectRefused("q has 287 elements, must have 288");
  inputs_.q = absl::MakeConstSpan(static_cast<const float*>(nullptr), 288);
  ExpectRefused("q is null");
  q_.resize(290);
  inputs_.q =
      absl::MakeConstSpan(reinterpret_cast<const float*>(
                              reinterpret_cast<const char*>(q_.data()) + 2),
                          288);
  ExpectRefused("not a multiple of 4");
  UseOwnArrays();
  inputs_.q = absl::MakeConstSpan(q_).first(288);
  out_.push_back(7.0f);
  ExpectRefused("out has 289 elements, must have 288");
  out_.pop_back();
  lse_.pop_back();
  ExpectRefused("lse has 17 elements, must have 18");
}

TEST_F(AttentionPlanTest, RefusesALayerThatIsNotThere) {
  inputs_.layer = 2;
  ExpectRefused("layer is 2, but pages hold 2");
}

TEST_F(AttentionPlanTest, ChecksThePagesOfEachRun) {
  auto plan = AttentionPlan::ForPrefill(inputs_.pages, 6, inputs_.table,
                                        qo_indptr_, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->total_queries(), 3);
  EXPECT_EQ(plan->isa(), SupportedIsas().front());
  SerialFor serial;
  const AttentionOutputs outputs{absl::MakeSpan(out_), {}};
  KvPages pages = inputs_.pages;
  --pages.num_pages;
  EXPECT_FALSE(plan->Run(pages, 0, q_, outputs, serial).ok());
  pages = inputs_.pages;
  pages.shape.head_dim = 8;
  EXPECT_FALSE(plan->Run(pages, 0, q_, outputs, serial).ok());
  pages = inputs_.pages;
  pages.layout.base = nullptr;
  EXPECT_FALSE(plan->Run(pages, 0, q_, outputs, serial).ok());
  EXPECT_EQ(out_, std::vector<float>(out_.size(), 7.0f));
  EXPECT_TRUE(plan->Run(inputs_.pages, 0, q_, outputs, serial).ok());
}

// One plan serves layers in one pool, and layers that were allocated apart in
// another order of bytes.
TEST(AttentionPlanLayersTest, OnePlanRunsEveryLayer) {
  AttentionSpec spec = SmallSpec();
  spec.shape.layers = 1;
  AttentionSpec other = spec;
  other.order = testing::PageOrder::kLayersKvPagesTokensHeads;
  const AttentionProblem first(spec);
  const AttentionProblem second(other);  // same data, other order
  ASSERT_EQ(first.inputs().table.page_indices,
            second.inputs().table.page_indices);
  ThreadPool pool(2);
  const auto want = RunReference(first, pool);
  ASSERT_TRUE(want.ok()) << want.status();

  auto plan = AttentionPlan::ForPrefill(
      first.inputs().pages, 6, first.inputs().table, first.qo_indptr(), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const AttentionProblem* problem : {&first, &second, &first}) {
    testing::AttentionResult got{std::vector<float>(18 * 16),
                                 std::vector<float>(18)};
    const absl::Status status =
        plan->Run(problem->inputs().pages, 0, problem->inputs().q,
                  {absl::MakeSpan(got.out), absl::MakeSpan(got.lse)}, pool);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Compare(*want, got,
                      testing::ToleranceFor(Isa::kAuto, spec.shape.dtype)),
              "");
  }
}

TEST(AttentionPlanLayersTest, EmptyBatchesAndEmptySequences) {
  AttentionSpec spec = SmallSpec();
  spec.decode = true;
  spec.sequences = {};
  SerialFor serial;
  const AttentionProblem nothing(spec);
  EXPECT_TRUE(RunKernel(nothing, Isa::kAuto, serial)->out.empty());

  spec.sequences = {{1, 0}, {1, 5}, {1, 0}};
  const AttentionProblem some(spec);
  const auto got = RunKernel(some, Isa::kAuto, serial);
  ASSERT_TRUE(got.ok()) << got.status();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < 6 * 16; ++i) EXPECT_EQ(got->out[i], 0.0f);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(got->lse[i], -kInfinity);
  EXPECT_EQ(Compare(*RunReference(some, serial), *got,
                    testing::ToleranceFor(Isa::kAuto, spec.shape.dtype)),
            "");
}

}  // namespace
}  // namespace paged_kv::attention

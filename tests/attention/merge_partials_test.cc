// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/merge_partials.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "attention/paged_decode.h"
#include "gtest/gtest.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention {
namespace {

using testing::Random;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Part {
  std::vector<float> out;
  std::vector<float> lse;
  PartialAttention view() const { return {out, lse}; }
};

struct Merged {
  std::vector<float> out;
  std::vector<float> lse;
};

Merged Merge(const std::vector<Part>& parts, size_t rows, uint32_t dim) {
  std::vector<PartialAttention> views;
  for (const Part& part : parts) views.push_back(part.view());
  Merged merged{std::vector<float>(rows * dim, std::nanf("")),
                std::vector<float>(rows, std::nanf(""))};
  const absl::Status status =
      MergePartials(views, rows, dim,
                    {absl::MakeSpan(merged.out), absl::MakeSpan(merged.lse)});
  EXPECT_TRUE(status.ok()) << status;
  return merged;
}

TEST(MergePartialsTest, FollowsItsFormula) {
  Random random(5);
  constexpr size_t kRows = 7;
  constexpr uint32_t kDim = 24;
  std::vector<Part> parts(3);
  for (Part& part : parts) {
    for (size_t i = 0; i < kRows * kDim; ++i) {
      part.out.push_back(random.Uniform(2.0f));
    }
    for (size_t i = 0; i < kRows; ++i) part.lse.push_back(random.Uniform(9.0f));
  }
  const Merged merged = Merge(parts, kRows, kDim);
  for (size_t r = 0; r < kRows; ++r) {
    double sum = 0.0;
    for (const Part& part : parts) sum += std::exp(double{part.lse[r]});
    EXPECT_NEAR(merged.lse[r], std::log(sum), 1e-5);
    for (uint32_t d = 0; d < kDim; ++d) {
      double want = 0.0;
      for (const Part& part : parts) {
        want += std::exp(double{part.lse[r]}) / sum * part.out[r * kDim + d];
      }
      EXPECT_NEAR(merged.out[r * kDim + d], want, 1e-6);
    }
  }
}

TEST(MergePartialsTest, PartsWithoutKeysHaveNoInfluence) {
  const float nan = std::nanf("");
  // Row 0: only the second part has keys; row 1: none; row 2: two of three.
  const std::vector<Part> parts = {
      {{nan, nan, 5.0f, nan, 1.0f, 3.0f}, {-kInfinity, -kInfinity, 2.0f}},
      {{0.1f, -0.0f, nan, nan, nan, nan}, {1e-40f, -kInfinity, -kInfinity}},
      {{nan, nan, 0.0f, 0.0f, 3.0f, 5.0f}, {-kInfinity, -kInfinity, 2.0f}}};
  const Merged merged = Merge(parts, 3, 2);
  EXPECT_EQ(merged.out[0], 0.1f);
  EXPECT_EQ(merged.out[1], 0.0f);
  EXPECT_TRUE(std::signbit(merged.out[1]));
  EXPECT_EQ(merged.lse[0], 1e-40f);
  EXPECT_EQ(merged.out[2], 0.0f);
  EXPECT_EQ(merged.out[3], 0.0f);
  EXPECT_EQ(merged.lse[1], -kInfinity);
  EXPECT_EQ(merged.out[4], 2.0f);
  EXPECT_EQ(merged.out[5], 4.0f);
  EXPECT_FLOAT_EQ(merged.lse[2], 2.0f + std::log(2.0f));
}

TEST(MergePartialsTest, NoPartsGiveZeros) {
  const Merged merged = Merge({}, 2, 3);
  EXPECT_EQ(merged.out, std::vector<float>(6, 0.0f));
  EXPECT_EQ(merged.lse, std::vector<float>(2, -kInfinity));
}

TEST(MergePartialsTest, LargeLseDoNotOverflow) {
  const Merged merged =
      Merge({{{1.0f}, {3e38f}}, {{2.0f}, {-3e38f}}, {{3.0f}, {3e38f}}}, 1, 1);
  EXPECT_EQ(merged.out[0], 2.0f);
  EXPECT_EQ(merged.lse[0], 3e38f);
}

TEST(MergePartialsTest, MayWriteOverAPart) {
  std::vector<Part> parts = {{{1.0f, 2.0f}, {0.0f}}, {{3.0f, 6.0f}, {0.0f}}};
  const Merged want = Merge(parts, 1, 2);
  const std::vector<PartialAttention> views = {parts[0].view(),
                                               parts[1].view()};
  ASSERT_TRUE(MergePartials(
                  views, 1, 2,
                  {absl::MakeSpan(parts[1].out), absl::MakeSpan(parts[1].lse)})
                  .ok());
  EXPECT_EQ(parts[1].out, want.out);
  EXPECT_EQ(parts[1].lse, want.lse);
}

// A sequence's keys cut in two tables and attended apart, as when one part of
// the pages lies elsewhere, merge to the attention over all of them.
TEST(MergePartialsTest, SplitTablesMergeToTheWhole) {
  testing::AttentionSpec spec;
  spec.shape.kv_heads = 2;
  spec.shape.head_dim = 64;
  spec.group = 3;
  spec.decode = true;
  spec.sequences = {{1, 150}};
  const testing::AttentionProblem problem(spec);
  SerialFor serial;
  const auto want = RunReference(problem, serial);
  ASSERT_TRUE(want.ok());

  const AttentionInputs whole = problem.inputs();
  std::vector<Part> parts;
  for (const int pages : {4, 6}) {
    // Pages 0 .. 3 are full; pages 4 .. 9 end with the sequence's last.
    const int first = pages == 4 ? 0 : 4;
    const std::vector<int32_t> indptr = {first, first + pages};
    const std::vector<int32_t> last = {pages == 4 ? 16 : 150 % 16};
    AttentionInputs inputs = whole;
    inputs.table.indptr = indptr;
    inputs.table.last_page_tokens = last;
    Part part{std::vector<float>(6 * 64), std::vector<float>(6)};
    ASSERT_TRUE(
        PagedDecode(inputs, {},
                    {absl::MakeSpan(part.out), absl::MakeSpan(part.lse)},
                    serial)
            .ok());
    parts.push_back(part);
  }
  const Merged merged = Merge(parts, 6, 64);
  EXPECT_EQ(testing::Compare(*want, {merged.out, merged.lse},
                             testing::kPortableTolerance),
            "");
}

TEST(MergePartialsTest, RefusesArraysOfOtherSizes) {
  const std::vector<float> out(6), lse(3);
  std::vector<float> to_out(6), to_lse(3);
  const auto expect_refused = [](const absl::Status& status,
                                 const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  const AttentionOutputs outputs{absl::MakeSpan(to_out),
                                 absl::MakeSpan(to_lse)};
  const absl::Span<const float> short_lse(lse.data(), 2);
  const PartialAttention good{out, lse};
  const PartialAttention bad{out, short_lse};
  expect_refused(MergePartials({good, bad}, 3, 2, outputs),
                 "parts[1].lse has 2 elements, must have 3");
  expect_refused(MergePartials({good}, 3, 4, outputs),
                 "parts[0].out has 6 elements, must have 12");
  expect_refused(MergePartials({}, 2, 2, outputs),
                 "out has 6 elements, must have 4");
  expect_refused(MergePartials({}, 3, 0, outputs), "v_head_dim 0");
  const auto* misaligned = reinterpret_cast<const float*>(
      reinterpret_cast<const char*>(out.data()) + 1);
  const PartialAttention crooked{absl::MakeConstSpan(misaligned, 2), short_lse};
  expect_refused(
      MergePartials({crooked}, 2, 1, {absl::MakeSpan(to_out).first(2), {}}),
      "not a multiple of 4");
}

}  // namespace
}  // namespace paged_kv::attention

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/step_time_model.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

TEST(StepTimeModelTest, CountsQueriesKeysAndBytes) {
  StepWork work;
  work.Add(0, 3);   // queries see 1, 2, 3 keys
  work.Add(10, 1);  // and 11
  EXPECT_EQ(work.tokens, 4u);
  EXPECT_DOUBLE_EQ(work.query_key_pairs, 17);
  EXPECT_EQ(work.kv_tokens, 14u);
}

TEST(StepTimeModelTest, TheSlowerOfTheTwoRates) {
  StepTimeModel model;
  model.flops_per_second = 1000;
  model.bytes_per_second = 100;
  model.weights = 10;
  model.weight_bytes = 20;
  model.kv_bytes_per_token = 2;
  model.flops_per_query_and_key = 4;
  StepWork work;
  work.Add(5, 1);
  // 2 * 10 + 4 * 6 = 44 flops, 20 + 2 * 6 = 32 bytes.
  EXPECT_EQ(StepTime(model, work), absl::Milliseconds(320));
  model.bytes_per_second = 1e9;
  EXPECT_EQ(StepTime(model, work), absl::Milliseconds(44));
}

// Sanity of the documented constants: a lone decode step reads 14 GB at
// 2.7 TB/s; a long prompt runs at the arithmetic rate.
TEST(StepTimeModelTest, DecodeIsBoundByMemoryAndPrefillByArithmetic) {
  const StepTimeModel model;
  StepWork decode;
  decode.Add(1000, 1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(StepTime(model, decode)), 5.3, 0.1);
  StepWork prefill;
  prefill.Add(0, 8192);
  const double flops =
      2 * 7.07e9 * 8192 + 4.0 * 28 * 28 * 128 * (8192.0 * 8193 / 2);
  EXPECT_NEAR(absl::ToDoubleSeconds(StepTime(model, prefill)),
              flops / (0.6 * 989e12), 1e-6);
}

}  // namespace
}  // namespace paged_kv::tool

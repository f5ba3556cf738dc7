// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/check.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "paged_kv/status_macros.h"

namespace paged_kv {
namespace {

TEST(CheckTest, ATrueConditionIsEvaluatedOnceAndPasses) {
  int evaluated = 0;
  PAGED_KV_CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, AFalseConditionNamesItselfAndItsPlace) {
  EXPECT_DEATH(PAGED_KV_CHECK(1 + 1 == 3),
               "check_test.cc:[0-9]+: PagedKV invariant broken: 1 \\+ 1 == 3");
}

TEST(CheckDeathTest, DebugChecksAreForDebugBuilds) {
  int evaluated = 0;
#ifdef NDEBUG
  PAGED_KV_DCHECK(++evaluated == 7);
  EXPECT_EQ(evaluated, 0);
#else
  PAGED_KV_DCHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
  EXPECT_DEATH(PAGED_KV_DCHECK(false), "invariant broken");
#endif
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}
absl::StatusOr<int> Quarter(int n) {
  PAGED_KV_ASSIGN_OR_RETURN(const int half, Half(n));
  PAGED_KV_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}
absl::Status Check(int n, int* reached) {
  PAGED_KV_RETURN_IF_ERROR(Half(n).status());
  ++*reached;
  return absl::OkStatus();
}

TEST(StatusMacrosTest, ErrorsReturnAndValuesMove) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  EXPECT_EQ(Quarter(5).status().code(), absl::StatusCode::kInvalidArgument);
  int reached = 0;
  EXPECT_TRUE(Check(2, &reached).ok());
  EXPECT_FALSE(Check(3, &reached).ok());
  EXPECT_EQ(reached, 1);
}

}  // namespace
}  // namespace paged_kv

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/isa.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace paged_kv::attention {
namespace {

TEST(IsaTest, NamesParseBack) {
  for (const Isa isa : {Isa::kAuto, Isa::kScalar, Isa::kSsse3, Isa::kSse4,
                        Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Dl, Isa::kNeon}) {
    const auto parsed = ParseIsa(IsaName(isa));
    ASSERT_TRUE(parsed.ok()) << IsaName(isa);
    EXPECT_EQ(*parsed, isa);
  }
}

TEST(IsaTest, UnknownNameListsTheNames) {
  const auto parsed = ParseIsa("avx3");
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(parsed.status().message(), "\"avx3\""))
      << parsed.status();
  EXPECT_TRUE(
      absl::StrContains(parsed.status().message(), "avx512, avx2, sse4"))
      << parsed.status();
}

TEST(IsaTest, ScalarIsAlwaysThereAndLast) {
  const std::vector<Isa>& isas = SupportedIsas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.back(), Isa::kScalar);
  EXPECT_EQ(std::count(isas.begin(), isas.end(), Isa::kAuto), 0);
}

TEST(IsaTest, ResolvesToWhatIsSupported) {
  EXPECT_EQ(*ResolveIsa(Isa::kAuto), SupportedIsas().front());
  for (const Isa isa : SupportedIsas()) EXPECT_EQ(*ResolveIsa(isa), isa);
}

TEST(IsaTest, RefusesWhatTheMachineDoesNotRun) {
#if defined(__x86_64__)
  const Isa foreign = Isa::kNeon;
#else
  const Isa foreign = Isa::kAvx2;
#endif
  const auto resolved = ResolveIsa(foreign);
  EXPECT_EQ(resolved.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(resolved.status().message(), IsaName(foreign)))
      << resolved.status();
}

}  // namespace
}  // namespace paged_kv::attention

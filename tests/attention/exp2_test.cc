// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/simd_targets_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/attention/exp2_test.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/exp2-inl.h"
#include "gtest/gtest.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

// 2^x of a multiple of 16 values.
void Exp2OfAll(const float* from, size_t count, float* to) {
  const hn::CappedTag<float, 16> d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(Exp2(d, hn::LoadU(d, from + i)), d, to + i);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paged_kv::attention::internal {
namespace {

std::vector<float> Exp2OnIsa(Isa isa, std::vector<float> x) {
  const size_t count = x.size();
  x.resize((count + 15) / 16 * 16);
  std::vector<float> result(x.size());
  PAGED_KV_FUNCTION_FOR_ISA(Exp2OfAll, isa)(x.data(), x.size(), result.data());
  result.resize(count);
  return result;
}

TEST(Exp2Test, StaysWithinItsStatedError) {
  std::vector<float> x;
  for (int i = 0; i <= 1'000'000; ++i) {
    x.push_back(-126.0f + 190.0f * static_cast<float>(i) / 1e6f);
  }
  for (float small = 1e-30f; small < 1.0f; small *= 1.01f) {
    x.push_back(small);
    x.push_back(-small);
  }
  for (const Isa isa : SupportedIsas()) {
    const std::vector<float> got = Exp2OnIsa(isa, x);
    double worst = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      // Results below the smallest normal number lose bits.
      if (x[i] < -125.0f) continue;
      const double want = std::exp2(double{x[i]});
      worst = std::max(worst, std::abs(got[i] / want - 1.0));
    }
    EXPECT_LT(worst, 2e-7) << IsaName(isa);
  }
}

TEST(Exp2Test, IsExactWhereSoftmaxNeedsIt) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Isa isa : SupportedIsas()) {
    SCOPED_TRACE(IsaName(isa));
    const std::vector<float> got = Exp2OnIsa(
        isa, {0.0f, -0.0f, -kInfinity, -127.0f, -1e30f, 10.0f, -126.0f});
    EXPECT_EQ(got[0], 1.0f);
    EXPECT_EQ(got[1], 1.0f);
    EXPECT_EQ(got[2], 0.0f);
    EXPECT_EQ(got[3], 0.0f);
    EXPECT_EQ(got[4], 0.0f);
    EXPECT_EQ(got[5], 1024.0f);
    EXPECT_EQ(got[6], std::numeric_limits<float>::min());
  }
}

TEST(Exp2Test, KeepsNanWhateverItsPayload) {
  for (const uint32_t bits :
       {0x7FC00000u, 0xFFFFFFFFu, 0x7F800001u, 0xFFC00123u, 0x7FFFFFFFu}) {
    float nan;
    std::memcpy(&nan, &bits, sizeof(nan));
    for (const Isa isa : SupportedIsas()) {
      EXPECT_TRUE(std::isnan(Exp2OnIsa(isa, {nan}).front()))
          << IsaName(isa) << " " << bits;
    }
  }
}

}  // namespace
}  // namespace paged_kv::attention::internal
#endif  // HWY_ONCE

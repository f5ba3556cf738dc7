// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// NaN and infinities in tokens that are seen, with scores that later chunks
// outgrow by more than f32 has exponents. Where double precision has no finite
// result there must be none: a row that looks sound would go on as if nothing
// had happened.

#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"
#include "tests/support/attention_problem.h"
#include "tests/support/sanitized.h"

namespace paged_kv::attention::testing {
namespace {

constexpr uint32_t kTokens = 300;  // several chunks, the last one not full

struct Spoilt {
  DType dtype;
  bool in_scale;
  uint32_t bits;  // of an element
  const char* name;
};
constexpr Spoilt kSpoilt[] = {
    {DType::kF32, false, 0x7FC00000, "f32 NaN"},
    {DType::kF32, false, 0x7F800000, "f32 infinity"},
    {DType::kF16, false, 0x7E00, "f16 NaN"},
    {DType::kF16, false, 0xFC00, "f16 -infinity"},
    {DType::kBF16, false, 0x7FC0, "bf16 NaN"},
    {DType::kBF16, false, 0x7F80, "bf16 infinity"},
    {DType::kFp8E4M3, false, 0x7F, "fp8 NaN"},
    {DType::kFp8E4M3, true, 0, "scale of fp8"},
    {DType::kInt8, true, 0, "scale of int8"},
};

void Spoil(const Spoilt& spoilt, bool in_key, uint32_t page, uint32_t slot,
           PageMemory* memory) {
  if (spoilt.in_scale) {
    memory->StoreScale(in_key ? memory->KeyScaleOffset(page, 0, 0, slot)
                              : memory->ValueScaleOffset(page, 0, 0, slot),
                       std::numeric_limits<float>::quiet_NaN());
    return;
  }
  memory->StoreBits(in_key ? memory->KeyOffset(page, 0, 0, slot, 3)
                           : memory->ValueOffset(page, 0, 0, slot, 3),
                    spoilt.bits);
}

// How many outputs are not finite in double precision. All of them have to be
// so on every instruction set, and others finite if `finite_too`.
int CompareAll(const AttentionProblem& problem, bool finite_too) {
  SerialFor serial;
  const auto want = RunReference(problem, serial);
  EXPECT_TRUE(want.ok()) << want.status();
  int count = 0;
  for (const double value : want->out) count += std::isfinite(value) ? 0 : 1;
  for (const Isa isa : SupportedIsas()) {
    const auto got = RunKernel(problem, isa, serial);
    EXPECT_TRUE(got.ok()) << got.status();
    const Tolerance tolerance = ToleranceFor(isa, problem.spec().shape.dtype);
    const auto compare = [&](double exact, float value, const char* what,
                             size_t i) {
      if (!std::isfinite(exact)) {
        EXPECT_FALSE(std::isfinite(value))
            << IsaName(isa) << " " << what << "[" << i << "] is " << value;
      } else if (finite_too) {
        // Scores of a hundred: their rounding shows in weights.
        const double error = std::fabs(value - exact);
        EXPECT_LE(error, 300 * (tolerance.absolute +
                                tolerance.relative * std::fabs(exact)))
            << IsaName(isa) << " " << what << "[" << i << "]";
      }
    };
    for (size_t i = 0; i < want->out.size(); ++i) {
      compare(want->out[i], got->out[i], "out", i);
    }
    for (size_t i = 0; i < want->lse.size(); ++i) {
      compare(want->lse[i], got->lse[i], "lse", i);
    }
    if (::testing::Test::HasFailure()) break;
  }
  return count;
}

void ExpectNoLaterKeyHidesIt(const Spoilt& spoilt, uint32_t head_dim) {
  const bool infinity =
      std::string(spoilt.name).find("infinity") != std::string::npos;
  const uint64_t seed = TestSeed(20261204);
  int not_finite = 0;
  for (const uint32_t queries : {1, 40}) {
    for (const bool in_key : {false, true}) {
      for (const float scale : {0.25f, 60.0f, -60.0f}) {
        for (const size_t index : {0, 3, 9, 18}) {
          if (kSanitized && (index == 3 || index == 9)) continue;
          for (const bool whole_page : {false, true}) {
            SCOPED_TRACE(::testing::Message()
                         << queries << " queries, " << (in_key ? "K" : "V")
                         << " of page " << index
                         << (whole_page ? ", all slots" : ", slot 5")
                         << ", scale " << scale);
            AttentionSpec spec;
            spec.shape.dtype = spoilt.dtype;
            spec.shape.head_dim = head_dim;
            spec.group = 2;
            spec.decode = queries == 1;
            spec.sequences = {{queries, kTokens}};
            spec.options.scale = scale;
            spec.seed = seed + index;
            AttentionProblem problem(spec);
            const auto page = static_cast<uint32_t>(
                problem.inputs().table.page_indices[index]);
            for (uint32_t slot = 0; slot < spec.shape.block_tokens; ++slot) {
              if (slot != 5 && !whole_page) continue;
              Spoil(spoilt, in_key, page, slot, &problem.memory());
            }
            // An infinity meets zeros of a tile. A value that is not finite
            // meets a weight of 0 in queries of its tile before it.
            const bool finite_too = !infinity && (in_key || queries == 1);
            not_finite += CompareAll(problem, finite_too);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GT(not_finite, 1000);
}

class NotFiniteTest : public ::testing::TestWithParam<Spoilt> {};

TEST_P(NotFiniteTest, NoLaterKeyHidesIt) {
  // 8-bit types have kernels for heads that fill vectors.
  for (const uint32_t head_dim : {16, 64}) {
    SCOPED_TRACE(::testing::Message() << "head_dim " << head_dim);
    ExpectNoLaterKeyHidesIt(GetParam(), head_dim);
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, NotFiniteTest, ::testing::ValuesIn(kSpoilt),
                         [](const auto& param) {
                           std::string name = param.param.name;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) ==
                                 0)
                               c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace paged_kv::attention::testing

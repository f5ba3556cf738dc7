// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// NaN and infinities in what paged_decode reads. Wherever double precision has
// no finite result the kernel must not have one either: a row that looks sound
// would go on as if nothing had happened.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/decode_model.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kNotFinite[] = {kNan, kInfinity, -kInfinity};
constexpr uint32_t kTiles = 5;
constexpr uint32_t kTokens = kTiles * kTileSlots - 3;

// One item of kTokens tokens, from slot 2 on, on pages of one tile.
DecodeCase NewCase(KvElement element, std::mt19937_64& random) {
  DecodeShape shape;
  shape.element = element;
  shape.head_dim = random() % 2 == 0 ? 8 : 64;
  shape.group_heads = 3;
  shape.num_pages = shape.table_entries = kTiles + 1;
  DecodeCase launch(shape);
  launch.Fill(random);
  for (uint32_t i = 0; i < shape.table_entries; ++i) launch.table.Set(i, i);
  DecodeItem item = launch.NewItem(0);
  item.first_slot = 2;
  item.num_tokens = kTokens;
  launch.SetItem(0, item);
  return launch;
}

// How scores go on after the tile that has the value: with what follows each
// tile's largest score grows by about this many powers of 2.
void GrowScores(DecodeCase& launch, float growth) {
  const DecodeShape& shape = launch.shape;
  for (size_t i = 0; i < launch.queries.size() / 2; ++i) {
    launch.queries.Set(i, Bf16OfFloat(1.0f));
  }
  DecodeItem item = launch.Item(0);
  item.scale = 1.0f / static_cast<float>(shape.head_dim);
  launch.SetItem(0, item);
  for (uint32_t token = 0; token < kTokens; ++token) {
    uint32_t page, slot;
    launch.Place(item, token, &page, &slot);
    const float score = growth * static_cast<float>(page) +
                        0.01f * static_cast<float>(token % 7);
    for (uint32_t d = 0; d < shape.head_dim; ++d) {
      const size_t byte = launch.KeyByte(page, 0, slot, d);
      if (shape.int8()) {
        launch.kv.Set(byte, int8_t{100});
      } else {
        launch.kv.Set(byte / 2, Bf16OfFloat(score));
      }
    }
    if (!shape.int8()) continue;
    launch.kv.Set(launch.KeyScaleByte(page, 0, slot) / 4, score / 100.0f);
  }
}

using Spoil =
    std::function<void(DecodeCase&, uint32_t page, uint32_t slot, float value)>;
struct Place {
  std::string name;
  Spoil spoil;
};

void SpoilKeyScale(DecodeCase& launch, uint32_t page, uint32_t slot,
                   float value) {
  launch.kv.Set(launch.KeyScaleByte(page, 0, slot) / 4, value);
}
void SpoilValueScale(DecodeCase& launch, uint32_t page, uint32_t slot,
                     float value) {
  launch.kv.Set(launch.ValueScaleByte(page, 0, slot) / 4, value);
}
void SpoilKey(DecodeCase& launch, uint32_t page, uint32_t slot, float value) {
  for (uint32_t d = 0; d < launch.shape.head_dim; ++d) {
    launch.kv.Set(launch.KeyByte(page, 0, slot, d) / 2, Bf16OfFloat(value));
  }
}
void SpoilOneOfKey(DecodeCase& launch, uint32_t page, uint32_t slot,
                   float value) {
  launch.kv.Set(launch.KeyByte(page, 0, slot, 5) / 2, Bf16OfFloat(value));
}
void SpoilOneOfValue(DecodeCase& launch, uint32_t page, uint32_t slot,
                     float value) {
  launch.kv.Set(launch.ValueByte(page, 0, slot, 5) / 2, Bf16OfFloat(value));
}

std::vector<Place> Places(KvElement element) {
  if (element == KvElement::kInt8) {
    return {{"scale of K", SpoilKeyScale}, {"scale of V", SpoilValueScale}};
  }
  return {{"K", SpoilKey},
          {"one element of K", SpoilOneOfKey},
          {"one element of V", SpoilOneOfValue}};
}

float Out(const DecodeCase& launch, uint32_t head, uint32_t dim) {
  return launch.out.Get<float>(
      head * OutRowBeats(launch.shape.head_dim) * size_t{16} + dim);
}
float Lse(const DecodeCase& launch, uint32_t head) {
  return launch.out.Get<float>(size_t{launch.Item(0).lse_beat} * 16 + head);
}

void ExpectClose(float got, double exact, const std::string& what) {
  const double error = std::fabs(double{got} - exact);
  EXPECT_LE(error, 1e-3 * std::fmax(1.0, std::fabs(exact))) << what;
}

// What the kernel gives, against its model to the bit and, as far as it can be
// asked of f32, against double precision. The number of values that are not
// finite.
int RunAndCompare(DecodeCase& launch, bool finite_too) {
  EXPECT_TRUE(launch.Run(kSequentialKernels).ok());
  EXPECT_EQ(launch.Status().code, KernelError::kOk);
  EXPECT_TRUE(launch.out == ModelOutputs(launch));
  const ExactAttention exact = ExactItem(launch, launch.Item(0));
  int count = 0;
  const auto compare = [&](float got, double want, const std::string& what) {
    if (!std::isfinite(want)) {
      ++count;
      EXPECT_FALSE(std::isfinite(got)) << what << " is " << got;
    } else if (finite_too) {
      ExpectClose(got, want, what);
    }
  };
  for (uint32_t head = 0; head < launch.shape.group_heads; ++head) {
    const std::string name = "head " + std::to_string(head);
    for (uint32_t d = 0; d < launch.shape.head_dim; ++d) {
      compare(Out(launch, head, d), exact.out[head * launch.shape.head_dim + d],
              name + " dim " + std::to_string(d));
    }
    compare(Lse(launch, head), exact.lse[head], name + " lse");
  }
  return count;
}

class DecodeNotFiniteTest : public testing::TestWithParam<KvElement> {};

// One token, or all tokens of a page, in each page; with scores that fall, stay
// and grow, by more than f32 has exponents.
TEST_P(DecodeNotFiniteTest, NoLaterTileHidesIt) {
  std::mt19937_64 random(TestSeed(20261201));
  int not_finite = 0;
  for (const Place& place : Places(GetParam())) {
    for (const float value : kNotFinite) {
      for (const float growth : {-200.0f, 0.0f, 3.0f, 60.0f, 200.0f}) {
        for (uint32_t page = 0; page < kTiles; ++page) {
          for (const bool whole_page : {false, true}) {
            SCOPED_TRACE(testing::Message()
                         << value << " in " << place.name << " of page " << page
                         << (whole_page ? ", all slots" : ", slot 7")
                         << ", scores grow by " << growth);
            DecodeCase launch = NewCase(GetParam(), random);
            GrowScores(launch, growth);
            for (uint32_t slot = 0; slot < kTileSlots; ++slot) {
              if (slot != 7 && !whole_page) continue;
              place.spoil(launch, page, slot, value);
            }
            not_finite += RunAndCompare(launch, /*finite_too=*/true);
          }
        }
      }
    }
  }
  EXPECT_GT(not_finite, 1000);
}

// Any bits at all in pages and queries.
TEST_P(DecodeNotFiniteTest, RandomBits) {
  std::mt19937_64 random(TestSeed(20261202));
  int not_finite = 0;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    DecodeCase launch = NewCase(GetParam(), random);
    const uint64_t spoiled = 1 + random() % 6;
    for (uint64_t n = 0; n < spoiled; ++n) {
      const size_t half_word = random() % (launch.kv.size() / 2);
      launch.kv.Set(half_word,
                    static_cast<uint16_t>(0x7F80 | (random() % 2 << 15) |
                                          (random() % 2 * 0x7F)));
    }
    if (i % 8 == 0) {
      launch.queries.Set(random() % launch.shape.head_dim,
                         Bf16OfFloat(kNotFinite[random() % 3]));
    }
    not_finite += RunAndCompare(launch, /*finite_too=*/false);
  }
  EXPECT_GT(not_finite, 100);
}

INSTANTIATE_TEST_SUITE_P(Elements, DecodeNotFiniteTest,
                         testing::Values(KvElement::kBf16, KvElement::kInt8),
                         [](const auto& param) {
                           return param.param == KvElement::kInt8 ? "Int8"
                                                                  : "Bf16";
                         });

// Scores of -infinity alone: nothing to attend to. The log-sum-exp says so, and
// a merge with other parts gives this one no weight.
TEST(DecodeNotFiniteTest, NothingButMinusInfinity) {
  std::mt19937_64 random(TestSeed(20261203));
  DecodeCase launch = NewCase(KvElement::kBf16, random);
  GrowScores(launch, 1.0f);
  for (uint32_t page = 0; page <= kTiles; ++page) {
    for (uint32_t slot = 0; slot < kTileSlots; ++slot) {
      SpoilKey(launch, page, slot, -kInfinity);
    }
  }
  RunAndCompare(launch, /*finite_too=*/true);
  for (uint32_t head = 0; head < launch.shape.group_heads; ++head) {
    EXPECT_EQ(Lse(launch, head), -kInfinity);
    EXPECT_TRUE(std::isnan(Out(launch, head, 0)));
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma

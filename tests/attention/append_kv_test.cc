// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/append_kv.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attention/reference_attention.h"
#include "gtest/gtest.h"
#include "tests/support/attention_pages.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention {
namespace {

using testing::ElementBits;
using testing::kAllPageOrders;
using testing::PageMemory;
using testing::PageOrder;
using testing::PageOrderName;
using testing::Poison;
using testing::Random;

// K or V of some tokens in the caller's memory, with gaps if asked for.
class InputRows {
 public:
  InputRows(size_t tokens, uint32_t heads, uint32_t dim, DType dtype,
            bool spaced, Random* random)
      : heads_(heads), dim_(dim), dtype_(dtype) {
    const int64_t element = ElementBytes(dtype);
    const int64_t gap = spaced ? 3 * element : 0;
    head_stride_ = dim * element + gap;
    token_stride_ = heads * head_stride_ + gap;
    bytes_.assign(tokens * token_stride_ + 1, 0xEE);
    for (size_t t = 0; t < tokens; ++t) {
      for (uint32_t h = 0; h < heads; ++h) {
        const uint32_t percent_odd = random->Chance(50) ? 10 : 0;
        for (uint32_t d = 0; d < dim; ++d) {
          const uint32_t bits = RandomBits(random, percent_odd);
          std::memcpy(bytes_.data() + Offset(t, h, d), &bits, element);
        }
      }
    }
    rows_.data = bytes_.data();
    rows_.dtype = dtype;
    if (spaced) {
      rows_.token_stride = token_stride_;
      rows_.head_stride = head_stride_;
    }
    if (HasScales(dtype)) AddScales(tokens, spaced, random);
  }

  const KvRows& rows() const { return rows_; }

  // What a page of `stored` has to hold for an element.
  uint32_t WantBits(size_t token, uint32_t head, uint32_t dim,
                    DType stored) const {
    if (dtype_ == stored) return Bits(token, head, dim);
    const float value = Value(token, head, dim);
    return ElementBits(
        HasScales(stored) ? value / WantScale(token, head, stored) : value,
        stored);
  }

  // What a page of 8-bit `stored` has to hold for a row.
  float WantScale(size_t token, uint32_t head, DType stored) const {
    if (dtype_ == stored) return scales_[ScaleIndex(token, head)];
    float largest = 0.0f;
    for (uint32_t d = 0; d < dim_; ++d) {
      const float magnitude = std::abs(Value(token, head, d));
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    if (largest == 0.0f) return 1.0f;
    return std::max(largest / (stored == DType::kInt8 ? 127.0f : 448.0f),
                    0x1p-126f);
  }

  float Value(size_t token, uint32_t head, uint32_t dim) const {
    return std::bit_cast<float>(Bits(token, head, dim));
  }

 private:
  size_t Offset(size_t token, uint32_t head, uint32_t dim) const {
    return token * token_stride_ + head * head_stride_ +
           dim * ElementBytes(dtype_);
  }

  uint32_t Bits(size_t token, uint32_t head, uint32_t dim) const {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes_.data() + Offset(token, head, dim),
                ElementBytes(dtype_));
    return bits;
  }

  // Ordinary values but for some of any bits: NaNs, infinities, subnormals.
  uint32_t RandomBits(Random* random, uint32_t percent_odd) const {
    if (random->Chance(percent_odd)) {
      return static_cast<uint32_t>(random->Bits());
    }
    return ElementBits(random->Uniform(100.0f), dtype_);
  }

  size_t ScaleIndex(size_t token, uint32_t head) const {
    return (token * rows_.scale_token_stride + head * rows_.scale_head_stride) /
           sizeof(float);
  }

  void AddScales(size_t tokens, bool spaced, Random* random) {
    rows_.scale_head_stride = spaced ? 12 : 4;
    rows_.scale_token_stride =
        heads_ * rows_.scale_head_stride + (spaced ? 20 : 0);
    // What lies between scales is none, and not looked at.
    scales_.assign(tokens * rows_.scale_token_stride / sizeof(float), -1.0f);
    for (size_t t = 0; t < tokens; ++t) {
      for (uint32_t h = 0; h < heads_; ++h) {
        scales_[ScaleIndex(t, h)] = 1.0f + random->Uniform(0.999f);
      }
    }
    rows_.scales = scales_.data();
  }

  uint32_t heads_;
  uint32_t dim_;
  DType dtype_;
  int64_t head_stride_ = 0;
  int64_t token_stride_ = 0;
  std::vector<uint8_t> bytes_;
  std::vector<float> scales_;
  KvRows rows_;
};

struct AppendCase {
  BlockShape shape;
  PageOrder order = PageOrder::kOwn;
  DType input = DType::kF32;
  bool spaced = false;
  uint32_t pages = 6;
  std::vector<int64_t> slots;
  uint64_t seed = 1;
};

// Appends and compares every byte of the pages, untouched ones included.
void ExpectExact(const AppendCase& c, Isa isa) {
  SCOPED_TRACE(absl::StrCat(
      IsaName(isa), " ", PageOrderName(c.order), " ", DTypeName(c.input),
      " to ", DTypeName(c.shape.dtype), " head_dim ", c.shape.head_dim, "/",
      c.shape.VHeadDim(), " block ", c.shape.block_tokens, " seed ", c.seed));
  Random random(c.seed);
  const InputRows k(c.slots.size(), c.shape.kv_heads, c.shape.head_dim, c.input,
                    c.spaced, &random);
  const InputRows v(c.slots.size(), c.shape.kv_heads, c.shape.VHeadDim(),
                    c.input, c.spaced, &random);
  PageMemory got(c.shape, c.pages, c.order, Poison::kNan);
  PageMemory want(c.shape, c.pages, c.order, Poison::kNan);
  const uint32_t layer = c.shape.layers - 1;
  ThreadPool pool(2);
  const absl::Status status =
      AppendKv(got.pages(), layer, k.rows(), v.rows(), c.slots, pool, isa);
  ASSERT_TRUE(status.ok()) << status;

  for (size_t i = 0; i < c.slots.size(); ++i) {
    if (c.slots[i] < 0) continue;
    const auto page = static_cast<uint32_t>(c.slots[i] / c.shape.block_tokens);
    const auto token = static_cast<uint32_t>(c.slots[i] % c.shape.block_tokens);
    for (uint32_t h = 0; h < c.shape.kv_heads; ++h) {
      for (uint32_t d = 0; d < c.shape.head_dim; ++d) {
        want.StoreBits(want.KeyOffset(page, layer, h, token, d),
                       k.WantBits(i, h, d, c.shape.dtype));
      }
      for (uint32_t d = 0; d < c.shape.VHeadDim(); ++d) {
        want.StoreBits(want.ValueOffset(page, layer, h, token, d),
                       v.WantBits(i, h, d, c.shape.dtype));
      }
      if (!HasScales(c.shape.dtype)) continue;
      want.StoreScale(want.KeyScaleOffset(page, layer, h, token),
                      k.WantScale(i, h, c.shape.dtype));
      want.StoreScale(want.ValueScaleOffset(page, layer, h, token),
                      v.WantScale(i, h, c.shape.dtype));
    }
  }
  const auto [mine, theirs] = std::mismatch(
      got.bytes().begin(), got.bytes().end(), want.bytes().begin());
  ASSERT_EQ(mine, got.bytes().end())
      << "byte " << mine - got.bytes().begin() << " is " << int{*mine}
      << ", want " << int{*theirs};
}

BlockShape Shape(DType dtype, uint32_t head_dim, uint32_t block_tokens) {
  BlockShape shape;
  shape.layers = 2;
  shape.kv_heads = 3;
  shape.head_dim = head_dim;
  shape.block_tokens = block_tokens;
  shape.dtype = dtype;
  return shape;
}

// Distinct slots in random order.
std::vector<int64_t> RandomSlots(size_t count, int64_t slots, uint64_t seed) {
  std::vector<int64_t> all(slots);
  std::iota(all.begin(), all.end(), 0);
  Random random(seed);
  random.Shuffle(&all);
  all.resize(count);
  return all;
}

constexpr DType kStored[] = {DType::kF32, DType::kF16, DType::kBF16,
                             DType::kFp8E4M3, DType::kInt8};

TEST(AppendKvTest, SingleTokensInEveryOrderAndDtype) {
  for (const Isa isa : SupportedIsas()) {
    for (const PageOrder order : kAllPageOrders) {
      for (const DType stored : kStored) {
        if (!testing::TakesOrder(stored, order)) continue;
        for (const bool same_input : {false, true}) {
          AppendCase c;
          c.shape = Shape(stored, 40, 16);
          c.shape.v_head_dim = 24;
          c.order = order;
          c.input = same_input ? stored : DType::kF32;
          c.spaced = same_input;
          c.slots = RandomSlots(7, 6 * 16, 3);
          c.slots[2] = -1;  // padding
          c.slots[5] = -1;
          ExpectExact(c, isa);
        }
      }
    }
  }
}

// A prompt: runs that start inside a tile, whole tiles, an end inside a tile,
// and more tokens than one task takes.
TEST(AppendKvTest, RunsOfTokens) {
  for (const Isa isa : SupportedIsas()) {
    for (const DType stored : kStored) {
      for (const DType input : {DType::kF32, stored}) {
        AppendCase c;
        c.shape = Shape(stored, 136, 32);
        c.input = input;
        c.pages = 12;
        for (int64_t slot = 5; slot < 5 + 300; ++slot) c.slots.push_back(slot);
        ExpectExact(c, isa);
      }
    }
  }
}

// Two pages apart in the pool and one skipped token: runs end with the page.
TEST(AppendKvTest, RunsEndAtPageBoundariesAndGaps) {
  AppendCase c;
  c.shape = Shape(DType::kBF16, 64, 16);
  for (int64_t slot = 70; slot < 80; ++slot) c.slots.push_back(slot);
  for (int64_t slot = 0; slot < 16; ++slot) c.slots.push_back(slot);
  c.slots.push_back(-1);
  for (int64_t slot = 33; slot < 48; ++slot) c.slots.push_back(slot);
  for (const Isa isa : SupportedIsas()) ExpectExact(c, isa);
}

// The shapes of vLLM's test_cache.py: 42 tokens into random distinct slots.
TEST(AppendKvTest, VllmCacheShapes) {
  for (const uint32_t head_dim : {64, 80, 256}) {
    for (const uint32_t block : {8, 16, 32}) {
      for (const DType stored : {DType::kBF16, DType::kF32}) {
        AppendCase c;
        c.shape = Shape(stored, head_dim, block);
        c.shape.kv_heads = 8;
        c.shape.layers = 1;
        c.pages = 1024 / 16;
        c.slots = RandomSlots(42, int64_t{c.pages} * block, head_dim);
        for (const PageOrder order :
             {PageOrder::kOwn, PageOrder::kLayersKvPagesTokensHeads,
              PageOrder::kLayersKvPagesHeadsTokens}) {
          c.order = order;
          ExpectExact(c, Isa::kAuto);
        }
      }
    }
  }
}

// Widths that are no whole number of vectors, beyond what attention takes.
TEST(AppendKvTest, OddWidths) {
  for (const Isa isa : SupportedIsas()) {
    for (const uint32_t head_dim : {1, 2, 6, 17, 30, 258, 576}) {
      for (const DType stored : kStored) {
        AppendCase c;
        c.shape = Shape(stored, head_dim, 16);
        c.shape.v_head_dim = head_dim + 1;
        c.slots = RandomSlots(20, 6 * 16, head_dim);
        std::sort(c.slots.begin(), c.slots.end());
        ExpectExact(c, isa);
        c.slots.resize(16);
        std::iota(c.slots.begin(), c.slots.end(), 32);
        ExpectExact(c, isa);
      }
    }
  }
}

// Rows of every magnitude, down to subnormals and up to the largest float.
TEST(AppendKvTest, QuantisationErrorIsBounded) {
  constexpr uint32_t kDim = 72;
  for (const Isa isa : SupportedIsas()) {
    for (const DType stored : {DType::kFp8E4M3, DType::kInt8}) {
      for (int exponent = -148; exponent <= 127; exponent += 5) {
        BlockShape shape = Shape(stored, kDim, 16);
        shape.layers = shape.kv_heads = 1;
        PageMemory memory(shape, 1, PageOrder::kOwn, Poison::kNan);
        Random random(exponent + 1000);
        std::vector<float> row(kDim);
        for (float& x : row) {
          x = random.Uniform(std::ldexp(1.0f, exponent));
          if (random.Chance(20)) x *= 0.01f;  // far below the largest
        }
        KvRows rows;
        rows.data = row.data();
        SerialFor serial;
        ASSERT_TRUE(AppendKv(memory.pages(), 0, rows, rows,
                             std::vector<int64_t>{3}, serial, isa)
                        .ok());
        float scale;
        std::memcpy(&scale,
                    memory.bytes().data() + memory.KeyScaleOffset(0, 0, 0, 3),
                    sizeof(scale));
        ASSERT_TRUE(std::isnormal(scale) && scale > 0.0f) << scale;
        for (uint32_t d = 0; d < kDim; ++d) {
          const double half_step =
              stored == DType::kInt8
                  ? 0.5 * scale
                  : std::max(std::ldexp(std::abs(double{row[d]}), -4),
                             std::ldexp(double{scale}, -10));
          // The division by the scale is rounded as well.
          const double bound = half_step * (1 + 0x1p-15);
          ASSERT_NEAR(StoredKey(memory.pages(), 0, 0, 0, 3, d), row[d], bound)
              << IsaName(isa) << " " << DTypeName(stored) << " " << exponent;
          ASSERT_NEAR(StoredValue(memory.pages(), 0, 0, 0, 3, d), row[d],
                      bound);
        }
      }
    }
  }
}

// Infinity and NaN spoil neither their row nor others.
TEST(AppendKvTest, OddElementsOfARowStayAlone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr uint32_t kDim = 40;
  for (const Isa isa : SupportedIsas()) {
    for (const DType stored : {DType::kFp8E4M3, DType::kInt8}) {
      BlockShape shape = Shape(stored, kDim, 16);
      shape.layers = shape.kv_heads = 1;
      PageMemory memory(shape, 1, PageOrder::kOwn, Poison::kNan);
      // Row 0 is ordinary, row 1 has odd elements, row 2 nothing else, and row
      // 3 is zero.
      std::vector<float> data(4 * kDim, 2.0f);
      data[kDim + 1] = kInfinity;
      data[kDim + 35] = -kInfinity;
      data[kDim + 7] = std::nanf("");
      std::fill_n(data.begin() + 2 * kDim, kDim, std::nanf(""));
      data[2 * kDim] = -kInfinity;
      std::fill_n(data.begin() + 3 * kDim, kDim, 0.0f);
      KvRows rows;
      rows.data = data.data();
      SerialFor serial;
      ASSERT_TRUE(AppendKv(memory.pages(), 0, rows, rows,
                           std::vector<int64_t>{0, 1, 2, 3}, serial, isa)
                      .ok());
      const auto value = [&](uint32_t token, uint32_t dim) {
        return StoredKey(memory.pages(), 0, 0, 0, token, dim);
      };
      EXPECT_NEAR(value(0, 5), 2.0, 1e-6);
      EXPECT_NEAR(value(1, 5), 2.0, 1e-6);
      EXPECT_NEAR(value(1, 1), 2.0, 1e-6);
      EXPECT_NEAR(value(1, 35), -2.0, 1e-6);
      EXPECT_EQ(value(3, 39), 0.0);
      if (stored == DType::kFp8E4M3) {
        EXPECT_TRUE(std::isnan(value(1, 7)));
        EXPECT_TRUE(std::isnan(value(2, 1)));
        EXPECT_EQ(value(2, 0), -448.0);
      } else {
        EXPECT_EQ(value(1, 7), 0.0);
        EXPECT_EQ(value(2, 1), 0.0);
        EXPECT_EQ(value(2, 0), -127.0);
      }
    }
  }
}

class AppendKvErrorTest : public ::testing::Test {
 protected:
  explicit AppendKvErrorTest(DType stored = DType::kBF16)
      : memory_(Shape(stored, 8, 16), 4, PageOrder::kOwn, Poison::kNan),
        before_(memory_.bytes()),
        input_(2 * 3 * 8, 1.0f) {
    rows_.data = input_.data();
  }

  // The call fails with `text` in its message and changes nothing.
  void ExpectRefused(const KvPages& pages, uint32_t layer, const KvRows& k,
                     const KvRows& v, const std::vector<int64_t>& slots,
                     const std::string& text) {
    SerialFor serial;
    const absl::Status status = AppendKv(pages, layer, k, v, slots, serial);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
    EXPECT_EQ(memory_.bytes(), before_);
  }

  PageMemory memory_;
  const std::vector<uint8_t> before_;
  std::vector<float> input_;
  KvRows rows_;
  const std::vector<int64_t> slots_ = {0, 1};
};

TEST_F(AppendKvErrorTest, SlotOutsideThePages) {
  ExpectRefused(memory_.pages(), 0, rows_, rows_, {0, 64},
                "slot_mapping[1] is 64, but the pages have 64 slots");
  ExpectRefused(memory_.pages(), 0, rows_, rows_, {int64_t{1} << 62, 0},
                "slot_mapping[0] is 4611686018427387904");
}

TEST_F(AppendKvErrorTest, LayerOutsideThePages) {
  ExpectRefused(memory_.pages(), 2, rows_, rows_, slots_,
                "layer is 2, but pages hold 2");
}

TEST_F(AppendKvErrorTest, NullInput) {
  ExpectRefused(memory_.pages(), 0, KvRows{}, rows_, slots_, "k is null");
  ExpectRefused(memory_.pages(), 0, rows_, KvRows{}, slots_, "v is null");
}

TEST_F(AppendKvErrorTest, MisalignedInput) {
  KvRows rows = rows_;
  rows.data = reinterpret_cast<const uint8_t*>(input_.data()) + 2;
  ExpectRefused(memory_.pages(), 0, rows, rows_, slots_,
                "not aligned to 4 bytes");
  rows = rows_;
  rows.token_stride = 98;
  ExpectRefused(memory_.pages(), 0, rows_, rows, slots_, "token stride 98");
}

TEST_F(AppendKvErrorTest, OtherDtype) {
  KvRows rows = rows_;
  rows.dtype = DType::kF16;
  ExpectRefused(memory_.pages(), 0, rows, rows_, slots_,
                "k is f16, pages of bf16 take f32 or bf16");
}

// 8-bit pages and rows with scales of 1.
class AppendKvScalesErrorTest : public AppendKvErrorTest {
 protected:
  AppendKvScalesErrorTest()
      : AppendKvErrorTest(DType::kInt8), scales_(2 * 3, 1.0f) {
    rows_.dtype = DType::kInt8;
    rows_.scales = scales_.data();
  }

  std::vector<float> scales_;
};

TEST_F(AppendKvScalesErrorTest, WrongScales) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const KvRows good = rows_;
  for (const float bad :
       {std::nanf(""), kInfinity, -kInfinity, 0.0f, -0.0f, -1.0f, -1e-40f}) {
    std::vector<float> scales = scales_;
    scales[5] = bad;
    KvRows rows = rows_;
    rows.scales = scales.data();
    const std::string text = absl::StrCat("scale of token 1, head 2 is ", bad,
                                          ", must be finite and above 0");
    ExpectRefused(memory_.pages(), 0, rows, good, slots_, "k " + text);
    ExpectRefused(memory_.pages(), 0, good, rows, slots_, "v " + text);
  }
}

TEST_F(AppendKvScalesErrorTest, ScalesOfPaddingAreNotLookedAt) {
  scales_[5] = std::nanf("");
  SerialFor serial;
  EXPECT_TRUE(AppendKv(memory_.pages(), 0, rows_, rows_,
                       std::vector<int64_t>{0, -1}, serial)
                  .ok());
}

TEST_F(AppendKvScalesErrorTest, NoScales) {
  const KvRows good = rows_;
  rows_.scales = nullptr;
  ExpectRefused(memory_.pages(), 0, rows_, good, slots_,
                "k is int8 without scales");
  rows_ = good;
  rows_.dtype = DType::kF32;
  ExpectRefused(memory_.pages(), 0, good, rows_, slots_,
                "v is f32 with scales");
}

TEST_F(AppendKvScalesErrorTest, MisalignedScales) {
  const KvRows good = rows_;
  rows_.scales = reinterpret_cast<const float*>(
      reinterpret_cast<const uint8_t*>(scales_.data()) + 2);
  ExpectRefused(memory_.pages(), 0, rows_, good, slots_,
                "are not aligned to 4 bytes");
  rows_ = good;
  rows_.scale_token_stride = 14;
  ExpectRefused(memory_.pages(), 0, good, rows_, slots_, "token stride 14");
}

TEST_F(AppendKvScalesErrorTest, TheOtherEightBitDtype) {
  rows_.dtype = DType::kFp8E4M3;
  ExpectRefused(memory_.pages(), 0, rows_, rows_, slots_,
                "k is fp8_e4m3, pages of int8 take f32 or int8");
}

TEST_F(AppendKvErrorTest, NothingToDoNeedsNoInput) {
  SerialFor serial;
  EXPECT_TRUE(
      AppendKv(memory_.pages(), 0, KvRows{}, KvRows{}, {}, serial).ok());
  EXPECT_EQ(memory_.bytes(), before_);
}

}  // namespace
}  // namespace paged_kv::attention

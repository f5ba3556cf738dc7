// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every element type against a second reading of the format, bit by bit and in
// double precision. All results are exact but the last rounding, so they must
// be equal.

#include "docs/examples/llm/model_file/tensor_type.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/examples/llm/support/gguf_writer.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

// Bit `index` of a block, counted from the lowest bit of the first byte.
int Bit(const std::string& block, size_t index) {
  return (static_cast<uint8_t>(block[index / 8]) >> (index % 8)) & 1;
}

int Bits(const std::string& block, size_t first, int count) {
  int value = 0;
  for (int i = 0; i < count; ++i) {
    value += Bit(block, first + static_cast<size_t>(i)) << i;
  }
  return value;
}

int SignedByte(const std::string& block, size_t byte) {
  const int value = Bits(block, 8 * byte, 8);
  return value < 128 ? value : value - 256;
}

double HalfAt(const std::string& block, size_t byte) {
  const int fraction = Bits(block, 8 * byte, 10);
  const int exponent = Bits(block, 8 * byte + 10, 5);
  const double sign = Bit(block, 8 * byte + 15) == 1 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// Element i of a block, as llama.cpp's documentation of the formats has it.
double Expected(TensorType type, const std::string& block, size_t i) {
  switch (type) {
    case TensorType::kQ4_0:
      return HalfAt(block, 0) *
             (Bits(block, 8 * (2 + i % 16) + (i < 16 ? 0 : 4), 4) - 8);
    case TensorType::kQ4_1:
      return HalfAt(block, 0) *
                 Bits(block, 8 * (4 + i % 16) + (i < 16 ? 0 : 4), 4) +
             HalfAt(block, 2);
    case TensorType::kQ8_0:
      return HalfAt(block, 0) * SignedByte(block, 2 + i);
    case TensorType::kQ6_K: {
      const size_t half = i / 128;
      const size_t in_half = i % 128;
      // 128 elements share 64 bytes of low bits: the first 64 the low nibbles.
      const size_t low = 64 * half + in_half % 64;
      const size_t high = 128 + 32 * half + in_half % 32;
      const int quant = Bits(block, 8 * low + (in_half < 64 ? 0 : 4), 4) +
                        16 * Bits(block, 8 * high + 2 * (in_half / 32), 2) - 32;
      return HalfAt(block, 208) * SignedByte(block, 192 + i / 16) * quant;
    }
    case TensorType::kF16:
      return HalfAt(block, 0);
    case TensorType::kBf16: {
      const int exponent = Bits(block, 7, 8);
      const int fraction = Bits(block, 0, 7);
      const double sign = Bit(block, 15) == 1 ? -1.0 : 1.0;
      return sign * (exponent == 0
                         ? std::ldexp(fraction, -133)
                         : std::ldexp(128 + fraction, exponent - 134));
    }
    case TensorType::kF32:
      break;
  }
  float value;
  std::memcpy(&value, block.data(), sizeof(value));
  return value;
}

// Random bits, but for exponents that would make an infinity or NaN.
std::string RandomBlock(TensorType type, std::mt19937_64* random) {
  std::string block(BlockOf(type).bytes, '\0');
  for (char& byte : block) byte = static_cast<char>((*random)());
  const auto clear_high_exponent_bit = [&](size_t byte) {
    block[byte] = static_cast<char>(block[byte] & 0xBF);
  };
  switch (type) {
    case TensorType::kQ4_1:
      clear_high_exponent_bit(3);
      [[fallthrough]];
    case TensorType::kQ4_0:
    case TensorType::kQ8_0:
    case TensorType::kF16:
    case TensorType::kBf16:
      clear_high_exponent_bit(1);
      break;
    case TensorType::kQ6_K:
      clear_high_exponent_bit(209);
      break;
    case TensorType::kF32:
      clear_high_exponent_bit(3);
      break;
  }
  return block;
}

class TensorTypeTest : public testing::TestWithParam<TensorType> {};

TEST_P(TensorTypeTest, EqualsASecondReadingOfTheFormat) {
  const TensorType type = GetParam();
  const TensorBlock shape = BlockOf(type);
  std::mt19937_64 random(TestSeed(20));
  constexpr size_t kBlocks = 3000;
  std::string bytes;
  std::vector<std::string> blocks;
  for (size_t b = 0; b < kBlocks; ++b) {
    blocks.push_back(RandomBlock(type, &random));
    bytes += blocks.back();
  }
  std::vector<float> values(kBlocks * shape.elements);
  Dequantize(type, bytes, absl::MakeSpan(values));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& block = blocks[i / shape.elements];
    const auto expected =
        static_cast<float>(Expected(type, block, i % shape.elements));
    ASSERT_EQ(values[i], expected) << "element " << i;
  }
}

TEST_P(TensorTypeTest, ScalesThatAreNoNumbersStayVisible) {
  const TensorType type = GetParam();
  const TensorBlock shape = BlockOf(type);
  const std::string block(shape.bytes, '\xFF');  // a NaN in every format
  std::vector<float> values(shape.elements);
  Dequantize(type, block, absl::MakeSpan(values));
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
}

INSTANTIATE_TEST_SUITE_P(AllTypes, TensorTypeTest,
                         testing::Values(TensorType::kF32, TensorType::kF16,
                                         TensorType::kBf16, TensorType::kQ4_0,
                                         TensorType::kQ4_1, TensorType::kQ8_0,
                                         TensorType::kQ6_K),
                         [](const auto& tested) {
                           return TensorTypeName(tested.param);
                         });

TEST(TensorTypeNameTest, NamesWhatCannotBeRead) {
  EXPECT_EQ(TensorTypeName(static_cast<TensorType>(12)), "Q4_K");
  EXPECT_EQ(TensorTypeName(static_cast<TensorType>(39)), "MXFP4");
  EXPECT_EQ(TensorTypeName(static_cast<TensorType>(31)), "type 31");
  EXPECT_EQ(TensorTypeName(static_cast<TensorType>(4000000000U)),
            "type 4000000000");
  EXPECT_EQ(BlockOf(static_cast<TensorType>(12)).bytes, 0U);
}

}  // namespace
}  // namespace paged_kv::llm

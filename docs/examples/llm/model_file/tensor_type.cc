// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/tensor_type.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "paged_kv/check.h"

namespace paged_kv::llm {
namespace {

using attention::Bf16ToF32;
using attention::F16ToF32;

constexpr uint32_t kSmallBlock = 32;   // elements of Q4_0, Q4_1, Q8_0
constexpr uint32_t kSuperBlock = 256;  // elements of Q6_K

uint16_t Load16(const char* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

uint32_t Low4(char byte) { return static_cast<uint8_t>(byte) & 15U; }
uint32_t High4(char byte) { return static_cast<uint8_t>(byte) >> 4; }
int8_t Signed(char byte) { return static_cast<int8_t>(byte); }

// The block formats below are those of ggml-common.h and ggml-quants.c
// (llama.cpp); a block begins with its scale d in f16 unless said otherwise.

// Then 16 bytes: element i in the low half of byte i, element i + 16 in the
// high half. Value: d * (q - 8).
void BlockQ4_0(const char* block, float* values) {
  const float scale = F16ToF32(Load16(block));
  const char* quants = block + 2;
  for (uint32_t i = 0; i < kSmallBlock / 2; ++i) {
    values[i] =
        scale * static_cast<float>(static_cast<int>(Low4(quants[i])) - 8);
    values[i + kSmallBlock / 2] =
        scale * static_cast<float>(static_cast<int>(High4(quants[i])) - 8);
  }
}

// d, minimum m in f16, then 16 bytes as in Q4_0. Value: d * q + m.
void BlockQ4_1(const char* block, float* values) {
  const float scale = F16ToF32(Load16(block));
  const float minimum = F16ToF32(Load16(block + 2));
  const char* quants = block + 4;
  for (uint32_t i = 0; i < kSmallBlock / 2; ++i) {
    values[i] = scale * static_cast<float>(Low4(quants[i])) + minimum;
    values[i + kSmallBlock / 2] =
        scale * static_cast<float>(High4(quants[i])) + minimum;
  }
}

// Then 32 signed bytes. Value: d * q.
void BlockQ8_0(const char* block, float* values) {
  const float scale = F16ToF32(Load16(block));
  for (uint32_t i = 0; i < kSmallBlock; ++i) {
    values[i] = scale * static_cast<float>(Signed(block[2 + i]));
  }
}

// Low 4 bits in 128 bytes, high 2 bits in 64, 16 signed scales, d last. Each
// half of 128 elements uses 64, 32 and 8 of them; in it, element 32 r + i has
// its low bits in byte i + 32 (r % 2), low half for r < 2, its high bits in
// bits 2 r of byte i, and scale 2 r + i / 16. Value: d * scale * (q - 32).
void BlockQ6_K(const char* block, float* values) {
  const char* low = block;
  const char* high = block + 128;
  const char* scales = block + 192;
  const float scale = F16ToF32(Load16(block + 208));
  for (uint32_t half = 0; half < 2; ++half) {
    for (uint32_t run = 0; run < 4; ++run) {
      for (uint32_t i = 0; i < 32; ++i) {
        const char low_byte = low[i + 32 * (run % 2)];
        const uint32_t low_bits = run < 2 ? Low4(low_byte) : High4(low_byte);
        const uint32_t high_bits =
            (static_cast<uint8_t>(high[i]) >> (2 * run)) & 3U;
        const int quant = static_cast<int>(low_bits | (high_bits << 4)) - 32;
        values[32 * run + i] =
            scale * static_cast<float>(Signed(scales[2 * run + i / 16])) *
            static_cast<float>(quant);
      }
    }
    low += 64;
    high += 32;
    scales += 8;
    values += 128;
  }
}

void BlockF16(const char* block, float* value) {
  *value = F16ToF32(Load16(block));
}

void BlockBf16(const char* block, float* value) {
  *value = Bf16ToF32(Load16(block));
}

template <void (*kBlock)(const char*, float*)>
void EachBlock(TensorBlock shape, absl::Span<const char> blocks,
               absl::Span<float> values) {
  const char* block = blocks.data();
  float* value = values.data();
  for (const char* end = block + blocks.size(); block != end;
       block += shape.bytes, value += shape.elements) {
    kBlock(block, value);
  }
}

// Names of ggml.h by number; null where a number was never used or has been
// withdrawn.
constexpr const char* kNames[] = {
    "F32",   "F16",   "Q4_0",    "Q4_1",   "Q4_2",    "Q4_3",  "Q5_0",
    "Q5_1",  "Q8_0",  "Q8_1",    "Q2_K",   "Q3_K",    "Q4_K",  "Q5_K",
    "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",
    "IQ3_S", "IQ2_S", "IQ4_XS",  "I8",     "I16",     "I32",   "I64",
    "F64",   "IQ1_M", "BF16",    nullptr,  nullptr,   nullptr, "TQ1_0",
    "TQ2_0", nullptr, nullptr,   nullptr,  "MXFP4"};

}  // namespace

TensorBlock BlockOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return {1, 4};
    case TensorType::kF16:
    case TensorType::kBf16:
      return {1, 2};
    case TensorType::kQ4_0:
      return {kSmallBlock, 18};
    case TensorType::kQ4_1:
      return {kSmallBlock, 20};
    case TensorType::kQ8_0:
      return {kSmallBlock, 34};
    case TensorType::kQ6_K:
      return {kSuperBlock, 210};
  }
  return {};
}

std::string TensorTypeName(TensorType type) {
  const auto number = static_cast<uint32_t>(type);
  if (number < std::size(kNames) && kNames[number] != nullptr) {
    return kNames[number];
  }
  return absl::StrCat("type ", number);
}

void Dequantize(TensorType type, absl::Span<const char> blocks,
                absl::Span<float> values) {
  const TensorBlock shape = BlockOf(type);
  PAGED_KV_CHECK(shape.bytes > 0);
  PAGED_KV_CHECK(blocks.size() % shape.bytes == 0);
  PAGED_KV_CHECK(blocks.size() / shape.bytes * shape.elements == values.size());
  switch (type) {
    case TensorType::kF32:
      std::memcpy(values.data(), blocks.data(), blocks.size());
      return;
    case TensorType::kF16:
      return EachBlock<BlockF16>(shape, blocks, values);
    case TensorType::kBf16:
      return EachBlock<BlockBf16>(shape, blocks, values);
    case TensorType::kQ4_0:
      return EachBlock<BlockQ4_0>(shape, blocks, values);
    case TensorType::kQ4_1:
      return EachBlock<BlockQ4_1>(shape, blocks, values);
    case TensorType::kQ8_0:
      return EachBlock<BlockQ8_0>(shape, blocks, values);
    case TensorType::kQ6_K:
      return EachBlock<BlockQ6_K>(shape, blocks, values);
  }
}

}  // namespace paged_kv::llm

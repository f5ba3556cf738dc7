// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/copy_blocks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/attention_pages.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention {
namespace {

using testing::kAllPageOrders;
using testing::PageMemory;
using testing::PageOrder;
using testing::PageOrderName;
using testing::Poison;
using testing::Random;

BlockShape Shape(DType dtype, uint32_t block_tokens) {
  BlockShape shape;
  shape.layers = 3;
  shape.kv_heads = 2;
  shape.head_dim = 24;
  shape.v_head_dim = 40;
  shape.block_tokens = block_tokens;
  shape.dtype = dtype;
  return shape;
}

void FillWithRandomBytes(PageMemory* memory, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < memory->bytes().size(); ++i) {
    memory->mutable_data()[i] = static_cast<uint8_t>(random.Bits());
  }
}

// One copy on plain bytes, element by element from the layout's definition.
void CopyExpected(const PageMemory& memory, const PageCopy& copy,
                  std::vector<uint8_t>* bytes) {
  const BlockShape& shape = memory.pages().shape;
  const size_t element = ElementBytes(shape.dtype);
  const auto move = [bytes](size_t from, size_t to, size_t count) {
    std::memmove(bytes->data() + to, bytes->data() + from, count);
  };
  const bool tiled = memory.pages().layout.k_order == KOrder::kTiled16;
  const uint32_t k_tokens =
      tiled ? (copy.filled_tokens + 15) / 16 * 16 : copy.filled_tokens;
  for (uint32_t l = 0; l < shape.layers; ++l) {
    for (uint32_t h = 0; h < shape.kv_heads; ++h) {
      for (uint32_t t = 0; t < k_tokens; ++t) {
        for (uint32_t d = 0; d < shape.head_dim; ++d) {
          move(memory.KeyOffset(copy.source, l, h, t, d),
               memory.KeyOffset(copy.target, l, h, t, d), element);
        }
      }
      for (uint32_t t = 0; t < copy.filled_tokens; ++t) {
        for (uint32_t d = 0; d < shape.VHeadDim(); ++d) {
          move(memory.ValueOffset(copy.source, l, h, t, d),
               memory.ValueOffset(copy.target, l, h, t, d), element);
        }
      }
      if (!HasScales(shape.dtype)) continue;
      // Scales follow the slice's data, one f32 per token.
      const size_t scales = copy.filled_tokens * sizeof(float);
      const size_t k_data = KDataBytes(shape).value();
      const size_t v_data = VDataBytes(shape).value();
      move(memory.KeyOffset(copy.source, l, h, 0, 0) + k_data,
           memory.KeyOffset(copy.target, l, h, 0, 0) + k_data, scales);
      move(memory.ValueOffset(copy.source, l, h, 0, 0) + v_data,
           memory.ValueOffset(copy.target, l, h, 0, 0) + v_data, scales);
    }
  }
}

void ExpectExact(const BlockShape& shape, PageOrder order,
                 const std::vector<PageCopy>& copies) {
  SCOPED_TRACE(absl::StrCat(DTypeName(shape.dtype), " ", PageOrderName(order),
                            " block ", shape.block_tokens));
  PageMemory memory(shape, 9, order, Poison::kNan);
  FillWithRandomBytes(&memory, 7);
  std::vector<uint8_t> want = memory.bytes();
  for (const PageCopy& copy : copies) CopyExpected(memory, copy, &want);
  ThreadPool pool(2);
  const absl::Status status = CopyBlocks(memory.pages(), copies, pool);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(memory.bytes(), want);
}

TEST(CopyBlocksTest, EveryByteInEveryOrderAndDtype) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const PageOrder order : kAllPageOrders) {
      for (const uint32_t block : {5, 16, 48}) {
        ExpectExact(Shape(dtype, block), order,
                    {{0, 8, block}, {1, 7, 1}, {2, 6, block - 1}, {3, 5, 0}});
      }
    }
  }
}

TEST(CopyBlocksTest, TilesThatHoldAFilledSlotAreCopiedWhole) {
  for (const uint32_t filled : {1, 15, 16, 17, 31, 32, 33, 48}) {
    ExpectExact(Shape(DType::kBF16, 48), PageOrder::kOwn, {{4, 2, filled}});
  }
}

TEST(CopyBlocksTest, ScalesMoveWithTheirData) {
  for (const DType dtype : {DType::kInt8, DType::kFp8E4M3}) {
    for (const uint32_t block : {16, 20, 32}) {
      for (const uint32_t filled : {1u, 15u, block}) {
        ExpectExact(Shape(dtype, block), PageOrder::kOwn, {{4, 2, filled}});
      }
    }
  }
}

TEST(CopyBlocksTest, CopiesActInTheirOrder) {
  // 0 -> 1 -> 2, then 3 over 1, and 4 onto itself.
  ExpectExact(Shape(DType::kF16, 16), PageOrder::kOwn,
              {{0, 1, 16}, {1, 2, 16}, {3, 1, 9}, {4, 4, 16}});
}

// As vLLM's test_cache.py: many pairs at once.
TEST(CopyBlocksTest, ManyPairs) {
  const BlockShape shape = Shape(DType::kBF16, 16);
  PageMemory memory(shape, 512, PageOrder::kOwn, Poison::kNan);
  FillWithRandomBytes(&memory, 11);
  std::vector<uint8_t> want = memory.bytes();
  std::vector<PageCopy> copies;
  for (uint32_t i = 0; i < 256; ++i) copies.push_back({i, 511 - i, 1 + i % 16});
  for (const PageCopy& copy : copies) CopyExpected(memory, copy, &want);
  ThreadPool pool(2);
  ASSERT_TRUE(CopyBlocks(memory.pages(), copies, pool).ok());
  EXPECT_EQ(memory.bytes(), want);
}

TEST(CopyBlocksTest, RefusesWhatIsNotThere) {
  PageMemory memory(Shape(DType::kBF16, 16), 4, PageOrder::kOwn, Poison::kNan);
  FillWithRandomBytes(&memory, 1);
  const std::vector<uint8_t> before = memory.bytes();
  const auto expect_refused = [&](const KvPages& pages, const PageCopy& bad,
                                  const std::string& text) {
    SerialFor serial;
    const absl::Status status =
        CopyBlocks(pages, std::vector<PageCopy>{{0, 1, 16}, bad}, serial);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
    EXPECT_EQ(memory.bytes(), before);
  };
  expect_refused(memory.pages(), {4, 0, 1},
                 "copy 1 from page 4 to page 0 is outside the 4 pages");
  expect_refused(memory.pages(), {0, 0xFFFFFFFF, 1}, "page 4294967295");
  expect_refused(memory.pages(), {0, 2, 17}, "17 filled tokens");
  KvPages pages = memory.pages();
  pages.layout.base = nullptr;
  expect_refused(pages, {0, 2, 1}, "base is null");
}

}  // namespace
}  // namespace paged_kv::attention

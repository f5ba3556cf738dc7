// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/block_shape.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace paged_kv {
namespace {

// Qwen2.5-7B in 16-token blocks.
BlockShape Qwen() { return {28, 4, 128, 0, 16, DType::kBF16}; }

TEST(BlockShapeTest, Qwen25SizesAreThoseOfTheDesign) {
  EXPECT_EQ(BytesPerToken(Qwen()).value(), 57344u);
  EXPECT_EQ(KDataBytes(Qwen()).value(), 4096u);
  EXPECT_EQ(VDataBytes(Qwen()).value(), 4096u);
  EXPECT_EQ(ScaleBytes(Qwen()).value(), 0u);
  EXPECT_EQ(PageBytes(Qwen()).value(), 896u * 1024);
  BlockShape one_layer = Qwen();
  one_layer.layers = 1;
  EXPECT_EQ(PageBytes(one_layer).value(), 32u * 1024);
}

TEST(BlockShapeTest, ElementsNamesAndScalesOfEveryType) {
  struct Row {
    DType dtype;
    uint32_t bytes;
    const char* name;
    bool scales;
  };
  for (const Row& row :
       {Row{DType::kF32, 4, "f32", false}, Row{DType::kF16, 2, "f16", false},
        Row{DType::kBF16, 2, "bf16", false},
        Row{DType::kFp8E4M3, 1, "fp8_e4m3", true},
        Row{DType::kInt8, 1, "int8", true}}) {
    EXPECT_EQ(ElementBytes(row.dtype), row.bytes);
    EXPECT_STREQ(DTypeName(row.dtype), row.name);
    EXPECT_EQ(HasScales(row.dtype), row.scales);
  }
}

TEST(BlockShapeTest, ScalesArePaddedToWholeLines) {
  for (const auto& [tokens, bytes] : std::vector<std::pair<uint32_t, uint64_t>>{
           {1, 64}, {15, 64}, {16, 64}, {17, 128}, {32, 128}, {33, 192}}) {
    const BlockShape shape{1, 1, 64, 0, tokens, DType::kInt8};
    EXPECT_EQ(ScaleBytes(shape).value(), bytes) << tokens;
    EXPECT_EQ(PageBytes(shape).value(), 2 * (64 * tokens + bytes));
    EXPECT_EQ(BytesPerToken(shape).value(), 2 * 64u + 2 * 4);
  }
}

TEST(BlockShapeTest, VMayHaveAnotherWidth) {
  const BlockShape shape{2, 3, 192, 128, 16, DType::kF16};
  EXPECT_EQ(shape.VHeadDim(), 128u);
  EXPECT_EQ(KDataBytes(shape).value(), 16u * 192 * 2);
  EXPECT_EQ(VDataBytes(shape).value(), 16u * 128 * 2);
  EXPECT_EQ(BytesPerToken(shape).value(), (192u + 128) * 2 * 3 * 2);
  EXPECT_EQ(PageBytes(shape).value(), 16u * (192 + 128) * 2 * 3 * 2);
  BlockShape same = shape;
  same.v_head_dim = 0;
  EXPECT_FALSE(same == shape);
  same.head_dim = 128;
  BlockShape spelled = same;
  spelled.v_head_dim = 128;
  EXPECT_TRUE(same == spelled) << "0 means the width of K";
}

TEST(BlockShapeTest, EqualityLooksAtEveryField) {
  const BlockShape shape = Qwen();
  std::vector<BlockShape> others(6, shape);
  others[0].layers = 27;
  others[1].kv_heads = 5;
  others[2].head_dim = 64;
  others[3].v_head_dim = 64;
  others[4].block_tokens = 32;
  others[5].dtype = DType::kF16;
  EXPECT_TRUE(shape == Qwen());
  for (const BlockShape& other : others) EXPECT_FALSE(shape == other);
}

TEST(BlockShapeTest, TilesNeedWholeTilesAndWholeRows) {
  struct Row {
    uint32_t tokens, head_dim;
    DType dtype;
    KOrder order;
  };
  for (const Row& row : {Row{16, 128, DType::kBF16, KOrder::kTiled16},
                         Row{48, 128, DType::kBF16, KOrder::kTiled16},
                         Row{8, 128, DType::kBF16, KOrder::kTokenDim},
                         Row{24, 128, DType::kBF16, KOrder::kTokenDim},
                         Row{16, 127, DType::kBF16, KOrder::kTokenDim},
                         Row{16, 1, DType::kF32, KOrder::kTiled16},
                         Row{16, 6, DType::kInt8, KOrder::kTokenDim},
                         Row{16, 8, DType::kInt8, KOrder::kTiled16}}) {
    const BlockShape shape{1, 1, row.head_dim, 0, row.tokens, row.dtype};
    EXPECT_EQ(OwnKOrder(shape), row.order)
        << row.tokens << " x " << row.head_dim;
  }
}

TEST(BlockShapeTest, ValidateNamesTheFieldAndItsValue) {
  EXPECT_TRUE(Validate(Qwen()).ok());
  struct Row {
    const char* field;
    BlockShape shape;
  };
  std::vector<Row> rows(9, {"", Qwen()});
  rows[0].field = "layers is 0";
  rows[0].shape.layers = 0;
  rows[1].field = "layers is 65537";
  rows[1].shape.layers = 65537;
  rows[2].field = "kv_heads is 0";
  rows[2].shape.kv_heads = 0;
  rows[3].field = "head_dim is 0";
  rows[3].shape.head_dim = 0;
  rows[4].field = "head_dim is 1025";
  rows[4].shape.head_dim = 1025;
  rows[5].field = "v_head_dim is 1025";
  rows[5].shape.v_head_dim = 1025;
  rows[6].field = "block_tokens is 0";
  rows[6].shape.block_tokens = 0;
  rows[7].field = "block_tokens is 4097";
  rows[7].shape.block_tokens = 4097;
  rows[8].field = "dtype is 5";
  rows[8].shape.dtype = static_cast<DType>(5);
  for (const Row& row : rows) {
    const absl::Status status = Validate(row.shape);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(row.field), absl::string_view::npos)
        << status;
  }
  // Each field alone is fine, a page of all of them is not.
  const BlockShape huge{65536, 65536, 1024, 1024, 4096, DType::kF32};
  EXPECT_EQ(Validate(huge).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Validate(huge).message().find("bytes"), absl::string_view::npos);
  // The largest values that fit.
  EXPECT_TRUE(Validate(BlockShape{1, 1, 1024, 1024, 4096, DType::kF32}).ok());
}

// The slices of a page follow each other without gap or overlap.
TEST(BlockShapeTest, OwnLayoutIsDense) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kInt8}) {
    for (uint32_t tokens : {1u, 16u, 20u}) {
      const BlockShape shape{3, 2, 24, 40, tokens, dtype};
      const PageLayout layout = OwnPageLayout(shape, nullptr);
      EXPECT_EQ(layout.k_order, OwnKOrder(shape));
      const auto k_bytes =
          static_cast<int64_t>((KDataBytes(shape) + ScaleBytes(shape)).value());
      const auto v_bytes =
          static_cast<int64_t>((VDataBytes(shape) + ScaleBytes(shape)).value());
      int64_t next = 0;
      for (uint32_t page = 0; page < 2; ++page) {
        for (uint32_t layer = 0; layer < 3; ++layer) {
          for (uint32_t head = 0; head < 2; ++head) {
            EXPECT_EQ(KSliceOffset(layout, page, layer, head), next);
            next += k_bytes;
            EXPECT_EQ(VSliceOffset(layout, page, layer, head), next);
            next += v_bytes;
          }
        }
        EXPECT_EQ(next,
                  static_cast<int64_t>(PageBytes(shape).value()) * (page + 1));
      }
    }
  }
}

// Block id times stride does not wrap at 32 (or 16) bits.
TEST(BlockShapeTest, OffsetsAre64Bits) {
  PageLayout layout;
  layout.page_stride = 276480;
  layout.layer_stride = 1;
  layout.head_stride = 2;
  layout.kv_stride = 5;
  EXPECT_EQ(KSliceOffset(layout, 7768, 0, 0), 2147696640);
  EXPECT_EQ(KSliceOffset(layout, 65536, 3, 4), int64_t{276480} * 65536 + 11);
  EXPECT_EQ(VSliceOffset(layout, 0x7FFFFFFF, 0, 0),
            int64_t{276480} * 0x7FFFFFFF + 5);
}

}  // namespace
}  // namespace paged_kv

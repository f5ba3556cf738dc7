// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/kv_pages.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/attention_pages.h"

namespace paged_kv::attention {
namespace {

using testing::kAllPageOrders;
using testing::PageMemory;
using testing::PageOrderName;
using testing::Poison;
using testing::TakesOrder;

class KvPagesTest : public ::testing::Test {
 protected:
  KvPagesTest() {
    pages_.shape.layers = 2;
    pages_.shape.kv_heads = 4;
    pages_.num_pages = 10;
    // Validation reads nothing, so any address will do.
    pages_.layout = OwnPageLayout(pages_.shape, &anywhere_);
  }

  void ExpectRefused(const std::string& text) {
    const absl::Status status = Validate(pages_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  }

  alignas(64) char anywhere_ = 0;
  KvPages pages_;
};

TEST_F(KvPagesTest, TakesOwnAndForeignOrders) {
  EXPECT_TRUE(Validate(pages_).ok());
  for (const auto order : kAllPageOrders) {
    BlockShape shape = pages_.shape;
    shape.v_head_dim = 64;
    const PageMemory memory(shape, 3, order, Poison::kNan);
    EXPECT_TRUE(Validate(memory.pages()).ok()) << PageOrderName(order);
  }
}

TEST_F(KvPagesTest, TakesValuesWithinKeys) {
  // Multi-head latent attention: V is the first 512 of K's 576 elements.
  pages_.shape.layers = 1;
  pages_.shape.kv_heads = 1;
  pages_.shape.head_dim = 576;
  pages_.shape.v_head_dim = 512;
  pages_.layout = OwnPageLayout(pages_.shape, &anywhere_);
  pages_.layout.k_order = KOrder::kTokenDim;
  pages_.layout.kv_stride = 0;
  pages_.layout.v_token_stride = 576 * 2;
  EXPECT_TRUE(Validate(pages_).ok()) << Validate(pages_);
}

TEST_F(KvPagesTest, RefusesNullBase) {
  pages_.layout.base = nullptr;
  ExpectRefused("base is null");
}

TEST_F(KvPagesTest, RefusesAnInvalidShape) {
  pages_.shape.kv_heads = 0;
  ExpectRefused("kv_heads is 0");
}

TEST_F(KvPagesTest, RefusesMisalignedBaseAndStrides) {
  pages_.layout.base = &anywhere_ + 1;
  ExpectRefused("not a multiple of 2");
  pages_.layout.base = &anywhere_;
  pages_.layout.page_stride += 1;
  ExpectRefused("page_stride is 65537, not a multiple of 2");
  pages_.layout.page_stride -= 1;
  pages_.layout.v_token_stride = 257;
  ExpectRefused("v_token_stride is 257");
}

TEST_F(KvPagesTest, RefusesScalesOffTheirAlignment) {
  pages_.shape.dtype = DType::kInt8;
  pages_.layout = OwnPageLayout(pages_.shape, &anywhere_);
  EXPECT_TRUE(Validate(pages_).ok());
  pages_.layout.head_stride += 2;
  ExpectRefused("not a multiple of 4");
}

TEST_F(KvPagesTest, RefusesTilesThatAreNotWhole) {
  pages_.shape.block_tokens = 24;
  pages_.layout = OwnPageLayout(pages_.shape, &anywhere_);
  EXPECT_TRUE(Validate(pages_).ok());
  pages_.layout.k_order = KOrder::kTiled16;
  ExpectRefused("blocks of 24 tokens");
}

TEST_F(KvPagesTest, RefusesOverlappingSlots) {
  const PageLayout good = pages_.layout;
  // V of a page's last head may lie over the next page, K may not.
  pages_.layout.page_stride = good.page_stride - 4098;
  ExpectRefused("page_stride is 61438, but K reaches over 61440 bytes");
  pages_.layout = good;
  pages_.layout.layer_stride = 0;
  ExpectRefused("layer_stride is 0");
  pages_.layout = good;
  pages_.layout.head_stride = 4096;  // K of a slice ends there, V lies over it
  EXPECT_TRUE(Validate(pages_).ok());
  pages_.layout.head_stride = 4094;
  ExpectRefused("head_stride is 4094, but K reaches over 4096 bytes");
  pages_.layout = good;
  pages_.layout.v_token_stride = 254;
  ExpectRefused("v_token_stride is 254, but V reaches over 256 bytes");
}

TEST_F(KvPagesTest, IgnoresStridesOfSingleThings) {
  pages_.shape.layers = 1;
  pages_.shape.kv_heads = 1;
  pages_.num_pages = 1;
  pages_.layout = OwnPageLayout(pages_.shape, &anywhere_);
  pages_.layout.page_stride = pages_.layout.layer_stride = 0;
  pages_.layout.head_stride = 0;
  EXPECT_TRUE(Validate(pages_).ok()) << Validate(pages_);
}

TEST_F(KvPagesTest, RefusesOffsetsThatDoNotFit) {
  pages_.layout.page_stride = int64_t{1} << 58;
  ExpectRefused("too far apart for 10");
  pages_.layout = OwnPageLayout(pages_.shape, &anywhere_);
  pages_.layout.kv_stride = int64_t{1} << 62;
  ExpectRefused("kv_stride");
}

TEST_F(KvPagesTest, RefusesSpacedTokensBesideScales) {
  pages_.shape.dtype = DType::kFp8E4M3;
  pages_.layout = OwnPageLayout(pages_.shape, &anywhere_);
  pages_.layout.v_token_stride = 192;
  ExpectRefused("v_token_stride is 192 for v_head_dim 128");
}

TEST_F(KvPagesTest, TakesEightBitOrders) {
  for (const DType dtype : {DType::kFp8E4M3, DType::kInt8}) {
    for (const auto order : kAllPageOrders) {
      if (!TakesOrder(dtype, order)) continue;
      BlockShape shape = pages_.shape;
      shape.v_head_dim = 64;
      shape.dtype = dtype;
      const PageMemory memory(shape, 3, order, Poison::kNan);
      EXPECT_TRUE(Validate(memory.pages()).ok()) << Validate(memory.pages());
    }
  }
}

// Neither data nor scales of a slice may lie over another slice.
TEST_F(KvPagesTest, RefusesOverlappingScales) {
  pages_.shape.dtype = DType::kInt8;
  for (const KOrder order : {KOrder::kTiled16, KOrder::kTokenDim}) {
    const PageLayout good = OwnPageLayout(pages_.shape, &anywhere_);
    pages_.layout = good;
    pages_.layout.k_order = order;
    EXPECT_TRUE(Validate(pages_).ok());
    pages_.layout.head_stride = 2048;  // 16 x 128 elements, no scales
    ExpectRefused("head_stride is 2048, but K reaches over 2112 bytes");
    pages_.layout.head_stride = good.head_stride;
    for (const int64_t kv_stride : {0, 2048, 2108}) {
      pages_.layout.kv_stride = kv_stride;
      ExpectRefused(absl::StrCat("kv_stride is ", kv_stride,
                                 ", but data and scales of K take 2112 bytes"));
    }
    pages_.layout.kv_stride = -2048;
    ExpectRefused("data and scales of V take 2112 bytes");
    pages_.layout.kv_stride = -2112;
    EXPECT_TRUE(Validate(pages_).ok());
  }
}

TEST_F(KvPagesTest, RefusesOverlappingScalesOfValues) {
  // Wide values beside narrow keys.
  pages_.shape.dtype = DType::kFp8E4M3;
  pages_.shape.head_dim = 16;
  pages_.layout = OwnPageLayout(pages_.shape, &anywhere_);
  pages_.shape.v_head_dim = 128;
  ExpectRefused("head_stride is 640, but V reaches over 2112 bytes");
}

}  // namespace
}  // namespace paged_kv::attention

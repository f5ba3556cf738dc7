// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What kv_append, kv_copy and kv_scatter do with lists that ask for the
// impossible. The address sanitizer sees any access outside their memory.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fpga_dma/kernels/stand_in/stream_faults.h"
#include "tests/fpga_dma/kernels/card_memory.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
// 4 pages of 2 slices of head_dim 64, 32 tokens.
constexpr uint32_t kPages = 4;
constexpr uint32_t kHeadDim = 64;
constexpr uint32_t kBlockTokens = 32;
constexpr uint32_t kSourceBeats = 64;

template <typename Item>
struct BadItem {
  std::string name;
  KernelError code;
  uint64_t detail;
  std::function<void(Item*)> spoil;
};

class MoveKernelsErrorsTest : public KernelBuildsTest {
 protected:
  // Good scales, wherever rows begin.
  void SetUp() override {
    for (size_t i = 0; i < source_.size() / 4; ++i) source_.Set(i, 1.0f);
  }
  // Runs a good item, then a bad one, then a good one.
  template <typename Item>
  void ExpectCodes(KernelId kernel, const Item& good,
                   const std::vector<BadItem<Item>>& bad_items) {
    ExpectCodes(kernel, good, bad_items, good);
  }
  template <typename Item>
  void ExpectCodes(KernelId kernel, const Item& good,
                   const std::vector<BadItem<Item>>& bad_items,
                   const Item& last) {
    for (const BadItem<Item>& bad : bad_items) {
      SCOPED_TRACE(bad.name);
      CardMemory work(4 * kBeatBytes);
      WorkListHeader header = {};
      header.magic = kWorkListMagic;
      header.kernel = kernel;
      header.num_items = 3;
      work.Set(0, header);
      Item item = good;
      work.Set(1, item);
      bad.spoil(&item);
      work.Set(2, item);
      work.Set(3, last);
      status_.Set(0, KernelStatus{});
      ASSERT_TRUE(RunKernel(build(), kernel, Arguments(kernel, &work)).ok());
      const KernelStatus status = status_.Get<KernelStatus>(0);
      EXPECT_EQ(status.code, bad.code);
      EXPECT_EQ(status.item, 1u);
      EXPECT_EQ(status.items_done, 1u);
      EXPECT_EQ(status.detail, bad.detail);
    }
    EXPECT_EQ(LeftoverStreams(), 0u);
  }

  // Of the K scale of a slot, in the first slice.
  size_t ScaleByte(size_t page, size_t slot) const {
    return page * stride_ * kBeatBytes + size_t{kBlockTokens} * kHeadDim +
           slot * 4;
  }

  std::vector<BoundArgument> Arguments(KernelId kernel, CardMemory* work) {
    const BoundArgument pages = BindScalar(kPages);
    const BoundArgument stride = BindScalar(stride_);
    switch (kernel) {
      case KernelId::kKvAppend:
        return {kv_.Bind(),
                kv_.Bind(),
                work->Bind(),
                source_.Bind(),
                status_.Bind(),
                BindScalar(3),
                BindScalar(kSourceBeats),
                pages,
                stride,
                BindScalar(static_cast<uint32_t>(element())),
                BindScalar(kHeadDim),
                BindScalar(kBlockTokens)};
      case KernelId::kKvCopy:
        return {kv_.Bind(),
                kv_.Bind(),
                work->Bind(),
                status_.Bind(),
                BindScalar(3),
                pages,
                stride,
                pages,
                stride,
                BindScalar(static_cast<uint32_t>(element())),
                BindScalar(kHeadDim),
                BindScalar(kBlockTokens)};
      default:
        return {source_.Bind(), kv_.Bind(),    work->Bind(),
                status_.Bind(), BindScalar(3), BindScalar(kSourceBeats),
                pages,          stride};
    }
  }

  // Beats, of a slice and of a page.
  const uint32_t slice_ = SliceBeats(kBlockTokens, kHeadDim, element());
  const uint32_t stride_ = 2 * slice_;
  const uint32_t token_beats_ = AppendTokenBeats(kHeadDim, element());
  CardMemory kv_{size_t{kPages} * stride_ * kBeatBytes};
  CardMemory source_{size_t{kSourceBeats} * kBeatBytes};
  CardMemory status_{kBeatBytes};
};

TEST_P(MoveKernelsErrorsTest, Append) {
  AppendItem good = {};
  good.num_tokens = 2;
  good.num_slices = 2;
  good.slice_stride_beats = slice_;
  using I = AppendItem;
  ExpectCodes<I>(
      KernelId::kKvAppend, good,
      {{"no tokens", KernelError::kZeroLength, 0,
        [](I* i) { i->num_tokens = 0; }},
       {"no slices", KernelError::kZeroLength, 0,
        [](I* i) { i->num_slices = 0; }},
       {"a slot too far", KernelError::kSlotRange, 33,
        [](I* i) { i->first_slot = 31; }},
       {"most tokens", KernelError::kSlotRange, uint64_t{kMax} + 31,
        [](I* i) {
          i->first_slot = 31;
          i->num_tokens = kMax;
        }},
       {"page at the limit", KernelError::kPageIndex, kPages,
        [](I* i) { i->page = kPages; }},
       {"page far away", KernelError::kPageIndex, kMax,
        [](I* i) { i->page = kMax; }},
       {"slice beyond the page", KernelError::kSliceRange, stride_ + 1,
        [](I* i) { i->slice_beat = 1; }},
       {"a slice too many", KernelError::kSliceRange, 3 * slice_,
        [](I* i) { i->num_slices = 3; }},
       {"most slices", KernelError::kSliceRange,
        uint64_t{kMax - 1} * kMax + slice_ + kMax,
        [](I* i) {
          i->num_slices = kMax;
          i->slice_stride_beats = kMax;
          i->slice_beat = kMax;
        }},
       {"endless slices in one place", KernelError::kSliceRange, 0,
        [](I* i) {
          i->num_slices = kMax;
          i->slice_stride_beats = 0;
        }},
       {"rows beyond the source", KernelError::kSourceRange, kSourceBeats + 1,
        [this](I* i) { i->source_beat = kSourceBeats + 1 - 4 * token_beats_; }},
       {"rows far away", KernelError::kSourceRange,
        uint64_t{kMax} + 4 * token_beats_,
        [](I* i) { i->source_beat = kMax; }}});
}

TEST_P(MoveKernelsErrorsTest, Copy) {
  CopyItem good = {};
  good.target_page = 1;
  good.num_slices = 2;
  good.source_slice_stride_beats = slice_;
  good.target_slice_stride_beats = slice_;
  good.filled_tokens = 20;
  using I = CopyItem;
  ExpectCodes<I>(
      KernelId::kKvCopy, good,
      {{"nothing filled", KernelError::kZeroLength, 0,
        [](I* i) { i->filled_tokens = 0; }},
       {"no slices", KernelError::kZeroLength, 0,
        [](I* i) { i->num_slices = 0; }},
       {"more than a block", KernelError::kSlotRange, 33,
        [](I* i) { i->filled_tokens = 33; }},
       {"source at the limit", KernelError::kPageIndex, kPages,
        [](I* i) { i->source_page = kPages; }},
       {"target at the limit", KernelError::kPageIndex, kPages,
        [](I* i) { i->target_page = kPages; }},
       {"target far away", KernelError::kPageIndex, kMax,
        [](I* i) { i->target_page = kMax; }},
       {"source slices beyond the page", KernelError::kSliceRange, stride_ + 1,
        [](I* i) { i->source_slice_beat = 1; }},
       {"target slices beyond the page", KernelError::kSliceRange, stride_ + 1,
        [](I* i) { i->target_slice_beat = 1; }},
       {"endless slices in one place", KernelError::kSliceRange, 0,
        [](I* i) {
          i->num_slices = kMax;
          i->source_slice_stride_beats = 0;
        }},
       {"target slices that overlap", KernelError::kSliceRange, slice_ - 1,
        [this](I* i) { i->target_slice_stride_beats = slice_ - 1; }},
       {"most slices", KernelError::kSliceRange,
        uint64_t{kMax - 1} * kMax + slice_, [](I* i) {
          i->num_slices = kMax;
          i->source_slice_stride_beats = kMax;
        }}});
}

TEST_P(MoveKernelsErrorsTest, Scatter) {
  ScatterItem good = {};
  good.num_beats = 10;
  using I = ScatterItem;
  ExpectCodes<I>(
      KernelId::kKvScatter, good,
      {{"nothing", KernelError::kZeroLength, 0, [](I* i) { i->num_beats = 0; }},
       {"beyond the slab", KernelError::kSourceRange, kSourceBeats + 1,
        [](I* i) { i->source_beat = kSourceBeats - 9; }},
       {"most beats", KernelError::kSourceRange, 2 * uint64_t{kMax},
        [](I* i) {
          i->source_beat = kMax;
          i->num_beats = kMax;
        }},
       {"page at the limit", KernelError::kPageIndex, kPages,
        [](I* i) { i->page = kPages; }},
       {"beyond the page", KernelError::kSliceRange, stride_ + 1,
        [this](I* i) { i->page_beat = stride_ - 9; }},
       {"far beyond the page", KernelError::kSliceRange, uint64_t{kMax} + 10,
        [](I* i) { i->page_beat = kMax; }}});
}

TEST_P(MoveKernelsErrorsTest, ListsThatAreNone) {
  struct BadList {
    KernelError code;
    uint64_t detail;
    std::function<void(WorkListHeader*)> spoil;
  };
  const BadList bad_lists[] = {
      {KernelError::kTooManyItems, 4, [](auto* h) { h->num_items = 4; }},
      {KernelError::kTooManyItems, kMax, [](auto* h) { h->num_items = kMax; }},
      {KernelError::kBadHeader, static_cast<uint64_t>(KernelId::kPagedDecode),
       [](auto* h) { h->kernel = KernelId::kPagedDecode; }},
  };
  const CardMemory before = kv_;
  for (const KernelId kernel :
       {KernelId::kKvAppend, KernelId::kKvCopy, KernelId::kKvScatter}) {
    for (const BadList& bad : bad_lists) {
      SCOPED_TRACE(testing::Message() << static_cast<uint32_t>(kernel)
                                      << ", detail " << bad.detail);
      CardMemory work(4 * kBeatBytes);
      WorkListHeader header = {};
      header.magic = kWorkListMagic;
      header.kernel = kernel;
      header.num_items = 3;
      bad.spoil(&header);
      work.Set(0, header);
      status_.Set(0, KernelStatus{});
      ASSERT_TRUE(RunKernel(build(), kernel, Arguments(kernel, &work)).ok());
      const KernelStatus status = status_.Get<KernelStatus>(0);
      EXPECT_EQ(status.code, bad.code);
      EXPECT_EQ(status.detail, bad.detail);
      EXPECT_EQ(status.items_done, 0u);
    }
  }
  EXPECT_TRUE(kv_ == before);
}

TEST_P(MoveKernelsErrorsTest, AScaleThatIsNotFiniteOrNotAbove0) {
  if (!int8()) return;  // bf16 has no scales
  AppendItem good = {};
  good.num_tokens = 2;
  good.num_slices = 2;
  good.slice_stride_beats = slice_;
  good.first_slot = 3;  // a tile is read, and dropped
  AppendItem last = good;
  last.page = 3;
  // The second item has rows of its own; its second slice's last token is bad.
  const uint32_t bad_source = 4 * token_beats_;
  const size_t scales = (size_t{bad_source} + 4 * token_beats_ - 1) * 16;
  const CardMemory before = kv_;
  for (const uint32_t bits :
       {0x7FC00000u, 0x7F800000u, 0xFF800000u, 0u, 0x80000000u, 0xBF800000u}) {
    for (const uint32_t which : {0u, 1u}) {
      SCOPED_TRACE(testing::Message() << bits << " " << which);
      std::memcpy(kv_.data(), before.data(), kv_.size());
      source_.Set(scales + which, bits);
      ExpectCodes<AppendItem>(KernelId::kKvAppend, good,
                              {{"scale", KernelError::kBadScale, bits,
                                [=](AppendItem* i) {
                                  i->page = 2;
                                  i->source_beat = bad_source;
                                }}},
                              last);
      source_.Set(scales + which, 1.0f);
      // The first item is there; no page but its own and the second's changed.
      EXPECT_EQ(kv_.Get<float>(ScaleByte(0, 3) / 4), 1.0f);
      const size_t page_bytes = size_t{stride_} * kBeatBytes;
      for (const size_t page : {size_t{1}, size_t{3}}) {
        EXPECT_EQ(std::memcmp(kv_.data() + page * page_bytes,
                              before.data() + page * page_bytes, page_bytes),
                  0);
      }
    }
  }
  EXPECT_NE(ToStatus("kv_append", status_.Get<KernelStatus>(0))
                .message()
                .find("of int8 not above 0, with bits 3212836864 (code 12)"),
            absl::string_view::npos);
}

PAGED_KV_ALL_KERNEL_BUILDS(MoveKernelsErrorsTest);

}  // namespace
}  // namespace paged_kv::fpga_dma

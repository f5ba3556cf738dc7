// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What kv_append, kv_copy and kv_scatter do with lists that ask for the
// impossible. The address sanitizer sees any access outside their memory.

#include <gtest/gtest.h>

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
// 4 pages of 2 slices of head_dim 64, 32 tokens: 128 beats each.
constexpr uint32_t kPages = 4;
constexpr uint32_t kHeadDim = 64;
constexpr uint32_t kBlockTokens = 32;
constexpr uint32_t kSlice = SliceBeats(kBlockTokens, kHeadDim);
constexpr uint32_t kStride = 2 * kSlice;
constexpr uint32_t kSourceBeats = 64;

template <typename Item>
struct BadItem {
  std::string name;
  KernelError code;
  uint64_t detail;
  std::function<void(Item*)> spoil;
};

class MoveKernelsErrorsTest : public testing::TestWithParam<bool> {
 protected:
  // Runs a good item, then a bad one, then a good one.
  template <typename Item>
  void ExpectCodes(KernelId kernel, const Item& good,
                   const std::vector<BadItem<Item>>& bad_items) {
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
      work.Set(3, good);
      status_.Set(0, KernelStatus{});
      ASSERT_TRUE(RunKernel(GetParam() ? kThreadedKernels : kSequentialKernels,
                            kernel, Arguments(kernel, &work))
                      .ok());
      const KernelStatus status = status_.Get<KernelStatus>(0);
      EXPECT_EQ(status.code, bad.code);
      EXPECT_EQ(status.item, 1u);
      EXPECT_EQ(status.items_done, 1u);
      EXPECT_EQ(status.detail, bad.detail);
    }
    EXPECT_EQ(LeftoverStreams(), 0u);
  }

  std::vector<BoundArgument> Arguments(KernelId kernel, CardMemory* work) {
    const BoundArgument pages = BindScalar(kPages);
    const BoundArgument stride = BindScalar(kStride);
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
                BindScalar(0),
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
                BindScalar(0),
                BindScalar(kHeadDim),
                BindScalar(kBlockTokens)};
      default:
        return {source_.Bind(), kv_.Bind(),    work->Bind(),
                status_.Bind(), BindScalar(3), BindScalar(kSourceBeats),
                pages,          stride};
    }
  }

  CardMemory kv_{size_t{kPages} * kStride * kBeatBytes};
  CardMemory source_{size_t{kSourceBeats} * kBeatBytes};
  CardMemory status_{kBeatBytes};
};

TEST_P(MoveKernelsErrorsTest, Append) {
  AppendItem good = {};
  good.num_tokens = 2;
  good.num_slices = 2;
  good.slice_stride_beats = kSlice;
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
       {"slice beyond the page", KernelError::kSliceRange, kStride + 1,
        [](I* i) { i->slice_beat = 1; }},
       {"a slice too many", KernelError::kSliceRange, 3 * kSlice,
        [](I* i) { i->num_slices = 3; }},
       {"most slices", KernelError::kSliceRange,
        uint64_t{kMax - 1} * kMax + kSlice + kMax,
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
        [](I* i) { i->source_beat = kSourceBeats + 1 - 16; }},
       {"rows far away", KernelError::kSourceRange, uint64_t{kMax} + 16,
        [](I* i) { i->source_beat = kMax; }}});
}

TEST_P(MoveKernelsErrorsTest, Copy) {
  CopyItem good = {};
  good.target_page = 1;
  good.num_slices = 2;
  good.source_slice_stride_beats = kSlice;
  good.target_slice_stride_beats = kSlice;
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
       {"source slices beyond the page", KernelError::kSliceRange, kStride + 1,
        [](I* i) { i->source_slice_beat = 1; }},
       {"target slices beyond the page", KernelError::kSliceRange, kStride + 1,
        [](I* i) { i->target_slice_beat = 1; }},
       {"endless slices in one place", KernelError::kSliceRange, 0,
        [](I* i) {
          i->num_slices = kMax;
          i->source_slice_stride_beats = 0;
        }},
       {"target slices that overlap", KernelError::kSliceRange, kSlice - 1,
        [](I* i) { i->target_slice_stride_beats = kSlice - 1; }},
       {"most slices", KernelError::kSliceRange,
        uint64_t{kMax - 1} * kMax + kSlice, [](I* i) {
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
       {"beyond the page", KernelError::kSliceRange, kStride + 1,
        [](I* i) { i->page_beat = kStride - 9; }},
       {"far beyond the page", KernelError::kSliceRange, uint64_t{kMax} + 10,
        [](I* i) { i->page_beat = kMax; }}});
}

INSTANTIATE_TEST_SUITE_P(Builds, MoveKernelsErrorsTest, testing::Bool(),
                         [](const auto& param) {
                           return param.param ? "Threaded" : "Sequential";
                         });

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What paged_decode does with lists that ask for the impossible. The address
// sanitizer sees any access outside the memory of a launch.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/kernels/stand_in/stream_faults.h"
#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/decode_model.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"

namespace paged_kv::fpga_dma {
namespace {

using A = PagedDecodeArgument;

struct BadInput {
  std::string name;
  KernelError code;
  uint64_t detail;
  // Spoils item 1 of 3, or the launch.
  std::function<void(DecodeCase*, std::vector<BoundArgument>*)> spoil;
  bool whole_launch = false;
};

// 3 items of 40 tokens over a pool of 8 pages with 2 slices (128 beats of bf16,
// 66 of int8) and gaps of 3 beats; 8 table entries; head_dim 128, 7 heads.
DecodeCase GoodLaunch(KvElement element) {
  DecodeShape shape;
  shape.element = element;
  shape.num_items = 3;
  DecodeCase launch(shape);
  std::mt19937_64 random(3);
  launch.Fill(random);
  for (uint32_t i = 0; i < 3; ++i) {
    DecodeItem item = launch.NewItem(i);
    item.num_tokens = 40;
    item.table_begin = i;
    launch.SetItem(i, item);
  }
  return launch;
}

std::function<void(DecodeCase*, std::vector<BoundArgument>*)> Item(
    std::function<void(DecodeItem*)> change) {
  return [change](DecodeCase* launch, std::vector<BoundArgument>*) {
    DecodeItem item = launch->Item(1);
    change(&item);
    launch->SetItem(1, item);
  };
}
std::function<void(DecodeCase*, std::vector<BoundArgument>*)> ScalarIs(
    A argument, uint64_t value) {
  return [=](DecodeCase*, std::vector<BoundArgument>* arguments) {
    (*arguments)[static_cast<size_t>(argument)].value = value;
  };
}
std::function<void(DecodeCase*, std::vector<BoundArgument>*)> Header(
    std::function<void(WorkListHeader*)> change) {
  return [change](DecodeCase* launch, std::vector<BoundArgument>*) {
    WorkListHeader header = launch->work.Get<WorkListHeader>(0);
    change(&header);
    launch->work.Set(0, header);
  };
}
std::function<void(DecodeCase*, std::vector<BoundArgument>*)> Entry(
    uint32_t index, uint32_t page) {
  return [=](DecodeCase* launch, std::vector<BoundArgument>*) {
    launch->table.Set(index, page);
  };
}

std::vector<BadInput> BadInputs(KvElement element) {
  const uint32_t slice_beats = SliceBeats(16, 128, element);
  const uint32_t page_beats = 2 * (slice_beats + 3);
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return {
      {"no tokens", KernelError::kZeroLength, 0,
       Item([](DecodeItem* i) { i->num_tokens = 0; })},
      {"no table step", KernelError::kZeroLength, 0,
       Item([](DecodeItem* i) { i->table_step = 0; })},
      {"slot at the block's end", KernelError::kSlotRange, 16,
       Item([](DecodeItem* i) { i->first_slot = 16; })},
      {"a page too many", KernelError::kTableRange, 8,
       Item([](DecodeItem* i) { i->table_begin = 6; })},
      {"a token too many", KernelError::kTableRange, 8,
       Item([](DecodeItem* i) { i->num_tokens = 7 * 16 + 1; })},
      {"most tokens", KernelError::kTableRange, 1 + kMax / 16,
       Item([=](DecodeItem* i) { i->num_tokens = kMax; })},
      {"steps beyond the table", KernelError::kTableRange, 1 + 2 * 4,
       Item([](DecodeItem* i) { i->table_step = 4; })},
      {"widest step", KernelError::kTableRange, 1 + 2 * uint64_t{kMax},
       Item([=](DecodeItem* i) { i->table_step = kMax; })},
      {"table far away", KernelError::kTableRange, uint64_t{kMax} + 2,
       Item([=](DecodeItem* i) { i->table_begin = kMax; })},
      {"slice beyond the page", KernelError::kSliceRange, page_beats + 1,
       Item([=](DecodeItem* i) {
         i->slice_beat = page_beats + 1 - slice_beats;
       })},
      {"slice far away", KernelError::kSliceRange, uint64_t{kMax} + slice_beats,
       Item([=](DecodeItem* i) { i->slice_beat = kMax; })},
      {"queries beyond the end", KernelError::kQueryRange, 3 * 28 + 1,
       Item([](DecodeItem* i) { i->query_beat = 2 * 28 + 1; })},
      {"outputs beyond the end", KernelError::kOutRange, 3 * 57 + 1,
       Item([](DecodeItem* i) { i->out_beat = 2 * 57 + 2; })},
      {"log-sum-exp beyond the end", KernelError::kOutRange, 3 * 57 + 1,
       Item([](DecodeItem* i) { i->lse_beat = 3 * 57; })},
      {"scale is not a number", KernelError::kBadScale, 0x7FC00000,
       Item([=](DecodeItem* i) { i->scale = nan; })},
      {"page index at the limit", KernelError::kPageIndex, 8, Entry(3, 8)},
      {"largest page index", KernelError::kPageIndex, kMax, Entry(3, kMax)},
      {"no pages", KernelError::kPageIndex, 7,
       [](DecodeCase* launch, std::vector<BoundArgument>* arguments) {
         launch->table.Set(0, uint32_t{7});
         ScalarIs(A::kNumPages, 0)(launch, arguments);
       },
       true},
      {"a page stride of 0", KernelError::kSliceRange, slice_beats,
       ScalarIs(A::kPageStrideBeats, 0), true},
      {"no magic", KernelError::kBadHeader, 0,
       Header([](WorkListHeader* h) { h->magic = 0; }), true},
      {"another kernel's list", KernelError::kBadHeader, 2,
       Header([](WorkListHeader* h) { h->kernel = KernelId::kKvAppend; }),
       true},
      {"more items than the list holds", KernelError::kTooManyItems, 4,
       Header([](WorkListHeader* h) { h->num_items = 4; }), true},
      {"most items", KernelError::kTooManyItems, kMax,
       Header([](WorkListHeader* h) { h->num_items = kMax; }), true},
      {"the first element type that is none", KernelError::kBadGeometry, 2,
       ScalarIs(A::kElement, 2), true},
      {"the last element type that is none", KernelError::kBadGeometry, kMax,
       ScalarIs(A::kElement, kMax), true},
      {"head_dim 0", KernelError::kBadGeometry, 0, ScalarIs(A::kHeadDim, 0),
       true},
      {"head_dim 96", KernelError::kBadGeometry, 96, ScalarIs(A::kHeadDim, 96),
       true},
      {"head_dim 256", KernelError::kBadGeometry, 256,
       ScalarIs(A::kHeadDim, 256), true},
      {"no heads", KernelError::kBadGeometry, 0, ScalarIs(A::kGroupHeads, 0),
       true},
      {"9 heads", KernelError::kBadGeometry, 9, ScalarIs(A::kGroupHeads, 9),
       true},
      {"blocks of 0 tokens", KernelError::kBadGeometry, 0,
       ScalarIs(A::kBlockTokens, 0), true},
      {"blocks of 24 tokens", KernelError::kBadGeometry, 24,
       ScalarIs(A::kBlockTokens, 24), true},
      {"blocks of 4112 tokens", KernelError::kBadGeometry, 4112,
       ScalarIs(A::kBlockTokens, 4112), true},
  };
}

// The output rows and log-sum-exps of one item.
std::string OutputOf(const DecodeCase& launch, const CardMemory& out,
                     uint32_t index) {
  const DecodeItem item = launch.NewItem(index);
  const size_t row_bytes = size_t{launch.shape.group_heads} *
                           OutRowBeats(launch.shape.head_dim) * kBeatBytes;
  const char* data = reinterpret_cast<const char*>(out.data());
  return std::string(data + item.out_beat * size_t{kBeatBytes}, row_bytes) +
         std::string(data + item.lse_beat * size_t{kBeatBytes}, kBeatBytes);
}

class DecodeErrorsTest : public KernelBuildsTest {};

TEST_P(DecodeErrorsTest, EveryBadInputEndsInItsCode) {
  const DecodeCase good = GoodLaunch(element());
  const CardMemory model = ModelOutputs(good);
  for (const BadInput& bad : BadInputs(element())) {
    SCOPED_TRACE(bad.name);
    DecodeCase launch = GoodLaunch(element());
    std::vector<BoundArgument> arguments = launch.Arguments();
    bad.spoil(&launch, &arguments);
    ASSERT_TRUE(RunKernel(build(), KernelId::kPagedDecode, arguments).ok());
    const KernelStatus status = launch.Status();
    EXPECT_EQ(status.code, bad.code);
    EXPECT_EQ(status.detail, bad.detail);
    EXPECT_EQ(status.launches, 1u);
    EXPECT_EQ(status.item, bad.whole_launch ? 0u : 1u);
    EXPECT_EQ(status.items_done, status.item);
    EXPECT_FALSE(ToStatus("paged_decode", status).ok());
    // What comes before is done, what comes after is not touched.
    if (!bad.whole_launch) {
      EXPECT_EQ(OutputOf(launch, launch.out, 0), OutputOf(launch, model, 0));
    }
    EXPECT_EQ(OutputOf(launch, launch.out, 2), OutputOf(launch, good.out, 2));
    EXPECT_EQ(OutputOf(launch, launch.out, 1), OutputOf(launch, good.out, 1));
  }
  EXPECT_EQ(LeftoverStreams(), 0u);
}

TEST_P(DecodeErrorsTest, TheCodeIsSticky) {
  DecodeCase launch = GoodLaunch(element());
  launch.table.Set(3, uint32_t{100});
  ASSERT_TRUE(
      RunKernel(build(), KernelId::kPagedDecode, launch.Arguments()).ok());
  const KernelStatus first = launch.Status();
  launch.table.Set(3, uint32_t{0});
  const CardMemory before = launch.out;
  ASSERT_TRUE(
      RunKernel(build(), KernelId::kPagedDecode, launch.Arguments()).ok());
  const KernelStatus second = launch.Status();
  EXPECT_EQ(second.code, KernelError::kPageIndex);
  EXPECT_EQ(second.item, first.item);
  EXPECT_EQ(second.detail, 100u);
  EXPECT_EQ(second.launches, 2u);
  EXPECT_TRUE(launch.out == before);
  EXPECT_EQ(ToStatus("paged_decode", second).message(),
            "paged_decode item 1: beyond the pool: page index 100 (code 6)");
  // Until the host clears it.
  ASSERT_TRUE(launch.Run(build()).ok());
  EXPECT_TRUE(ToStatus("paged_decode", launch.Status()).ok());
  EXPECT_TRUE(launch.out == ModelOutputs(launch));
}

TEST_P(DecodeErrorsTest, AnEmptyListIsDone) {
  DecodeCase launch = GoodLaunch(element());
  WorkListHeader header = launch.work.Get<WorkListHeader>(0);
  header.num_items = 0;
  launch.work.Set(0, header);
  const CardMemory before = launch.out;
  ASSERT_TRUE(launch.Run(build()).ok());
  EXPECT_EQ(launch.Status().code, KernelError::kOk);
  EXPECT_EQ(launch.Status().items_done, 0u);
  EXPECT_TRUE(launch.out == before);
}

// Numbers that are not finite, of K, V (of int8 of their scales) or queries,
// and that do take part, give NaN or infinities in the rows that they belong
// to, the same in every build.
TEST_P(DecodeErrorsTest, NumbersThatAreNotFiniteStayInTheirRows) {
  constexpr uint16_t kStrange[] = {0x7F80, 0xFF80, 0x7FC0, 0x7F7F,
                                   0xFF7F, 0x0001, 0x8000};
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    DecodeCase launch = GoodLaunch(element());
    for (int i = 0; i < (int8() ? 20 : 200); ++i) {
      const uint16_t strange = kStrange[random() % 7];
      if (!int8()) {
        launch.kv.Set(random() % (launch.kv.size() / 2), strange);
        continue;
      }
      const uint32_t page = static_cast<uint32_t>(random() % 8);
      const uint32_t slot = static_cast<uint32_t>(random() % 16);
      const size_t byte = random() % 2 == 0
                              ? launch.KeyScaleByte(page, 0, slot)
                              : launch.ValueScaleByte(page, 0, slot);
      launch.kv.Set(byte / 4, uint32_t{strange} << 16);
    }
    const size_t queries = launch.queries.size() / 2;
    launch.queries.Set(random() % queries, kStrange[random() % 7]);
    ASSERT_TRUE(launch.Run(build()).ok());
    EXPECT_EQ(launch.Status().code, KernelError::kOk);
    ASSERT_TRUE(launch.out == ModelOutputs(launch));
  }
}

PAGED_KV_ALL_KERNEL_BUILDS(DecodeErrorsTest);

}  // namespace
}  // namespace paged_kv::fpga_dma

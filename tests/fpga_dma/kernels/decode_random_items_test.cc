// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Work lists with words and page indices that random values took the place of:
// paged_decode does the items before the first bad one, names that one, and
// touches nothing outside its memory, which the address sanitizer sees.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "fpga_dma/kernels/stand_in/stage_threads.h"
#include "fpga_dma/kernels/stand_in/stream_faults.h"
#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/decode_model.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr int kLaunches = 500;
constexpr int kThreadedLaunches = 150;

// What the ABI says of an item, in the order in which it is looked at.
KernelError Expected(const DecodeCase& launch, const DecodeItem& item) {
  const DecodeShape& shape = launch.shape;
  const uint64_t out_beats = launch.out.size() / kBeatBytes;
  if (item.num_tokens == 0 || item.table_step == 0) {
    return KernelError::kZeroLength;
  }
  if (item.first_slot >= shape.block_tokens) return KernelError::kSlotRange;
  const uint64_t end_slot = uint64_t{item.first_slot} + item.num_tokens;
  const uint64_t pages =
      (end_slot + shape.block_tokens - 1) / shape.block_tokens;
  if (item.table_begin + (pages - 1) * item.table_step >= shape.table_entries) {
    return KernelError::kTableRange;
  }
  if (uint64_t{item.slice_beat} + shape.slice_beats() >
      launch.page_stride_beats) {
    return KernelError::kSliceRange;
  }
  if (uint64_t{item.query_beat} + shape.group_heads * RowBeats(shape.head_dim) >
      launch.queries.size() / kBeatBytes) {
    return KernelError::kQueryRange;
  }
  if (uint64_t{item.out_beat} +
              shape.group_heads * OutRowBeats(shape.head_dim) >
          out_beats ||
      item.lse_beat >= out_beats) {
    return KernelError::kOutRange;
  }
  if (!std::isfinite(item.scale)) return KernelError::kBadScale;
  for (uint64_t page = 0; page < pages; ++page) {
    const size_t entry = item.table_begin + page * item.table_step;
    if (launch.table.Get<uint32_t>(entry) >= shape.num_pages) {
      return KernelError::kPageIndex;
    }
  }
  return KernelError::kOk;
}

// Small values, values around a limit, and the largest ones.
uint32_t Strange(std::mt19937_64& random, uint64_t limit) {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  const uint32_t some = static_cast<uint32_t>(random());
  switch (random() % 5) {
    case 0:
      return some % 4;
    case 1:
      return static_cast<uint32_t>(limit) + some % 3 - 1;
    case 2:
      return kMax - some % 4;
    case 3:
      return some;
    default:
      return some % static_cast<uint32_t>(limit + 1);
  }
}

void SpoilItem(std::mt19937_64& random, uint32_t index, DecodeCase* launch) {
  const DecodeShape& shape = launch->shape;
  const uint32_t out_beats =
      static_cast<uint32_t>(launch->out.size() / kBeatBytes);
  DecodeItem item = launch->Item(index);
  switch (random() % 9) {
    case 0:
      item.table_begin = Strange(random, shape.table_entries);
      break;
    case 1:
      item.table_step = Strange(random, shape.table_entries);
      break;
    case 2:
      item.first_slot = Strange(random, shape.block_tokens);
      break;
    case 3:
      item.num_tokens =
          Strange(random, shape.table_entries * shape.block_tokens);
      break;
    case 4:
      item.slice_beat =
          Strange(random, launch->page_stride_beats - shape.slice_beats());
      break;
    case 5:
      item.query_beat = Strange(random, launch->queries.size() / kBeatBytes);
      break;
    // Outputs that lie over others would say nothing.
    case 6:
      item.out_beat = out_beats -
                      shape.group_heads * OutRowBeats(shape.head_dim) + 1 +
                      Strange(random, 0) % 1000;
      break;
    case 7:
      item.lse_beat = out_beats + Strange(random, 0) % 1000;
      break;
    default: {
      const uint32_t bits = static_cast<uint32_t>(random());
      std::memcpy(&item.scale, &bits, sizeof(bits));
    }
  }
  launch->SetItem(index, item);
}

class DecodeRandomItemsTest : public KernelBuildsTest {};

TEST_P(DecodeRandomItemsTest, TheFirstBadItemEndsTheList) {
  std::mt19937_64 random(TestSeed(9));
  int bad_launches = 0;
  const int launches = threaded() ? kThreadedLaunches : kLaunches;
  for (int i = 0; i < launches; ++i) {
    DecodeCase launch = RandomDecodeCase(element(), random);
    const uint32_t items = launch.shape.num_items;
    for (uint64_t spoiled = random() % 3; spoiled > 0; --spoiled) {
      SpoilItem(random, static_cast<uint32_t>(random() % items), &launch);
    }
    if (random() % 4 == 0) {
      launch.table.Set(random() % launch.shape.table_entries,
                       Strange(random, launch.shape.num_pages));
    }
    uint32_t good = 0;
    KernelError error = KernelError::kOk;
    while (good < items) {
      error = Expected(launch, launch.Item(good));
      if (error != KernelError::kOk) break;
      ++good;
    }
    bad_launches += error != KernelError::kOk;
    SCOPED_TRACE(testing::Message()
                 << "launch " << i << ", item " << good << " of " << items);
    const CardMemory model = ModelOutputs(launch, good);
    SetStageSeed(random());
    ASSERT_TRUE(launch.Run(build()).ok());
    ASSERT_EQ(launch.Status().code, error);
    ASSERT_EQ(launch.Status().item, good);
    ASSERT_EQ(launch.Status().items_done, good);
    ASSERT_TRUE(launch.out == model);
  }
  EXPECT_EQ(LeftoverStreams(), 0u);
  // The test means something: many launches are bad, and many are not.
  EXPECT_GT(bad_launches, launches / 4);
  EXPECT_LT(bad_launches, launches * 3 / 4);
}

PAGED_KV_ALL_KERNEL_BUILDS(DecodeRandomItemsTest);

}  // namespace
}  // namespace paged_kv::fpga_dma

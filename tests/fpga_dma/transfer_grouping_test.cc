// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What goes by one descriptor has room where it goes: in staging slabs, and in
// the lists that say where their runs belong.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "fpga_dma/transfers/ready_pieces.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/transfer_rig.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

// Pieces of one slab in gaps of their own size, so that none are neighbours.
ReadyPieces Scattered(uint32_t count, uint64_t bytes) {
  ReadyPieces ready(1);
  for (uint32_t i = 0; i < count; ++i) ready.Add(0, {2 * i * bytes, i, bytes});
  return ready;
}

SlabWays PackingOnly(uint32_t) {
  SlabWays ways;
  ways.packing = true;
  ways.staging_free = true;
  return ways;
}

// The sizes of the packs that all pieces go in; each piece goes once.
std::vector<size_t> PackSizes(ReadyPieces ready, const GroupingLimits& limits) {
  std::vector<size_t> sizes;
  std::vector<uint32_t> items;
  while (ready.size() > 0) {
    const PieceGroup group = ready.Take(limits, PackingOnly);
    EXPECT_TRUE(group.packed);
    if (group.pieces.empty()) break;
    sizes.push_back(group.pieces.size());
    for (const ReadyPiece& piece : group.pieces) items.push_back(piece.item);
  }
  std::sort(items.begin(), items.end());
  EXPECT_EQ(std::unique(items.begin(), items.end()), items.end());
  return sizes;
}

TEST(TransferGroupingTest, APackHasAsManyRunsAsAListHolds) {
  GroupingLimits limits;
  limits.staging_bytes = 1u << 20;
  limits.max_packed_pieces = 7;
  EXPECT_EQ(PackSizes(Scattered(20, 64), limits),
            (std::vector<size_t>{7, 7, 6}));
}

TEST(TransferGroupingTest, APackHasAsManyBytesAsAStagingSlab) {
  GroupingLimits limits;
  limits.staging_bytes = 3 * 64 + 63;
  limits.max_packed_pieces = 100;
  EXPECT_EQ(PackSizes(Scattered(8, 64), limits),
            (std::vector<size_t>{3, 3, 2}));
}

// Layers of half a kilobyte: a staging slab has room for more of them than its
// lists can name.
TEST(TransferGroupingTest, ManyShortRunsNeedSeveralLists) {
  RigOptions options;
  options.shape.layers = 3;
  options.shape.kv_heads = 1;
  options.shape.head_dim = 8;
  options.shape.block_tokens = 16;
  options.host_pages = 600;
  options.device_pages = 1200;
  options.seed = TestSeed(5);
  options.queue.staging_bytes = uint64_t{1} << 19;  // lists of 128 runs
  const LayerRange layer = {1, 1};
  const uint64_t layer_bytes = PageBytes(options.shape).value() / 3;
  ASSERT_LT(600 * layer_bytes, options.queue.staging_bytes);
  TransferRig rig(options);
  std::vector<uint32_t> places(options.device_pages);
  std::iota(places.begin(), places.end(), 0u);
  std::shuffle(places.begin(), places.end(), std::mt19937_64(options.seed));
  std::vector<TransferRig::Page> wanted;
  std::vector<PageTransfer> pages;
  for (uint32_t i = 0; i < options.host_pages; ++i) {
    rig.FillDevice(places[i], rig.AllLayers());
    wanted.push_back(rig.DevicePage(places[i]));
    rig.CopyLayers(rig.HostPage(i), layer, &wanted.back());
    pages.push_back(Up(i, places[i], layer));
  }
  ASSERT_TRUE(rig.Move(pages).status.ok());
  EXPECT_GE(rig.queue().Stats().packed_slabs, 5u);  // 600 / 128
  for (uint32_t i = 0; i < options.host_pages; ++i) {
    ASSERT_TRUE(rig.DevicePage(places[i]) == wanted[i]) << "page " << i;
  }
  for (PageTransfer& page : pages) {
    page.direction = TransferDirection::kDownload;
  }
  std::vector<TransferRig::Page> host;
  for (uint32_t i = 0; i < options.host_pages; ++i) {
    TransferRig::Page page = rig.HostPage(i);
    rig.FillHost(i);
    TransferRig::Page now = rig.HostPage(i);
    rig.CopyLayers(page, layer, &now);
    host.push_back(now);
  }
  ASSERT_TRUE(rig.Move(pages).status.ok());
  for (uint32_t i = 0; i < options.host_pages; ++i) {
    ASSERT_TRUE(rig.HostPage(i) == host[i]) << "page " << i;
  }
  rig.ExpectNoMisuse();
}

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/transfer_queue.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fpga_dma/transfer_rig.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

BlockShape Shape(uint32_t layers, uint32_t heads, uint32_t dim,
                 uint32_t tokens = 16, DType dtype = DType::kBF16) {
  BlockShape shape;
  shape.layers = layers;
  shape.kv_heads = heads;
  shape.head_dim = dim;
  shape.block_tokens = tokens;
  shape.dtype = dtype;
  return shape;
}

// Qwen2.5-7B.
BlockShape Qwen() { return Shape(28, 4, 128); }

std::vector<uint32_t> Shuffled(TransferRig* rig, uint32_t n) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = n; i > 1; --i) {
    std::swap(order[i - 1], order[rig->Below(i)]);
  }
  return order;
}

// ---- Every byte goes where it belongs, and no other changes ----

// Random lists up and down over all ways of moving, against a copy of whole
// pages.
void MoveAndCompare(const RigOptions& options, uint32_t rounds) {
  TransferRig rig(options);
  std::vector<TransferRig::Page> host, card;
  for (uint32_t p = 0; p < options.host_pages; ++p) {
    host.push_back(rig.HostPage(p));
  }
  for (uint32_t p = 0; p < options.device_pages; ++p) {
    rig.FillDevice(p, rig.AllLayers());
    card.push_back(rig.DevicePage(p));
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<PageTransfer> list;
    const uint32_t n = 1 + rig.Below(options.device_pages);
    for (uint32_t i = 0; i < n; ++i) {
      LayerRange layers;
      layers.first = rig.Below(options.shape.layers);
      layers.count = 1 + rig.Below(options.shape.layers - layers.first);
      if (rig.Below(3) == 0) layers = rig.AllLayers();
      const uint32_t h = rig.Below(options.host_pages);
      const uint32_t d = rig.Below(options.device_pages);
      if (rig.Below(2) == 0) {
        list.push_back(Up(h, d, layers));
        rig.CopyLayers(host[h], layers, &card[d]);
      } else {
        list.push_back(Down(d, h, layers));
        rig.CopyLayers(card[d], layers, &host[h]);
      }
    }
    const TransferResult result = rig.Move(list);
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_TRUE(result.failed.empty());
    ASSERT_TRUE(rig.queue().CheckInvariants().ok())
        << rig.queue().CheckInvariants();
    for (uint32_t p = 0; p < options.host_pages; ++p) {
      ASSERT_EQ(rig.HostPage(p), host[p]) << "host page " << p;
    }
    for (uint32_t p = 0; p < options.device_pages; ++p) {
      ASSERT_EQ(rig.DevicePage(p), card[p]) << "device page " << p;
    }
  }
  EXPECT_EQ(rig.queue().unfinished(), 0u);
  EXPECT_EQ(rig.queue().Stats().corruptions, 0u);
  rig.ExpectNoMisuse();
}

TEST(TransferQueueTest, MovesWhatACopyMoves) {
  const uint64_t seed = TestSeed(1);
  const std::vector<BlockShape> shapes = {
      Shape(1, 1, 8, 1),
      Shape(3, 2, 8, 16),
      Shape(5, 7, 72, 5, DType::kF16),
      Shape(2, 5, 16, 16, DType::kInt8),
      Shape(4, 3, 24, 7, DType::kFp8E4M3),
      Shape(7, 4, 64, 32, DType::kF32),
      Shape(28, 4, 128, 16),
  };
  uint64_t n = 0;
  for (const BlockShape& shape : shapes) {
    for (uint32_t stripes : {1u, 2u, 3u, 4u, 7u}) {
      if (stripes > shape.kv_heads) continue;
      for (uint32_t splits : {1u, 3u}) {
        for (int way = 0; way < 4; ++way) {
          RigOptions options;
          options.shape = shape;
          options.stripes = stripes;
          options.splits = splits;
          options.host_pages = 9;
          options.device_pages = 12;
          options.host_gaps = way % 2 == 1;
          options.seed = seed + n++;
          options.max_slowdown = 1.5;
          options.queue.staging_bytes = 64 << 10;
          switch (way) {
            case 0:  // both extents and packing
              options.queue.min_extent_bytes = 8 << 10;
              options.queue.max_lone_pieces = 1;
              break;
            case 1:  // extents alone, all of them short
              options.scatter = false;
              options.queue.max_extent_bytes = 4 << 10;
              break;
            case 2:  // packing alone
              options.kind = SlabKind::kDeviceOnly;
              options.queue.staging_slabs = 1;
              break;
            case 3:  // little of everything
              options.channels = 1;
              options.queue.staging_slabs = 2;
              options.queue.max_lone_pieces = 0;
              options.queue.min_extent_bytes = 1 << 30;
              break;
          }
          SCOPED_TRACE(absl::StrCat(shape.layers, " layers, ", shape.kv_heads,
                                    " heads, ", stripes, " stripes, ", splits,
                                    " splits, way ", way));
          MoveAndCompare(options, 3);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(TransferQueueTest, ManyThreadsPackTheSameBytes) {
  attention::ThreadPool threads(3);
  RigOptions options;
  options.shape = Shape(7, 4, 64);
  options.stripes = 2;
  options.queue.parallel = &threads;
  options.queue.staging_bytes = 256 << 10;
  MoveAndCompare(options, 5);
}

// ---- What it refuses ----

TEST(TransferQueueTest, RefusesWhatIsNotThere) {
  RigOptions options;
  options.shape = Shape(4, 2, 16);
  options.queue.max_pages = 4;
  TransferRig rig(options);
  TransferQueue& queue = rig.queue();
  const auto submit = [&](std::vector<PageTransfer> list) {
    return queue.Submit(list, TransferPriority::kDecode).status().code();
  };
  using absl::StatusCode;
  EXPECT_EQ(submit({}), StatusCode::kInvalidArgument);
  EXPECT_EQ(submit({Up(16, 0, {0, 4})}), StatusCode::kOutOfRange);
  EXPECT_EQ(submit({Up(0, 16, {0, 4})}), StatusCode::kOutOfRange);
  EXPECT_EQ(submit({Up(0, 0, {0, 5})}), StatusCode::kOutOfRange);
  EXPECT_EQ(submit({Up(0, 0, {4, 1})}), StatusCode::kOutOfRange);
  EXPECT_EQ(submit({Up(0, 0, {0, 0})}), StatusCode::kOutOfRange);
  EXPECT_EQ(submit({Up(0, 0, {0xFFFFFFFFu, 2})}), StatusCode::kOutOfRange);
  // All or nothing, also where the first is good.
  EXPECT_EQ(submit({Up(0, 0, {0, 4}), Up(0, 16, {0, 4})}),
            StatusCode::kOutOfRange);
  EXPECT_EQ(submit(std::vector<PageTransfer>(5, Up(0, 0, {0, 4}))),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(queue.unfinished(), 0u);
  EXPECT_EQ(queue.Cancel(TransferListId(7)).code(), StatusCode::kNotFound);
  EXPECT_EQ(queue.Wait(TransferListId(7), absl::InfiniteFuture()).code(),
            StatusCode::kNotFound);
  EXPECT_EQ(queue.NoteDeviceWrite(16, {0, 1}).code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(rig.Move({Up(0, 0, {0, 4})}).status.ok());
  EXPECT_TRUE(queue.CheckInvariants().ok());
}

TEST(TransferQueueTest, RefusesPagesThatItCannotMoveAsTheyAre) {
  RigOptions options;
  options.shape = Shape(4, 2, 16);
  TransferRig rig(options);
  const auto create = [&](const attention::KvPages& host,
                          const TransferQueueOptions& queue) {
    return TransferQueue::Create(&rig.tracker(), &rig.pool(), host, queue)
        .status()
        .code();
  };
  using absl::StatusCode;
  attention::KvPages host = rig.host();
  host.layout.k_order = KOrder::kTokenDim;
  EXPECT_EQ(create(host, {}), StatusCode::kInvalidArgument);
  host = rig.host();
  host.shape.layers = 3;
  EXPECT_EQ(create(host, {}), StatusCode::kInvalidArgument);
  host = rig.host();
  host.layout.base = nullptr;
  EXPECT_EQ(create(host, {}), StatusCode::kInvalidArgument);
  TransferQueueOptions none;
  none.max_attempts = 0;
  EXPECT_EQ(create(rig.host(), none), StatusCode::kInvalidArgument);
  TransferQueueOptions rate;
  rate.host_bytes_per_second = -1;
  EXPECT_EQ(create(rig.host(), rate), StatusCode::kInvalidArgument);

  // A pool without images and a card without the kernel.
  RigOptions bare = options;
  bare.scatter = false;
  TransferRig images(bare);
  DevicePoolOptions pool;
  pool.shape = options.shape;
  pool.num_pages = 4;
  pool.kind = SlabKind::kDeviceOnly;
  const auto dark = DevicePool::Create(&images.device(), pool).value();
  EXPECT_EQ(
      TransferQueue::Create(&images.tracker(), dark.get(), images.host(), {})
          .status()
          .code(),
      StatusCode::kFailedPrecondition);
}

// ---- Order ----

TEST(TransferQueueTest, UrgentTransfersOvertake) {
  RigOptions options;
  options.shape = Shape(4, 2, 64);
  options.host_pages = options.device_pages = 200;
  options.channels = 1;
  options.queue.max_extent_bytes = 16 << 10;
  options.queue.min_extent_bytes = 0;
  TransferRig rig(options);
  std::vector<PageTransfer> slow, fast;
  for (uint32_t i = 0; i < 190; ++i) slow.push_back(Up(i, i, {0, 4}));
  for (uint32_t i = 190; i < 200; ++i) fast.push_back(Up(i, i, {0, 4}));
  const auto background =
      rig.queue().Submit(slow, TransferPriority::kWriteBack).value();
  rig.queue().Advance(absl::InfinitePast());
  const auto urgent =
      rig.queue().Submit(fast, TransferPriority::kDecode).value();
  ASSERT_TRUE(rig.queue().Wait(urgent, absl::InfiniteFuture()).ok());
  // At most what was at the channel when it came is in front of it.
  const TransferProgress left = rig.queue().Progress(background).value();
  EXPECT_LE(left.pages_done, 14u);
  EXPECT_GT(left.pages, 180u);
  ASSERT_TRUE(rig.queue().Wait(background, absl::InfiniteFuture()).ok());
  const TransferQueueStats stats = rig.queue().Stats();
  EXPECT_EQ(stats.waits[0], 10u);
  EXPECT_EQ(stats.waits[2], 190u);
  EXPECT_LT(stats.wait_max[0], stats.wait_max[2] / 5);
}

// Case E4: two pages offloaded to one host page; the later one stays. A page
// that is loaded from there carries what was offloaded; a copy of it waits for
// the load.
TEST(TransferQueueTest, CaseE4TransfersOfOnePageKeepTheirOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RigOptions options;
    options.shape = Shape(6, 4, 32);
    options.stripes = 2;
    options.seed = seed;
    options.max_slowdown = 3;
    options.queue.max_lone_pieces = seed % 4;
    TransferRig rig(options);
    for (uint32_t p = 0; p < 5; ++p) rig.FillDevice(p, rig.AllLayers());
    const TransferRig::Page b1 = rig.DevicePage(1), b2 = rig.DevicePage(2);
    const TransferRig::Page before = rig.HostPage(7);
    const LayerRange all = rig.AllLayers();
    const TransferResult result = rig.Move({
        Up(7, 5, all),    // reads host page 7 before it changes
        Down(1, 7, all),  // out(b1 -> h0)
        Down(2, 7, all),  // out(b2 -> h0)
        Up(7, 3, all),    // in(h0 -> b3)
        Down(3, 8, all),  // copy(b3 -> b4) through host page 8
        Up(8, 4, all),    //
        Up(9, 2, all),    // overwrites b2 after it was read
    });
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(rig.DevicePage(5), before);
    EXPECT_EQ(rig.HostPage(7), b2);
    EXPECT_EQ(rig.DevicePage(3), b2);
    EXPECT_EQ(rig.DevicePage(4), b2);
    EXPECT_EQ(rig.DevicePage(2), rig.HostPage(9));
    EXPECT_EQ(rig.DevicePage(1), b1);
    rig.ExpectNoMisuse();
  }
}

// Layers of one page go their own ways: hand-off sends each as it is written.
TEST(TransferQueueTest, LayersOfAPageDoNotWaitForEachOther) {
  RigOptions options;
  options.shape = Shape(4, 2, 64);
  TransferRig rig(options);
  const auto first =
      rig.queue().Submit({{Up(0, 0, {0, 1})}}, TransferPriority::kPrefetch);
  const auto second =
      rig.queue().Submit({{Up(0, 0, {1, 1})}}, TransferPriority::kPrefetch);
  ASSERT_TRUE(first.ok() && second.ok());
  rig.queue().Advance(absl::InfinitePast());
  // Neighbours that are ready together are one extent.
  EXPECT_EQ(rig.queue().Stats().descriptors_up, 1u);
  ASSERT_TRUE(rig.queue().Wait(*second, absl::InfiniteFuture()).ok());
  EXPECT_EQ(rig.queue().unfinished(), 0u);
}

// Case E9: lists that come while staging slabs are still being read wait for
// them, across calls.
TEST(TransferQueueTest, CaseE9StagingSlabsAreTrackedAcrossCalls) {
  RigOptions options;
  options.shape = Shape(4, 2, 64);
  options.kind = SlabKind::kDeviceOnly;
  options.queue.staging_slabs = 2;
  options.queue.staging_bytes = 64 << 10;  // two pages of 32 KiB
  TransferRig rig(options);
  std::vector<TransferListId> ids;
  for (uint32_t list = 0; list < 2; ++list) {
    std::vector<PageTransfer> pages;
    for (uint32_t i = 0; i < 8; ++i) {
      pages.push_back(Up(8 * list + i, (5 * (8 * list + i)) % 16, {0, 4}));
    }
    ids.push_back(rig.queue().Submit(pages, TransferPriority::kDecode).value());
    rig.queue().Advance(absl::InfinitePast());
    ASSERT_TRUE(rig.queue().CheckInvariants().ok());
  }
  for (TransferListId id : ids) {
    ASSERT_TRUE(rig.queue().Wait(id, absl::InfiniteFuture()).ok());
  }
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(rig.DevicePage(5 * i % 16), rig.HostPage(i));
  }
  EXPECT_GE(rig.queue().Stats().packed_slabs, 8u);
  rig.ExpectNoMisuse();
}

// ---- Ends ----

// Cases E1 and E2: an aborted transfer's pages are busy until its operations
// have ended, and nothing of it is written afterwards.
TEST(TransferQueueTest, CasesE1E2PagesAreBusyUntilTheFence) {
  RigOptions options;
  options.shape = Shape(4, 2, 64);
  options.queue.min_extent_bytes = 0;
  options.queue.max_extent_bytes = 64 << 10;
  options.channels = 1;
  TransferRig rig(options);
  const LayerRange all = rig.AllLayers();
  std::vector<PageTransfer> pages;
  for (uint32_t i = 0; i < 16; ++i) pages.push_back(Up(i, i, all));
  const auto id = rig.queue().Submit(pages, TransferPriority::kDecode).value();
  rig.queue().Advance(absl::InfinitePast());  // dma_begin(b)
  ASSERT_TRUE(rig.queue().Cancel(id).ok());   // abort(s)
  ASSERT_TRUE(rig.queue().CheckInvariants().ok());
  EXPECT_TRUE(rig.queue().DevicePageBusy(0));
  EXPECT_TRUE(rig.queue().HostPageBusy(0));
  EXPECT_FALSE(rig.queue().DevicePageBusy(15));  // it had not begun
  EXPECT_FALSE(rig.queue().TakeResult().has_value());
  // The next owner of a page that is still busy waits for the fence.
  const auto next =
      rig.queue().Submit({{Up(15, 0, all)}}, TransferPriority::kDecode);
  ASSERT_TRUE(next.ok());
  ASSERT_TRUE(rig.queue().Wait(*next, absl::InfiniteFuture()).ok());
  const absl::optional<TransferResult> result = rig.queue().TakeResult();
  ASSERT_TRUE(result.has_value());  // dma_done(b)
  EXPECT_EQ(result->id, id);
  EXPECT_TRUE(absl::IsCancelled(result->status)) << result->status;
  EXPECT_GT(result->failed.size(), 8u);
  EXPECT_LT(result->failed.size(), 16u);
  EXPECT_EQ(rig.DevicePage(0), rig.HostPage(15));
  EXPECT_FALSE(rig.queue().DevicePageBusy(0));
  EXPECT_EQ(rig.queue().unfinished(), 0u);
  rig.ExpectNoMisuse();
}

TEST(TransferQueueTest, WhatReadsACancelledPageIsAborted) {
  RigOptions options;
  options.shape = Shape(4, 2, 64);
  options.channels = 1;
  options.queue.channel_depth = 1;
  TransferRig rig(options);
  const LayerRange all = rig.AllLayers();
  // Keeps the channel busy, so that the next ones have not begun.
  std::vector<PageTransfer> pages;
  for (uint32_t i = 0; i < 8; ++i) pages.push_back(Up(i, 2 * i, all));
  const auto busy = rig.queue().Submit(pages, TransferPriority::kDecode);
  ASSERT_TRUE(busy.ok());
  const auto up =
      rig.queue().Submit({{Up(8, 0, all)}}, TransferPriority::kDecode).value();
  const auto down = rig.queue()
                        .Submit({{Down(0, 9, all)}}, TransferPriority::kDecode)
                        .value();
  const TransferRig::Page before = rig.HostPage(9);
  ASSERT_TRUE(rig.queue().Cancel(up).ok());
  ASSERT_TRUE(rig.queue().Wait(down, absl::InfiniteFuture()).ok());
  std::vector<absl::StatusCode> codes;
  while (auto result = rig.queue().TakeResult()) {
    codes.push_back(result->status.code());
  }
  EXPECT_EQ(codes, (std::vector<absl::StatusCode>{absl::StatusCode::kOk,
                                                  absl::StatusCode::kCancelled,
                                                  absl::StatusCode::kAborted}));
  EXPECT_EQ(rig.HostPage(9), before);
  EXPECT_EQ(rig.queue().unfinished(), 0u);
}

TEST(TransferQueueTest, ProgressOfALongMoveIsPolled) {
  RigOptions options;
  options.shape = Shape(4, 2, 64);
  options.host_pages = options.device_pages = 64;
  options.queue.max_extent_bytes = 64 << 10;
  options.queue.min_extent_bytes = 0;
  TransferRig rig(options);
  std::vector<PageTransfer> pages;
  for (uint32_t i = 0; i < 64; ++i) pages.push_back(Up(i, i, {0, 4}));
  const auto id =
      rig.queue().Submit(pages, TransferPriority::kPrefetch).value();
  size_t last = 0, steps = 0;
  while (true) {
    const auto progress = rig.queue().Progress(id);
    if (!progress.ok()) break;
    EXPECT_EQ(progress->pages, 64u);
    EXPECT_EQ(progress->bytes, 64 * PageBytes(options.shape).value());
    EXPECT_EQ(progress->bytes_done,
              progress->pages_done * PageBytes(options.shape).value());
    EXPECT_GE(progress->pages_done, last);
    steps += progress->pages_done > last ? 1 : 0;
    last = progress->pages_done;
    rig.queue().Advance(rig.device().Now() + absl::Microseconds(20));
  }
  EXPECT_GT(steps, 10u);
  const auto result = rig.queue().TakeResult();
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok());
  EXPECT_GT(result->finished, result->submitted);
  EXPECT_EQ(rig.queue().Wait(id, absl::InfinitePast()).code(),
            absl::StatusCode::kOk);
}

// ---- How much of the link's rate scattered pages get ----

constexpr double kLinkBytesPerSecond = 12e9;  // RigBoard

RigOptions LinkRig(uint32_t stripes, uint32_t splits, uint32_t layers,
                   uint32_t pages) {
  RigOptions options;
  options.shape = Qwen();
  options.shape.layers = layers;
  options.host_pages = pages;
  options.device_pages = 2 * pages;
  options.stripes = stripes;
  options.splits = splits;
  options.detect_misuse = false;
  return options;
}

double LinkShare(const RigOptions& options, size_t pages, LayerRange layers,
                 absl::Duration time) {
  const double bytes = static_cast<double>(pages) * layers.count *
                       static_cast<double>(PageBytes(options.shape).value()) /
                       options.shape.layers;
  return bytes / kLinkBytesPerSecond / absl::ToDoubleSeconds(time);
}

// `n` pages, all or one layer of each, scattered over a pool of twice as many.
void ExpectLinkShare(uint32_t stripes, uint32_t splits, uint32_t n,
                     bool one_layer) {
  // Where one layer moves, the others only take memory.
  const RigOptions options = LinkRig(stripes, splits, one_layer ? 2 : 28, n);
  TransferRig rig(options);
  const std::vector<uint32_t> places = Shuffled(&rig, 2 * n);
  const LayerRange layers = one_layer ? LayerRange{1, 1} : rig.AllLayers();
  std::vector<PageTransfer> pages;
  for (uint32_t i = 0; i < n; ++i) pages.push_back(Up(i, places[i], layers));
  for (TransferDirection direction :
       {TransferDirection::kUpload, TransferDirection::kDownload}) {
    for (PageTransfer& page : pages) page.direction = direction;
    const TransferQueueStats before = rig.queue().Stats();
    const absl::Time begin = rig.device().Now();
    ASSERT_TRUE(rig.Move(pages).status.ok());
    const double share =
        LinkShare(options, n, layers, rig.device().Now() - begin);
    const TransferQueueStats after = rig.queue().Stats();
    std::printf(
        "%u stripes, %u %s %s: link share %.3f, %d descriptors\n", stripes, n,
        one_layer ? "single layers" : "whole pages",
        direction == TransferDirection::kUpload ? "up" : "down", share,
        static_cast<int>(after.descriptors_up + after.descriptors_down -
                         before.descriptors_up - before.descriptors_down));
    EXPECT_GE(share, 0.8);
  }
}

// Whole pages are 896 KiB each; PAGED_KV_LINK_PAGES=1000 takes minutes and
// gives the same share.
TEST(TransferQueueTest, ScatteredPagesGetMostOfTheLink) {
  const char* pages = std::getenv("PAGED_KV_LINK_PAGES");
  const auto whole =
      static_cast<uint32_t>(pages != nullptr ? std::atoi(pages) : 100);
  for (const auto& [stripes, splits] : {std::pair(1u, 4u), {4u, 1u}}) {
    ExpectLinkShare(stripes, splits, 1000, /*one_layer=*/true);
    ExpectLinkShare(stripes, splits, whole, /*one_layer=*/false);
  }
}

// What packing is for: a blocking descriptor per K and V of a head.
TEST(TransferQueueTest, SliceBySliceGetsATwentieth) {
  const RigOptions options = LinkRig(4, 1, 1, 1000);
  TransferRig rig(options);
  const PoolGeometry& geometry = rig.pool().geometry();
  const std::vector<uint32_t> places = Shuffled(&rig, 2000);
  const absl::Time begin = rig.device().Now();
  for (uint32_t i = 0; i < 1000; ++i) {
    for (uint32_t stripe = 0; stripe < 4; ++stripe) {
      ASSERT_EQ(geometry.Heads(stripe), 1u);
      ASSERT_TRUE(
          rig.device()
              .StartUpload(rig.pool().Range(places[i], stripe, {0, 1}), 0)
              .ok());
      Completion completion;
      ASSERT_EQ(
          rig.device()
              .Poll(absl::InfiniteFuture(), absl::MakeSpan(&completion, 1))
              .value(),
          1u);
    }
  }
  const double share =
      LinkShare(options, 1000, {0, 1}, rig.device().Now() - begin);
  std::printf("slice by slice: link share %.3f\n", share);
  EXPECT_LE(share, 0.06);
  EXPECT_GE(share, 0.04);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

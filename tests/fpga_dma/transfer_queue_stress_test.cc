// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "fpga_dma/transfers/thread_safe_transfer_queue.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/transfer_rig.h"

namespace paged_kv::fpga_dma {
namespace {

// Each thread sends its pages to the card and back, cancels some, and finds its
// bytes; one polls figures meanwhile.
TEST(TransferQueueStressTest, ThreadsShareAQueue) {
  constexpr uint32_t kThreads = 4, kPages = 4, kRounds = 12;
  RigOptions options;
  options.shape.layers = 2;
  options.shape.kv_heads = 2;
  options.shape.head_dim = 16;
  options.host_pages = options.device_pages = 2 * kThreads * kPages;
  options.stripes = 2;
  options.max_slowdown = 2;
  options.queue.staging_bytes = 16 << 10;
  options.queue.max_lone_pieces = 1;
  TransferRig rig(options);
  ThreadSafeTransferQueue queue(&rig.queue());
  std::atomic<uint32_t> submitted{0}, running{kThreads};

  const auto work = [&](uint32_t thread) {
    const LayerRange all = {0, 2};
    const uint32_t source = 2 * thread * kPages, target = source + kPages;
    for (uint32_t round = 0; round < kRounds; ++round) {
      std::vector<PageTransfer> up, down;
      for (uint32_t i = 0; i < kPages; ++i) {
        up.push_back(Up(source + i, source + i, all));
        down.push_back(Down(source + i, target + i, all));
      }
      const auto priority = static_cast<TransferPriority>(round % 3);
      const auto first = queue.Submit(up, priority);
      const auto second = queue.Submit(down, priority);
      ASSERT_TRUE(first.ok() && second.ok());
      submitted += 2;
      const bool cancel = (round + thread) % 5 == 0;
      if (cancel) (void)queue.Cancel(*second);  // it may have ended
      ASSERT_TRUE(queue.Wait(*second, absl::InfiniteFuture()).ok());
      ASSERT_FALSE(queue.DevicePageBusy(source));
      if (cancel) continue;
      for (uint32_t i = 0; i < kPages; ++i) {
        ASSERT_EQ(rig.HostPage(target + i), rig.HostPage(source + i));
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      work(t);
      --running;
    });
  }
  std::set<TransferListId> results;
  do {
    EXPECT_TRUE(queue.CheckInvariants().ok()) << queue.CheckInvariants();
    const TransferQueueStats stats = queue.Stats();
    EXPECT_EQ(stats.pages_failed, 0u);
    while (auto result = queue.TakeResult()) {
      EXPECT_TRUE(result->status.ok() || absl::IsCancelled(result->status))
          << result->status;
      EXPECT_TRUE(results.insert(result->id).second);
    }
    std::this_thread::yield();
  } while (running > 0);
  for (std::thread& thread : threads) thread.join();
  while (auto result = queue.TakeResult()) results.insert(result->id);
  EXPECT_EQ(results.size(), submitted.load());
  rig.ExpectNoMisuse();
}

}  // namespace
}  // namespace paged_kv::fpga_dma

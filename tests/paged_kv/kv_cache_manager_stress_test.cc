// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads on the thread-safe front. Run by the thread sanitizer.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/op_log.h"
#include "paged_kv/thread_safe_kv_cache.h"
#include "tests/paged_kv/cache_script.h"
#include "tests/support/lockstep_replay.h"

namespace paged_kv {
namespace {

// What is wrong with a snapshot; empty if it adds up.
std::string Inconsistency(const CacheStats& stats, uint32_t block_tokens) {
  const PoolStats& pool = stats.pools[0];
  if (pool.held + pool.cached + pool.quarantined + pool.free != pool.capacity) {
    return "blocks do not add up";
  }
  if (pool.slots.Total() != uint64_t{pool.capacity.value()} * block_tokens) {
    return "slots do not add up";
  }
  if (pool.slots.cached != uint64_t{pool.cached.value()} * block_tokens ||
      pool.slots.free != uint64_t{pool.free.value()} * block_tokens ||
      pool.slots.Allocated() != uint64_t{pool.held.value()} * block_tokens) {
    return "slots and blocks tell different things";
  }
  if (stats.steps_committed - stats.steps_retired != stats.steps_in_flight) {
    return "steps do not add up";
  }
  if (stats.blocks_evicted > stats.blocks_taken ||
      stats.hit_tokens > stats.prompt_tokens) {
    return "counters contradict each other";
  }
  return "";
}

// Admits, grows and frees until told to stop, sharing prompts with others.
void Serve(ThreadSafeKvCache* cache, int32_t thread, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const std::vector<TokenId> prompt =
        Text(round % 5, 30) + Text(100 + thread, 3);
    auto admission = cache->Allocate(prompt);
    while (!admission.ok()) {
      // Blocks or steps are short now: whoever has them gives them back.
      ASSERT_EQ(admission.status().code(),
                absl::StatusCode::kResourceExhausted);
      std::this_thread::yield();
      admission = cache->Allocate(prompt);
    }
    // Steps retire in order: another thread's may come first, and that thread
    // may have retired ours already.
    while (cache->Retire(admission->step).code() ==
           absl::StatusCode::kFailedPrecondition) {
      std::this_thread::yield();
    }
    const auto child = cache->Fork(admission->id);
    if (child.ok()) {
      EXPECT_EQ(*cache->Tokens(*child), *cache->Tokens(admission->id));
      EXPECT_TRUE(cache->Free(*child).ok());
    }
    EXPECT_TRUE(cache->Free(admission->id).ok());
    EXPECT_EQ(cache->Free(admission->id).code(), absl::StatusCode::kNotFound);
  }
}

TEST(CasesTest, F5_SnapshotsAreConsistentWhileThreadsAllocateAndFree) {
  for (int32_t threads : {2, 4}) {
    KvCacheOptions options = PoolOptions(64, 4);
    options.max_steps_in_flight = 3;
    auto created = ThreadSafeKvCache::Create(options);
    ASSERT_TRUE(created.ok()) << created.status();
    ThreadSafeKvCache* cache = created->get();
    std::atomic<bool> stop{false};
    std::string error;
    std::atomic<uint64_t> polls{0};
    std::thread poller([&] {
      CacheStats last = cache->Stats();
      while (!stop.load() && error.empty()) {
        const CacheStats stats = cache->Stats();
        error = Inconsistency(stats, 4);
        if (stats.blocks_taken < last.blocks_taken ||
            stats.steps_retired < last.steps_retired ||
            stats.hit_tokens < last.hit_tokens) {
          error = "a counter went back";
        }
        last = stats;
        ++polls;
      }
    });
    // A busy machine may start the poller after all servers have ended.
    while (polls.load() == 0) std::this_thread::yield();
    std::vector<std::thread> servers;
    for (int32_t i = 0; i < threads; ++i) {
      servers.emplace_back([cache, i] { Serve(cache, i, 400); });
    }
    for (std::thread& server : servers) server.join();
    stop = true;
    poller.join();
    EXPECT_EQ(error, "");
    EXPECT_TRUE(cache->CheckInvariants().ok());
    const CacheStats stats = cache->Stats();
    EXPECT_EQ(Inconsistency(stats, 4), "");
    EXPECT_EQ(stats.sequences, 0u);
    EXPECT_EQ(stats.pools[0].held.value(), 0u);
    EXPECT_EQ(stats.steps_in_flight, 0u);
    EXPECT_GT(stats.hit_tokens, 0u);
  }
}

TEST(KvCacheManagerStressTest, ConstCallsMayRunSideBySide) {
  // The manager itself, without a lock, while nobody changes it.
  CacheScript script(PoolOptions(64, 4));
  const std::vector<KeyExtra> extras = {Salt("s")};
  const SequenceId id = script.New(Text(1, 30), extras);
  script.Free(script.New(Text(2, 18)));
  const StepId step = script.AppendUnwritten(id, Text(3, 2));
  const KvCacheManager& cache = script.cache();
  const uint64_t fingerprint = cache.Fingerprint();
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(cache.Lookup(Text(1, 31), extras)->hit_tokens.value(), 28u);
        EXPECT_EQ(cache.Lookup(Text(2, 19))->hit_tokens.value(), 16u);
        EXPECT_EQ(cache.Describe(id)->tokens.value(), 32u);
        EXPECT_EQ(cache.TableSize(step, GroupId(0))->pages, 8u);
        std::vector<int64_t> slots(2);
        EXPECT_TRUE(
            cache.ExportSlotMapping(step, GroupId(0), absl::MakeSpan(slots))
                .ok());
        EXPECT_EQ(Inconsistency(cache.Stats(), 4), "");
        EXPECT_TRUE(cache.CheckInvariants().ok());
        EXPECT_EQ(cache.Fingerprint(), fingerprint);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
}

TEST(KvCacheManagerStressTest, TheLogOfManyThreadsReplaysAlone) {
  StringOpLog log;
  KvCacheOptions options = PoolOptions(48, 4);
  options.op_log = &log;
  auto cache = ThreadSafeKvCache::Create(options);
  ASSERT_TRUE(cache.ok()) << cache.status();
  std::vector<std::thread> servers;
  for (int32_t i = 0; i < 3; ++i) {
    servers.emplace_back([&, i] { Serve(cache->get(), i, 200); });
  }
  for (std::thread& server : servers) server.join();
  const auto twin = ReplayOpLog(log.contents());
  ASSERT_TRUE(twin.ok()) << twin.status();
  EXPECT_EQ((*twin)->Fingerprint(), (*cache)->Fingerprint());
  const auto lockstep = testing::ReplayInLockstep(log.contents());
  ASSERT_TRUE(lockstep.ok()) << lockstep.status();
  EXPECT_EQ(lockstep->violation, "");
  EXPECT_EQ(lockstep->fingerprint, (*cache)->Fingerprint());
}

}  // namespace
}  // namespace paged_kv

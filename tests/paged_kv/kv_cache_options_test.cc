// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/kv_cache_options.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

TEST(KvCacheOptionsTest, EveryFieldOutOfRangeIsNamedWithItsValue) {
  struct Row {
    const char* message;
    std::function<void(KvCacheOptions*)> spoil;
  };
  const std::vector<Row> rows = {
      {"groups.size() is 0", [](auto* o) { o->groups.clear(); }},
      {"groups.size() is 65",
       [](auto* o) { o->groups.resize(65, o->groups[0]); }},
      {"host_blocks (times groups of a pool) is 0",
       [](auto* o) { o->host_blocks = BlockCount(0); }},
      {"host_blocks (times groups of a pool) is 2147483648",
       [](auto* o) { o->host_blocks = BlockCount(1u << 31); }},
      {"host_blocks (times groups of a pool) is 2147483648",
       [](auto* o) {
         o->host_blocks = BlockCount(1u << 30);
         o->groups.push_back(o->groups[0]);  // both in one pool
       }},
      {"group 0: BlockShape::block_tokens is 0",
       [](auto* o) { o->groups[0].shape.block_tokens = 0; }},
      {"group 1: BlockShape::layers is 0",
       [](auto* o) {
         o->groups.push_back(o->groups[0]);
         o->groups[1].shape.layers = 0;
       }},
      {"group 0: 4 sink_tokens without a window",
       [](auto* o) { o->groups[0].sink_tokens = 4; }},
      {"groups[].window is", [](auto* o) { o->groups[0].window = ~0u; }},
      {"groups[].sink_tokens is",
       [](auto* o) {
         o->groups[0].window = 4;
         o->groups[0].sink_tokens = ~0u;
       }},
      {"least common multiple 16748556",
       [](auto* o) {
         o->groups.push_back(o->groups[0]);
         o->groups[0].shape.block_tokens = 4093;
         o->groups[1].shape.block_tokens = 4092;
       }},
      {"max_sequences is 0", [](auto* o) { o->max_sequences = 0; }},
      {"max_sequences is", [](auto* o) { o->max_sequences = ~0u; }},
      {"max_tokens_per_sequence is 0",
       [](auto* o) { o->max_tokens_per_sequence = 0; }},
      {"max_tokens_per_sequence is",
       [](auto* o) { o->max_tokens_per_sequence = ~0u; }},
      {"max_steps_in_flight is 0", [](auto* o) { o->max_steps_in_flight = 0; }},
      {"max_steps_in_flight is 65",
       [](auto* o) { o->max_steps_in_flight = 65; }},
      {"watermark_blocks is",
       [](auto* o) { o->watermark_blocks = BlockCount(~0u); }},
      {"max_pins is", [](auto* o) { o->max_pins = ~0u; }},
      {"max_extra_bytes_per_sequence is",
       [](auto* o) { o->max_extra_bytes_per_sequence = ~0u; }},
      {"event_capacity is", [](auto* o) { o->event_capacity = ~0u; }},
      {"memory is 9", [](auto* o) { o->memory = static_cast<MemoryMode>(9); }},
      {"numa_node is -2", [](auto* o) { o->numa_node = -2; }},
      {"1 layouts given, but memory is not kCallerMemory",
       [](auto* o) { o->layouts.resize(1); }},
      {"0 layouts for 1 groups",
       [](auto* o) { o->memory = MemoryMode::kCallerMemory; }},
      {"layouts[0].base is null",
       [](auto* o) {
         o->memory = MemoryMode::kCallerMemory;
         o->layouts.resize(1);
       }},
  };
  for (const Row& row : rows) {
    KvCacheOptions options = PoolOptions(8, 4);
    ASSERT_TRUE(Validate(options).ok());
    row.spoil(&options);
    const absl::Status status = Validate(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << row.message << ": " << status;
    EXPECT_NE(status.message().find(row.message), absl::string_view::npos)
        << status << "\nexpected " << row.message;
    EXPECT_EQ(KvCacheManager::Create(options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(KvCacheOptionsTest, ANumaNodeThatNoMachineHasIsRefused) {
  KvCacheOptions options = PoolOptions(8, 4);
  options.memory = MemoryMode::kOwnMemory;
  options.numa_node = 5000;
  const absl::Status status = KvCacheManager::Create(options).status();
  EXPECT_NE(status.message().find("NUMA node 5000"), absl::string_view::npos)
      << status;
}

TEST(KvCacheOptionsTest, TheLargestAndSmallestValuesAreAllowed) {
  KvCacheOptions options = PoolOptions(1, 1);
  options.max_sequences = 1;
  options.max_tokens_per_sequence = 1;
  options.max_steps_in_flight = 64;
  options.max_pins = 0;
  options.max_extra_bytes_per_sequence = 0;
  options.index_extra_bytes = 0;
  options.watermark_blocks = BlockCount(0);
  ASSERT_TRUE(Validate(options).ok()) << Validate(options);
  CacheScript cache(options);
  const Admission admission = cache.NewUnwritten(Text(1, 1));
  EXPECT_EQ(cache->Append(admission.id, Text(2, 1)).status().code(),
            absl::StatusCode::kOutOfRange);
  cache.Retire(admission.step);
  cache.Free(admission.id);
  EXPECT_EQ(cache->Pin(Text(1, 1)).status().code(),
            absl::StatusCode::kResourceExhausted);

  options.groups.resize(kMaxGroups, options.groups[0]);
  EXPECT_TRUE(Validate(options).ok()) << Validate(options);
}

TEST(KvCacheOptionsTest, GroupsOfEqualPagesShareOnePool) {
  KvCacheOptions options = PoolOptions(10, 4);
  options.groups.resize(4, options.groups[0]);
  options.groups[1].window = 8;          // same page
  options.groups[2].shape.kv_heads = 2;  // larger page
  options.groups[3].shape.kv_heads = 2;
  options.groups[3].shape.layers = 2;
  options.groups[3].shape.head_dim = 64;  // the same bytes, cut otherwise
  CacheScript cache(options);
  ASSERT_EQ(cache->Stats().pools.size(), 2u);
  for (uint32_t g = 0; g < 4; ++g) {
    EXPECT_EQ(cache->PoolBlocks(GroupId(g)), BlockCount(20));
  }
  EXPECT_EQ(cache->PoolBlocks(GroupId(4)), BlockCount(0));
  EXPECT_EQ(cache->AvailableBlocks(GroupId(4)), BlockCount(0));
  cache.New(Text(1, 5));
  EXPECT_EQ(cache.Held(0), 4u);
  EXPECT_EQ(cache.Held(1), 4u);

  // Equal bytes in blocks of another length are another pool.
  options.groups[3].shape.block_tokens = 8;
  options.groups[3].shape.head_dim = 32;
  EXPECT_EQ(PageBytes(options.groups[3].shape),
            PageBytes(options.groups[2].shape));
  EXPECT_EQ(CacheScript(options)->Stats().pools.size(), 3u);
}

TEST(KvCacheOptionsTest, EachMemoryModeSaysWhereThePagesLie) {
  KvCacheOptions options = PoolOptions(8, 16);
  EXPECT_EQ(CacheScript(options)->Layout(GroupId(0)).status().code(),
            absl::StatusCode::kFailedPrecondition);

  options.memory = MemoryMode::kOwnMemory;
  options.groups[0].shape.layers = 40;  // 8 pages are more than 2 MiB
  CacheScript own(options);
  const auto layout = own->Layout(GroupId(0));
  ASSERT_TRUE(layout.ok()) << layout.status();
  ASSERT_NE(layout->base, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(layout->base) % (2u << 20), 0u)
      << "huge pages need this alignment";
  const uint64_t page = PageBytes(options.groups[0].shape).value();
  EXPECT_EQ(layout->page_stride, static_cast<int64_t>(page));
  // All of it may be written.
  auto* bytes = static_cast<char*>(layout->base);
  for (uint64_t at = 0; at < 8 * page; at += 4096) bytes[at] = 1;
  bytes[8 * page - 1] = 1;
  EXPECT_EQ(own->Layout(GroupId(1)).status().code(),
            absl::StatusCode::kInvalidArgument);

  options.memory = MemoryMode::kCallerMemory;
  options.layouts = {OwnPageLayout(options.groups[0].shape, bytes)};
  options.layouts[0].layer_stride += 64;
  CacheScript theirs(options);
  EXPECT_EQ(theirs->Layout(GroupId(0))->base, layout->base);
  EXPECT_EQ(theirs->Layout(GroupId(0))->layer_stride,
            layout->layer_stride + 64);
}

TEST(KvCacheOptionsTest, WithoutPrefixCachingNothingIsShared) {
  KvCacheOptions options = PoolOptions(16, 4);
  options.prefix_caching = false;
  CacheScript cache(options);
  const SequenceId a = cache.New(Text(1, 12));
  EXPECT_EQ(cache.Hit(Text(1, 13)), 0u);
  cache.New(Text(1, 12));
  EXPECT_EQ(cache.Held(), 6u);
  EXPECT_EQ(cache.Pool().slots.duplicate, 0u);
  const SequenceId child = cache.Fork(a);  // sharing that was asked for
  EXPECT_EQ(cache.Held(), 6u);
  cache.Free(a);
  cache.Free(child);
  EXPECT_EQ(cache.Pool().cached.value(), 0u);
  EXPECT_EQ(cache.Pool().free.value(), 13u);
  EXPECT_EQ(cache->Pin(Text(1, 13)).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace paged_kv

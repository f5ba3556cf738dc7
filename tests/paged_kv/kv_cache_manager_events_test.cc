// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a router hears, with digests computed here once more from the words of
// cache_event.h.

#include <openssl/sha.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

using Kind = CacheEvent::Kind;

ContentDigest Sha256(const std::string& bytes) {
  ContentDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         digest.data());
  return digest;
}

std::string LittleEndian32(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  }
  return bytes;
}

// The digest of a chunk behind `parent`.
ContentDigest Chunk(const ContentDigest& parent, const std::string& extras,
                    const std::vector<TokenId>& tokens) {
  std::string bytes(parent.begin(), parent.end());
  bytes += LittleEndian32(static_cast<uint32_t>(extras.size())) + extras;
  for (TokenId token : tokens) {
    bytes += LittleEndian32(static_cast<uint32_t>(token));
  }
  return Sha256(bytes);
}

std::vector<CacheEvent> Drain(CacheScript* cache, size_t room = 64) {
  std::vector<CacheEvent> events(room);
  events.resize((*cache)->DrainEvents(absl::MakeSpan(events)));
  return events;
}

KvCacheOptions EventOptions(uint32_t blocks, uint32_t block_tokens) {
  KvCacheOptions options = PoolOptions(blocks, block_tokens);
  options.event_capacity = 64;
  options.digest_domain = "model v1, bf16";
  return options;
}

TEST(CacheEventTest, DigestsAreTheChainThatTheHeaderDescribes) {
  CacheScript cache(EventOptions(8, 2));
  const std::vector<TokenId> prompt = {1, -2, 3, 4, 5};
  cache.New(prompt,
            std::vector<KeyExtra>{Salt("s"), Content(TokenPos(3), "i")});
  const std::vector<CacheEvent> events = Drain(&cache);
  ASSERT_EQ(events.size(), 2u);
  const std::string salt =
      std::string(1, '\x01') + LittleEndian32(0) + LittleEndian32(1) + "s";
  const std::string image =
      std::string(1, '\x03') + LittleEndian32(3) + LittleEndian32(1) + "i";
  const ContentDigest first = Chunk(Sha256("model v1, bf16"), salt, {1, -2});
  const ContentDigest second = Chunk(first, image, {3, 4});
  EXPECT_EQ(events[0].kind, Kind::kStored);
  EXPECT_EQ(events[0].digest, first);
  EXPECT_EQ(events[0].parent, ContentDigest{});
  EXPECT_EQ(events[0].tokens, 2u);
  EXPECT_EQ(events[1].digest, second);
  EXPECT_EQ(events[1].parent, first);
}

TEST(CacheEventTest, EqualInEveryManagerUnlessTheDomainDiffers) {
  const auto digest = [](uint64_t hash_seed, const std::string& domain) {
    KvCacheOptions options = EventOptions(8, 4);
    options.hash_seed = hash_seed;
    options.digest_domain = domain;
    CacheScript cache(options);
    cache.New(Text(1, 4));
    return Drain(&cache)[0].digest;
  };
  EXPECT_EQ(digest(1, "m"), digest(2, "m"));
  EXPECT_EQ(digest(0, "m"), digest(0, "m"));
  EXPECT_NE(digest(1, "m"), digest(1, "n"));
  EXPECT_NE(digest(1, ""), digest(1, "m"));
}

TEST(CacheEventTest, StoredRemovedAndClearedInOrder) {
  CacheScript cache(EventOptions(3, 4));
  cache.Free(cache.New(Text(1, 12)));
  const std::vector<CacheEvent> stored = Drain(&cache);
  ASSERT_EQ(stored.size(), 3u);
  cache.Free(cache.New(Text(2, 7)));  // evicts blocks 2 and 1 of text 1
  const std::vector<CacheEvent> events = Drain(&cache);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, Kind::kRemoved);
  EXPECT_EQ(events[0].digest, stored[2].digest);
  EXPECT_EQ(events[0].parent, stored[1].digest);
  EXPECT_EQ(events[1].kind, Kind::kRemoved);
  EXPECT_EQ(events[1].digest, stored[1].digest);
  EXPECT_EQ(events[2].kind, Kind::kStored);
  ASSERT_TRUE(cache->Reset().ok());
  const std::vector<CacheEvent> cleared = Drain(&cache);
  ASSERT_EQ(cleared.size(), 1u);
  EXPECT_EQ(cleared[0].kind, Kind::kCleared);
  EXPECT_EQ(cleared[0].digest, ContentDigest{});
  // What is stored again has the same digest.
  cache.New(Text(1, 4));
  EXPECT_EQ(Drain(&cache)[0].digest, stored[0].digest);
}

TEST(CacheEventTest, BlocksOfAChunkShareItsDigestAndSayTheirPlace) {
  KvCacheOptions options = EventOptions(32, 2);
  options.groups.push_back(options.groups[0]);
  options.groups[1].shape.block_tokens = 4;
  CacheScript cache(options);
  cache.New(Text(1, 9));
  const std::vector<CacheEvent> events = Drain(&cache);
  // Two chunks of 4 tokens: two blocks in group 0, one in group 1.
  ASSERT_EQ(events.size(), 6u);
  for (size_t chunk = 0; chunk < 2; ++chunk) {
    const CacheEvent* part = &events[3 * chunk];
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(part[i].digest, part[0].digest);
      EXPECT_EQ(part[i].group, GroupId(i < 2 ? 0 : 1));
      EXPECT_EQ(part[i].block_in_chunk, i == 1 ? 1u : 0u);
      EXPECT_EQ(part[i].tokens, i < 2 ? 2u : 4u);
    }
  }
  EXPECT_EQ(events[3].parent, events[0].digest);
}

TEST(CacheEventTest, TheOldestAreLostWhenNobodyDrains) {
  KvCacheOptions options = EventOptions(8, 4);
  options.event_capacity = 3;
  CacheScript cache(options);
  cache.New(Text(1, 20));  // five stored
  EXPECT_EQ(cache->Stats().events_dropped, 2u);
  // In pieces, the oldest first.
  const std::vector<CacheEvent> one = Drain(&cache, 1);
  const std::vector<CacheEvent> rest = Drain(&cache);
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].parent, one[0].digest);
  EXPECT_EQ(rest[1].parent, rest[0].digest);
  EXPECT_TRUE(Drain(&cache).empty());
  EXPECT_TRUE(Drain(&cache, 0).empty());
}

TEST(CacheEventTest, WithoutCapacityThereAreNone) {
  CacheScript cache(8, 4);
  cache.New(Text(1, 20));
  EXPECT_TRUE(Drain(&cache).empty());
  EXPECT_EQ(cache->Stats().events_dropped, 0u);
}

TEST(CacheEventTest, DraftsAndUnsharedSequencesAreNotTold) {
  CacheScript cache(EventOptions(16, 4));
  const std::vector<TokenId> prompt = Text(1, 8);
  StepRequest request = StepRequest::Admit(prompt);
  request.share = false;
  request.lookahead = TokenCount(4);
  cache.Retire(cache.Step({request}));
  EXPECT_TRUE(Drain(&cache).empty());
  EXPECT_EQ(cache.Hit(Text(1, 9)), 0u);
}

}  // namespace
}  // namespace paged_kv

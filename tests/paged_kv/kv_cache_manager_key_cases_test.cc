// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that other caches had with what a prefix key holds: adapters,
// tenants, images, hash collisions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

using Extras = std::vector<KeyExtra>;

// Fills the cache with a prompt under `stored` and expects it to be found
// under equal extras and under no other of `all`.
void ExpectOnlyEqualExtrasHit(const std::vector<Extras>& all) {
  for (size_t stored = 0; stored < all.size(); ++stored) {
    CacheScript cache(64, 16);
    cache.Free(cache.New(Text(1, 32), all[stored]));
    for (size_t asked = 0; asked < all.size(); ++asked) {
      EXPECT_EQ(cache.Hit(Text(1, 33), all[asked]), stored == asked ? 32u : 0u)
          << "stored under " << stored << ", asked for under " << asked;
    }
  }
}

TEST(CasesTest, B12_AnAdapterFindsItsOwnKvOnly) {
  ExpectOnlyEqualExtrasHit({
      {},
      {Adapter("A")},
      {Adapter("B")},
      {Adapter("A\x01"
               "2")},  // the same name, new weights
      {Adapter("A"), Adapter("B")},
      {Adapter("AB")},
      {Adapter(absl::string_view("A\0", 2))},
      {Adapter("")},
  });
}

TEST(CasesTest, B12_TwoAdaptersAndTheBaseModelLiveSideBySide) {
  CacheScript cache(64, 16);
  const Extras a = {Adapter("a:1")}, b = {Adapter("b:1")};
  const SequenceId ids[] = {cache.New(Text(1, 32)), cache.New(Text(1, 32), a),
                            cache.New(Text(1, 32), b)};
  for (SequenceId id : ids) {
    EXPECT_EQ(cache->Describe(id)->cached_tokens.value(), 0u);
    cache.Free(id);
  }
  EXPECT_EQ(cache.Pool().cached.value(), 6u);
  EXPECT_EQ(cache.Hit(Text(1, 33)), 32u);
  EXPECT_EQ(cache.Hit(Text(1, 33), a), 32u);
  EXPECT_EQ(cache.Hit(Text(1, 33), b), 32u);
}

TEST(CasesTest, B13_TenantsCannotProbeEachOthersPrompts) {
  ExpectOnlyEqualExtrasHit({
      {},
      {Salt("x")},
      {Salt("y")},
      {Salt("xy")},
      {Salt("x"), Salt("y")},
      {Adapter("x")},  // a salt is not an adapter of the same name
      {Content(TokenPos(0), "x")},
      {KeyExtra{KeyExtra::Kind::kOther, TokenPos(0), "x"}},
      {Salt("x"), Adapter("x")},
      {Salt("")},
  });
}

TEST(CasesTest, B13_TheOrderOfExtrasDoesNotMatter) {
  CacheScript cache(64, 16);
  cache.Free(cache.New(Text(1, 32), Extras{Salt("x"), Adapter("y")}));
  EXPECT_EQ(cache.Hit(Text(1, 33), Extras{Adapter("y"), Salt("x")}), 32u);
  EXPECT_EQ(cache.Hit(Text(1, 33), Extras{Adapter("x"), Salt("y")}), 0u);
}

TEST(CasesTest, B13_TheSaltEntersTheChainNotOnlyTheFirstBlock) {
  // Block 1 of both tenants holds the same tokens; only its parents differ.
  CacheScript cache(64, 4);
  const SequenceId x = cache.New(Text(1, 8), Extras{Salt("x")});
  const SequenceId y = cache.New(Text(1, 8), Extras{Salt("y")});
  EXPECT_NE(cache.Table(x)[1], cache.Table(y)[1]);
  EXPECT_EQ(cache.Pool().slots.duplicate, 0u);
  EXPECT_EQ(cache.Hit(Text(1, 9), Extras{Salt("y")}), 8u);
}

uint64_t ConstantHash(uint64_t, const void*, size_t) { return 42; }

// The polynomial hash of java.lang.String over tokens: t[j] + 1 and
// t[j + 1] - 31 cancel.
uint64_t RollingHash(uint64_t seed, const void* data, size_t bytes) {
  const auto* tokens = static_cast<const TokenId*>(data);
  uint64_t hash = seed;
  for (size_t i = 0; i < bytes / sizeof(TokenId); ++i) {
    hash = 31 * hash + static_cast<uint64_t>(tokens[i]);
  }
  return hash;
}

TEST(CasesTest, B15_ACollidingPromptIsAMissAndBothStayUsable) {
  const HashFunction hashes[] = {nullptr, &ConstantHash, &RollingHash};
  for (HashFunction hash : hashes) {
    for (uint32_t block_tokens : {2u, 4u, 16u}) {
      KvCacheOptions options = PoolOptions(64, block_tokens);
      options.hash = hash;
      options.hash_seed = 7;
      CacheScript cache(options);
      std::vector<TokenId> one = Text(1, block_tokens);
      std::vector<TokenId> two = one;
      two[0] -= 1;
      two[1] += 31;
      const std::vector<TokenId> more = Text(9, 1);
      const SequenceId a = cache.New(one);
      EXPECT_EQ(cache.Hit(two + more), 0u);
      const SequenceId b = cache.New(two);
      EXPECT_EQ(cache.Hit(one + more), block_tokens);
      EXPECT_EQ(cache.Hit(two + more), block_tokens);
      EXPECT_NE(cache.Table(a)[0], cache.Table(b)[0]);
      cache.Free(a);
      cache.Free(b);
      EXPECT_EQ(cache.Hit(one + more), block_tokens);
      EXPECT_EQ(cache.Hit(two + more), block_tokens);
      EXPECT_EQ(cache.F(), 64u);
    }
  }
}

TEST(CasesTest, B15_EqualTokensBehindDifferentParentsAreDifferentContent) {
  KvCacheOptions options = PoolOptions(64, 4);
  options.hash = &ConstantHash;
  CacheScript cache(options);
  const std::vector<TokenId> same = Text(5, 4);
  const SequenceId a = cache.New(Text(1, 4) + same);
  EXPECT_EQ(cache.Hit(Text(2, 4) + same + Text(9, 1)), 0u);
  EXPECT_EQ(cache.Hit(same + Text(9, 1)), 0u);
  cache.New(Text(2, 4) + same);
  cache.Free(a);
  EXPECT_EQ(cache.Hit(Text(1, 4) + same + Text(9, 1)), 8u);
  EXPECT_EQ(cache.Hit(Text(2, 4) + same + Text(9, 1)), 8u);
  EXPECT_EQ(cache.Hit(Text(3, 4) + same + Text(9, 1)), 0u);
}

TEST(CasesTest, B15_CollidingExtrasAreComparedByteByByte) {
  KvCacheOptions options = PoolOptions(64, 4);
  options.hash = &ConstantHash;
  CacheScript cache(options);
  const std::vector<Extras> all = {
      {}, {Salt("x")}, {Salt("y")}, {Adapter("x")}, {Salt("x"), Adapter("x")}};
  cache.New(Text(1, 8), all[1]);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(cache.Hit(Text(1, 9), all[i]), i == 1 ? 8u : 0u) << i;
  }
}

TEST(CasesTest, B15_ManyCollidingPromptsAreToldApartThroughEviction) {
  KvCacheOptions options = PoolOptions(16, 4);
  options.hash = &ConstantHash;
  CacheScript cache(options);
  // Sixteen of the forty fit; the last sixteen freed must be found.
  for (int32_t text = 0; text < 40; ++text)
    cache.Free(cache.New(Text(text, 4)));
  for (int32_t text = 0; text < 40; ++text) {
    EXPECT_EQ(cache.Hit(Text(text, 4) + Text(99, 1)), text < 24 ? 0u : 4u);
  }
}

// An image's placeholder tokens are the same for every image.
TEST(CasesTest, B16_AnotherImageHitsOnlyTheBlocksBeforeIt) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    for (uint32_t position : {0u, 1u, 15u, 16u, 17u, 40u}) {
      const std::vector<TokenId> prompt = Text(1, 48);
      const std::vector<TokenId> asked = prompt + Text(2, 1);
      const Extras one = {Content(TokenPos(position), "img1")};
      const Extras two = {Content(TokenPos(position), "img2")};
      CacheScript cache(64, block_tokens);
      cache.Free(cache.New(prompt, one));
      const uint32_t before = position / block_tokens * block_tokens;
      EXPECT_EQ(cache.Hit(asked, one), 48u);
      EXPECT_EQ(cache.Hit(asked, two), before);
      EXPECT_EQ(cache.Hit(asked), before);
      // The same image elsewhere: the earlier of the two places decides.
      if (position + block_tokens < prompt.size()) {
        const Extras moved = {
            Content(TokenPos(position + block_tokens), "img1")};
        EXPECT_EQ(cache.Hit(asked, moved), before);
      }
    }
  }
}

TEST(CasesTest, B16_TheSecondOfTwoImagesKeepsTheFirstOnesHits) {
  CacheScript cache(64, 4);
  const auto images = [](absl::string_view second) {
    return Extras{Content(TokenPos(4), "cat"), Content(TokenPos(24), second)};
  };
  cache.Free(cache.New(Text(1, 48), images("dog")));
  EXPECT_EQ(cache.Hit(Text(1, 49), images("dog")), 48u);
  EXPECT_EQ(cache.Hit(Text(1, 49), images("owl")), 24u);
}

}  // namespace
}  // namespace paged_kv

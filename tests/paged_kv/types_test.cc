// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/types.h"

#include <sstream>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"

namespace paged_kv {
namespace {

// Whether `a op b` compiles.
template <typename A, typename B, typename = void>
struct CanAdd : std::false_type {};
template <typename A, typename B>
struct CanAdd<A, B,
              std::void_t<decltype(std::declval<A>() + std::declval<B>())>>
    : std::true_type {};
template <typename A, typename B, typename = void>
struct CanCompare : std::false_type {};
template <typename A, typename B>
struct CanCompare<A, B,
                  std::void_t<decltype(std::declval<A>() == std::declval<B>())>>
    : std::true_type {};
template <typename A, typename B, typename = void>
struct CanScale : std::false_type {};
template <typename A, typename B>
struct CanScale<A, B,
                std::void_t<decltype(std::declval<A>() * std::declval<B>())>>
    : std::true_type {};

// What makes no sense does not compile.
static_assert(!CanAdd<BlockId, BlockId>::value);
static_assert(!CanAdd<BlockId, int>::value);
static_assert(!CanAdd<BlockCount, TokenCount>::value);
static_assert(!CanAdd<BlockCount, uint32_t>::value);
static_assert(!CanAdd<TokenPos, TokenCount>::value);
static_assert(!CanCompare<BlockId, SequenceId>::value);
static_assert(!CanCompare<BlockId, uint32_t>::value);
static_assert(!CanCompare<BlockCount, TokenCount>::value);
static_assert(!CanScale<BlockCount, BlockCount>::value);
static_assert(!std::is_convertible_v<uint32_t, BlockId>);
static_assert(!std::is_convertible_v<uint32_t, TokenCount>);
static_assert(!std::is_convertible_v<BlockId, uint32_t>);
// What does, does.
static_assert(CanAdd<TokenCount, TokenCount>::value);
static_assert(CanScale<Bytes, uint64_t>::value);
static_assert(CanCompare<StepId, StepId>::value);
// Arrays of ids are handed to kernels as they are.
static_assert(sizeof(BlockId) == 4 && std::is_trivially_copyable_v<BlockId>);
static_assert(sizeof(SequenceId) == 8);

TEST(TypesTest, IdsCompareAndOrder) {
  EXPECT_EQ(BlockId(), BlockId(0));
  EXPECT_EQ(BlockId(3).value(), 3u);
  EXPECT_TRUE(BlockId(3) == BlockId(3));
  EXPECT_FALSE(BlockId(3) == BlockId(4));
  EXPECT_TRUE(BlockId(3) != BlockId(4));
  EXPECT_FALSE(BlockId(3) != BlockId(3));
  EXPECT_TRUE(StepId(3) < StepId(4));
  EXPECT_FALSE(StepId(4) < StepId(4));
  EXPECT_EQ(kNoBlock.value(), 0xFFFFFFFFu);
}

TEST(TypesTest, CountsAddSubtractScaleAndCompare) {
  TokenCount count(5);
  count += TokenCount(3);
  EXPECT_EQ(count, TokenCount(8));
  count -= TokenCount(6);
  EXPECT_EQ(count, TokenCount(2));
  EXPECT_EQ(TokenCount(2) + TokenCount(3), TokenCount(5));
  EXPECT_EQ(TokenCount(5) - TokenCount(3), TokenCount(2));
  EXPECT_EQ(Bytes(uint64_t{1} << 40) * 8, Bytes(uint64_t{1} << 43));
  const TokenCount small(1), large(2);
  EXPECT_TRUE(small < large && small <= large && small <= small);
  EXPECT_TRUE(large > small && large >= small && large >= large);
  EXPECT_FALSE(large < small || large <= small || small > large ||
               small >= large || small < small || small > small);
  EXPECT_TRUE(small != large && small == small);
  EXPECT_FALSE(small == large);
}

TEST(TypesTest, PrintAsNumbersAndHash) {
  std::ostringstream text;
  text << BlockId(7) << " " << TokenCount(9) << " "
       << SequenceId(uint64_t{1} << 33);
  EXPECT_EQ(text.str(), "7 9 8589934592");
  absl::flat_hash_set<SequenceId> ids = {SequenceId(1), SequenceId(2),
                                         SequenceId(1)};
  EXPECT_EQ(ids.size(), 2u);
}

}  // namespace
}  // namespace paged_kv

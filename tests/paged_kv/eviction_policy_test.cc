// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/eviction_policy.h"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/block_list.h"
#include "tests/paged_kv/test_seed.h"
#include "tests/support/random_options.h"

namespace paged_kv {
namespace {

// A policy over blocks of its own, told what the manager would tell it.
class PolicyScript {
 public:
  PolicyScript(EvictionPolicyFactory make, uint32_t blocks)
      : blocks_(blocks), policy_(make(BlockLinks(blocks_.data()))) {}

  void Insert(uint32_t block, uint32_t priority, bool was_hit = false) {
    blocks_[block].priority = priority & 7u;
    blocks_[block].was_hit = was_hit ? 1u : 0u;
    policy_->Insert(BlockId(block), priority, was_hit);
  }
  void Remove(uint32_t block) { policy_->Remove(BlockId(block)); }

  std::vector<uint32_t> Order() const {
    std::vector<uint32_t> order;
    for (BlockId id = policy_->First(); id != kNoBlock;
         id = policy_->Next(id)) {
      order.push_back(id.value());
    }
    return order;
  }

 private:
  std::vector<BlockMeta> blocks_;
  std::unique_ptr<EvictionPolicy> policy_;
};

using Order = std::vector<uint32_t>;

TEST(LruPolicyTest, OldestFirstWithinTheLowestPriority) {
  PolicyScript policy(&MakeLruPolicy, 8);
  EXPECT_EQ(policy.Order(), Order({}));
  policy.Insert(3, 1);
  policy.Insert(5, 0);
  policy.Insert(1, 1);
  policy.Insert(7, 7);
  policy.Insert(0, 0);
  EXPECT_EQ(policy.Order(), Order({5, 0, 3, 1, 7}));
  policy.Remove(5);  // the first of its list
  policy.Remove(1);  // the last of its list
  EXPECT_EQ(policy.Order(), Order({0, 3, 7}));
  policy.Insert(5, 0);  // young again
  EXPECT_EQ(policy.Order(), Order({0, 5, 3, 7}));
  for (uint32_t block : {0u, 5u, 3u, 7u}) policy.Remove(block);
  EXPECT_EQ(policy.Order(), Order({}));
}

TEST(LruPolicyTest, DoesNotLookAtHits) {
  PolicyScript policy(&MakeLruPolicy, 4);
  policy.Insert(0, 3, true);
  policy.Insert(1, 3, false);
  EXPECT_EQ(policy.Order(), Order({0, 1}));
}

TEST(SegmentedLruPolicyTest, BlocksNeverHitGoFirst) {
  PolicyScript policy(&MakeSegmentedLruPolicy, 8);
  policy.Insert(0, 3, true);
  policy.Insert(1, 3, false);
  policy.Insert(2, 3, true);
  policy.Insert(3, 3, false);
  EXPECT_EQ(policy.Order(), Order({1, 3, 0, 2}));
  // But not before those of a lower priority that were.
  policy.Insert(4, 2, true);
  policy.Insert(5, 2, false);
  EXPECT_EQ(policy.Order(), Order({5, 4, 1, 3, 0, 2}));
  policy.Remove(1);
  policy.Remove(3);
  EXPECT_EQ(policy.Order(), Order({5, 4, 0, 2}));
}

// Against plain lists.
TEST(EvictionPolicyTest, AgreesWithListsPerClass) {
  testing::RandomBits random(TestSeed(6));
  for (bool segmented : {false, true}) {
    constexpr uint32_t kBlocks = 24;
    PolicyScript policy(segmented ? &MakeSegmentedLruPolicy : &MakeLruPolicy,
                        kBlocks);
    std::map<uint32_t, std::list<uint32_t>> lists;
    std::map<uint32_t, uint32_t> list_of;
    for (int i = 0; i < 5000; ++i) {
      const uint32_t block = random.Below(kBlocks);
      if (const auto it = list_of.find(block); it != list_of.end()) {
        policy.Remove(block);
        lists[it->second].remove(block);
        list_of.erase(it);
      } else {
        const uint32_t priority = random.Below(kPriorities);
        const bool was_hit = random.OneIn(2);
        policy.Insert(block, priority, was_hit);
        const uint32_t list = 2 * priority + (segmented && was_hit ? 1u : 0u);
        lists[list].push_back(block);
        list_of[block] = list;
      }
      Order expected;
      for (const auto& [list, blocks] : lists) {
        expected.insert(expected.end(), blocks.begin(), blocks.end());
      }
      ASSERT_EQ(policy.Order(), expected);
    }
  }
}

TEST(BlockListTest, KeepsItsEndsAndItsSize) {
  std::vector<BlockMeta> blocks(4);
  const BlockLinks links(blocks.data());
  BlockList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), kNoBlock);
  EXPECT_EQ(list.back(), kNoBlock);
  for (uint32_t i : {2u, 0u, 3u}) list.PushBack(links, BlockId(i));
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(list.front(), BlockId(2));
  EXPECT_EQ(list.back(), BlockId(3));
  list.Remove(links, BlockId(0));  // in the middle
  EXPECT_EQ(BlockList::Next(links, BlockId(2)), BlockId(3));
  list.Remove(links, BlockId(3));  // at the end
  EXPECT_EQ(list.back(), BlockId(2));
  list.PushBack(links, BlockId(1));
  list.Remove(links, BlockId(2));  // at the front
  EXPECT_EQ(list.front(), BlockId(1));
  list.Remove(links, BlockId(1));
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.size(), 0u);
}

}  // namespace
}  // namespace paged_kv

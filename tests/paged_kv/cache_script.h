// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The notation of the failure cases: pool(N, B), new, append, fork, free,
// trunc, hit. Every operation is followed by a check of the whole cache.

#ifndef PAGED_KV_TESTS_PAGED_KV_CACHE_SCRIPT_H_
#define PAGED_KV_TESTS_PAGED_KV_CACHE_SCRIPT_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv {

// The options of pool(blocks, block_tokens): one group without a window.
inline KvCacheOptions PoolOptions(uint32_t blocks, uint32_t block_tokens,
                                  uint32_t window = 0, uint32_t sinks = 0) {
  KvCacheOptions options;
  LayerGroup group;
  group.shape.block_tokens = block_tokens;
  group.window = window;
  group.sink_tokens = sinks;
  options.groups = {group};
  options.host_blocks = BlockCount(blocks);
  options.max_tokens_per_sequence = 4096;
  options.max_sequences = 64;
  return options;
}

// `n` tokens of text number `text`, from its token `first` on. No two texts
// have a token in common.
inline std::vector<TokenId> Text(int32_t text, uint32_t n, uint32_t first = 0) {
  std::vector<TokenId> tokens(n);
  for (uint32_t i = 0; i < n; ++i) {
    tokens[i] = text * 1000000 + static_cast<int32_t>(first + i);
  }
  return tokens;
}

inline std::vector<TokenId> operator+(std::vector<TokenId> head,
                                      const std::vector<TokenId>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

inline uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

class CacheScript {
 public:
  explicit CacheScript(const KvCacheOptions& options) {
    auto cache = KvCacheManager::Create(options);
    EXPECT_TRUE(cache.ok()) << cache.status();
    if (cache.ok()) cache_ = *std::move(cache);
  }
  CacheScript(uint32_t blocks, uint32_t block_tokens)
      : CacheScript(PoolOptions(blocks, block_tokens)) {}

  KvCacheManager& cache() { return *cache_; }
  KvCacheManager* operator->() { return cache_.get(); }

  // new(s, prompt): admitted, all its K/V written.
  SequenceId New(const std::vector<TokenId>& prompt, KeyExtras extras = {}) {
    const Admission admission = NewUnwritten(prompt, extras);
    Retire(admission.step);
    return admission.id;
  }
  // new(s, prompt) without the commit: its step is still in flight.
  Admission NewUnwritten(const std::vector<TokenId>& prompt,
                         KeyExtras extras = {}) {
    const auto admission = cache_->Allocate(prompt, extras);
    EXPECT_TRUE(admission.ok()) << admission.status();
    Check();
    return admission.ok() ? *admission : Admission{};
  }
  void Append(SequenceId id, const std::vector<TokenId>& tokens) {
    Retire(AppendUnwritten(id, tokens));
  }
  StepId AppendUnwritten(SequenceId id, const std::vector<TokenId>& tokens) {
    const auto admission = cache_->Append(id, tokens);
    EXPECT_TRUE(admission.ok()) << admission.status();
    Check();
    return admission.ok() ? admission->step : StepId(0);
  }
  // Plans, commits and leaves in flight.
  StepId Step(const std::vector<StepRequest>& requests) {
    auto plan = cache_->Plan(requests);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return StepId(0);
    const auto step = cache_->Commit(*std::move(plan));
    EXPECT_TRUE(step.ok()) << step.status();
    Check();
    return step.ok() ? *step : StepId(0);
  }
  void Retire(StepId step) {
    const absl::Status status = cache_->Retire(step);
    EXPECT_TRUE(status.ok()) << status;
    Check();
  }
  SequenceId Fork(SequenceId parent) {
    const auto child = cache_->Fork(parent);
    EXPECT_TRUE(child.ok()) << child.status();
    Check();
    return child.ok() ? *child : SequenceId(0);
  }
  void Free(SequenceId id) {
    const absl::Status status = cache_->Free(id);
    EXPECT_TRUE(status.ok()) << status;
    Check();
  }
  void Truncate(SequenceId id, uint32_t tokens) {
    const absl::Status status = cache_->Truncate(id, TokenCount(tokens));
    EXPECT_TRUE(status.ok()) << status;
    Check();
  }

  StepView View(StepId step) const {
    const auto view = cache_->View(step);
    EXPECT_TRUE(view.ok()) << view.status();
    return view.ok() ? *view : StepView{};
  }

  // hit(prompt).
  uint32_t Hit(const std::vector<TokenId>& prompt,
               KeyExtras extras = {}) const {
    const auto prefix = cache_->Lookup(prompt, extras);
    EXPECT_TRUE(prefix.ok()) << prefix.status();
    return prefix.ok() ? prefix->hit_tokens.value() : 0;
  }

  // F: blocks that could be taken now.
  uint32_t F(uint32_t group = 0) const {
    return cache_->AvailableBlocks(GroupId(group)).value();
  }
  PoolStats Pool(uint32_t pool = 0) const {
    return cache_->Stats().pools[pool];
  }
  uint32_t Held(uint32_t pool = 0) const { return Pool(pool).held.value(); }

  std::vector<BlockId> Table(SequenceId id, uint32_t group = 0) const {
    const auto table = cache_->BlockTable(id, GroupId(group));
    EXPECT_TRUE(table.ok()) << table.status();
    if (!table.ok()) return {};
    return std::vector<BlockId>(table->begin(), table->end());
  }
  uint32_t Refs(BlockId block, uint32_t group = 0) const {
    return cache_->RefCount(GroupId(group), block);
  }
  std::vector<TokenId> Tokens(SequenceId id) const {
    const auto tokens = cache_->Tokens(id);
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    if (!tokens.ok()) return {};
    return std::vector<TokenId>(tokens->begin(), tokens->end());
  }
  uint32_t Length(SequenceId id) const {
    const auto info = cache_->Describe(id);
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? info->tokens.value() : 0;
  }

  // Expects `call()` to fail with `code` and to leave no trace.
  template <typename Call>
  void ExpectRefused(absl::StatusCode code, Call call) {
    const uint64_t before = cache_->Fingerprint();
    const absl::Status status = StatusOf(call());
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(cache_->Fingerprint(), before) << "a refused call left a trace";
    Check();
  }

  // What must hold at every moment, whatever happened.
  void Check() const {
    const absl::Status status = cache_->CheckInvariants();
    EXPECT_TRUE(status.ok()) << status;
    const CacheStats stats = cache_->Stats();
    for (const PoolStats& pool : stats.pools) {
      EXPECT_EQ(pool.held + pool.cached + pool.quarantined + pool.free,
                pool.capacity);
      EXPECT_GE(pool.peak_used, pool.capacity - pool.free);
    }
    if (stats.pins == 0) CheckReferences();
  }

 private:
  static absl::Status StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static absl::Status StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  // Each reference count is the number of table entries that name the block,
  // and no table names a block twice.
  void CheckReferences() const {
    const auto groups = static_cast<uint32_t>(cache_->options().groups.size());
    for (uint32_t group = 0; group < groups; ++group) {
      if (cache_->PoolBlocks(GroupId(group)) != cache_->options().host_blocks) {
        continue;  // shared with another group: counted by CheckInvariants()
      }
      std::map<uint32_t, uint32_t> entries;
      for (SequenceId id : cache_->Sequences()) {
        std::set<uint32_t> own;
        for (BlockId block : Table(id, group)) {
          if (block == kNoBlock) continue;
          EXPECT_TRUE(own.insert(block.value()).second)
              << "block " << block << " is twice in the table of " << id;
          ++entries[block.value()];
        }
      }
      for (uint32_t b = 0; b < cache_->PoolBlocks(GroupId(group)).value();
           ++b) {
        EXPECT_EQ(Refs(BlockId(b), group),
                  entries.count(b) != 0 ? entries[b] : 0)
            << "block " << b;
      }
    }
  }

  std::unique_ptr<KvCacheManager> cache_;
};

}  // namespace paged_kv

#endif  // PAGED_KV_TESTS_PAGED_KV_CACHE_SCRIPT_H_

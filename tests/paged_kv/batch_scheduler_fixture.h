// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A cache, a scheduler, an engine and a clock, with everything checked after
// every step.

#ifndef PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_FIXTURE_H_
#define PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/batch_scheduler_fake_engine.h"

namespace paged_kv {

// One group of `blocks` blocks of `block_tokens` tokens.
inline KvCacheOptions SmallCache(uint32_t blocks, uint32_t block_tokens) {
  KvCacheOptions options;
  LayerGroup group;
  group.shape.block_tokens = block_tokens;
  options.groups = {group};
  options.host_blocks = BlockCount(blocks);
  options.max_sequences = 32;
  options.max_tokens_per_sequence = 1024;
  return options;
}

// A scheduler that keeps nothing back and never waits for a prefix: tests that
// are about these say so.
inline BatchSchedulerOptions PlainOptions() {
  BatchSchedulerOptions options;
  options.max_batch_sequences = 32;
  options.growth_reserve_tokens = 0;
  options.max_prefix_wait_steps = 0;
  return options;
}

// `n` tokens that no other `text` has.
inline std::vector<TokenId> Prompt(int32_t text, uint32_t n) {
  std::vector<TokenId> tokens(n);
  for (uint32_t i = 0; i < n; ++i) {
    tokens[i] = text * 10000 + static_cast<int32_t>(i);
  }
  return tokens;
}

inline void ExpectInvariants(const KvCacheManager& manager,
                             const BatchScheduler& batch_scheduler) {
  const absl::Status cache = manager.CheckInvariants();
  EXPECT_TRUE(cache.ok()) << cache;
  const absl::Status scheduler = batch_scheduler.CheckInvariants();
  EXPECT_TRUE(scheduler.ok()) << scheduler;
}

class SchedulerRig {
 public:
  SchedulerRig(const KvCacheOptions& cache_options,
               const BatchSchedulerOptions& options) {
    auto cache = KvCacheManager::Create(cache_options);
    EXPECT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
    auto scheduler = BatchScheduler::Create(cache_.get(), &clock_, options);
    EXPECT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
    engine_ = std::make_unique<FakeEngine>(cache_.get(), scheduler_.get());
  }

  KvCacheManager& cache() { return *cache_; }
  BatchScheduler& scheduler() { return *scheduler_; }
  BatchScheduler* operator->() { return scheduler_.get(); }
  FakeEngine& engine() { return *engine_; }
  ManualClock& clock() { return clock_; }

  // A request for `output` tokens behind Prompt(id, prompt).
  static TestRequest Request(uint64_t id, uint32_t prompt, uint32_t output) {
    TestRequest request;
    request.id = RequestId(id);
    request.prompt = Prompt(static_cast<int32_t>(id), prompt);
    request.max_output_tokens = output;
    return request;
  }
  absl::Status Submit(const TestRequest& request) {
    const absl::Status status = engine_->Submit(request);
    if (status.ok()) requests_.insert_or_assign(request.id, request);
    return status;
  }
  absl::Status Submit(uint64_t id, uint32_t prompt, uint32_t output) {
    return Submit(Request(id, prompt, output));
  }

  // Schedules a step; its items, none if there is nothing to do.
  std::vector<WorkItem> Launch() {
    const auto launched = engine_->Launch();
    EXPECT_TRUE(launched.ok()) << launched.status();
    Check();
    if (!launched.ok() || !*launched) return {};
    return engine_->newest_items();
  }
  // Completes the oldest step in flight.
  void Land() {
    const absl::Status status = engine_->Land();
    EXPECT_TRUE(status.ok()) << status;
    Check();
  }
  // Both.
  std::vector<WorkItem> Step() {
    std::vector<WorkItem> items = Launch();
    if (!items.empty()) Land();
    return items;
  }
  void Steps(int n) {
    for (int i = 0; i < n; ++i) Step();
  }

  void Check() { ExpectInvariants(*cache_, *scheduler_); }

  // Runs until nothing is left and takes all results, each of which must be
  // complete and right.
  std::vector<FinishedRequest> RunToEnd() {
    const absl::Status status = engine_->Drain(/*max_steps=*/10000);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<FinishedRequest> finished;
    while (std::optional<FinishedRequest> done = scheduler_->TakeFinished()) {
      CheckOutput(*done);
      finished.push_back(*std::move(done));
    }
    for (const PoolStats& pool : cache_->Stats().pools) {
      EXPECT_EQ(pool.held, BlockCount(0));
    }
    return finished;
  }

  void CheckOutput(const FinishedRequest& done) {
    const TestRequest& request = requests_.at(done.id);
    for (uint32_t i = 0; i < request.samples; ++i) {
      const absl::Span<const TokenId> output = done.Output(i);
      std::vector<TokenId> expected = ExpectedOutput(request, i);
      if (done.samples[i].reason == FinishReason::kStopped ||
          done.samples[i].reason == FinishReason::kCancelled) {
        expected.resize(std::min(expected.size(), output.size()));
      }
      EXPECT_EQ(std::vector<TokenId>(output.begin(), output.end()), expected)
          << "request " << done.id << " sample " << i;
    }
  }

 private:
  ManualClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<BatchScheduler> scheduler_;
  std::unique_ptr<FakeEngine> engine_;
  std::map<RequestId, TestRequest> requests_;
};

// "id:first+new>outputs" of every item, separated by spaces.
inline std::string Show(const std::vector<WorkItem>& items) {
  std::string text;
  for (const WorkItem& item : items) {
    absl::StrAppend(&text, text.empty() ? "" : " ", item.request.value());
    if (item.sample > 0) absl::StrAppend(&text, ".", item.sample);
    absl::StrAppend(&text, ":", item.first_new.value(), "+",
                    item.new_tokens.value());
    if (item.outputs > 0) absl::StrAppend(&text, ">", item.outputs);
  }
  return text;
}

}  // namespace paged_kv

#endif  // PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_FIXTURE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A scheduler whose decodes run on a device, with an engine that does what it
// is told, a step or a round of transfers at a time.

#ifndef PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_SWAP_RIG_H_
#define PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_SWAP_RIG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"
#include "tests/paged_kv/batch_scheduler_tiered_engine.h"

namespace paged_kv {

inline KvCacheOptions TwoTiers(uint32_t blocks, uint32_t pages,
                               uint32_t splits = 1) {
  KvCacheOptions options = SmallCache(blocks, 4);
  options.device.pages = BlockCount(pages);
  options.device.splits = splits;
  options.max_steps_in_flight = 2;
  return options;
}

inline BatchSchedulerOptions OnDevice() {
  BatchSchedulerOptions options = PlainOptions();
  options.decode_tier = Tier::kDevice;
  options.recompute_token_bytes = 0;
  return options;
}

class SwapRig {
 public:
  explicit SwapRig(const KvCacheOptions& cache,
                   const BatchSchedulerOptions& options = OnDevice())
      : cache_(KvCacheManager::Create(cache).value()),
        scheduler_(
            BatchScheduler::Create(cache_.get(), &clock_, options).value()),
        engine_(cache_.get(), scheduler_.get()) {}

  BatchScheduler* operator->() { return scheduler_.get(); }
  KvCacheManager& cache() { return *cache_; }
  TieredEngine& engine() { return engine_; }
  BatchSchedulerStats Stats() const { return scheduler_->Stats(); }

  absl::Status Submit(uint64_t id, uint32_t prompt, uint32_t output,
                      uint32_t samples = 1) {
    TestRequest request = SchedulerRig::Request(id, prompt, output);
    request.samples = samples;
    return engine_.Submit(request);
  }
  // "id@tier" of the next step's items; it is in flight then.
  std::string Launch() {
    const auto launched = engine_.Launch();
    EXPECT_TRUE(launched.ok()) << launched.status();
    Check();
    if (!launched.ok() || !*launched) return "";
    // What an admission found on the device alone comes first.
    auto ready = engine_.Export();
    for (int i = 0; i < 20 && ready.ok() && !*ready; ++i) {
      Move();
      ready = engine_.Export();
    }
    EXPECT_TRUE(ready.ok() && *ready) << ready.status();
    std::string text;
    for (const WorkItem& item : engine_.newest_items()) {
      absl::StrAppend(&text, text.empty() ? "" : " ", item.request.value(),
                      item.tier == Tier::kDevice ? "@device" : "@host");
    }
    return text;
  }
  void Land() {
    const absl::Status status = engine_.Land();
    EXPECT_TRUE(status.ok()) << status;
    Check();
  }
  std::string Step() {
    const std::string text = Launch();
    if (!text.empty()) Land();
    return text;
  }
  void Move(bool moved = true) {
    // Those only that are in flight now: failed downloads may begin again.
    for (size_t n = engine_.transfers(); n > 0; --n) {
      const absl::Status status = engine_.EndTransfer(0, moved);
      EXPECT_TRUE(status.ok()) << status;
      Check();
    }
  }
  void Check() { ExpectInvariants(*cache_, *scheduler_); }
  // Steps and moves until nothing is left; ids in the order of finishing.
  std::vector<FinishedRequest> RunToEnd() {
    std::vector<FinishedRequest> finished;
    for (int i = 0; i < 10000; ++i) {
      if (Step().empty() && engine_.transfers() == 0) break;
      Move();
      while (std::optional<FinishedRequest> done = scheduler_->TakeFinished()) {
        finished.push_back(*std::move(done));
      }
    }
    EXPECT_EQ(Stats().running + Stats().waiting, 0u);
    return finished;
  }
  // Steps and moves until somebody had to leave the device.
  void RunToSwap() {
    for (int i = 0; Stats().preemptions == 0; ++i) {
      ASSERT_LT(i, 1000);
      Step();
      if (Stats().preemptions == 0) Move();
    }
  }

 private:
  ManualClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<BatchScheduler> scheduler_;
  TieredEngine engine_;
};

}  // namespace paged_kv

#endif  // PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_SWAP_RIG_H_

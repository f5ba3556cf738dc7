// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random traffic against a device that holds a part of what is asked for:
// transfers end in any order, late, and some fail; requests are cancelled,
// decodes check drafts of which some are wrong, engines crash and devices lose
// their memory meanwhile.
// Every token read is compared with what the model would have written there, on
// either tier, and every output with what the request must generate.
// PAGED_KV_TEST_SEED=n runs only seed n.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/batch_scheduler_tiered_engine.h"

namespace paged_kv {
namespace {

struct Totals {
  uint64_t swap_outs = 0;
  uint64_t recomputes = 0;
  uint64_t failed_requests = 0;
  uint64_t failed_transfers = 0;
  uint64_t downloads_before_steps = 0;
  uint64_t drafted = 0;
  uint64_t accepted = 0;
  uint64_t device_losses = 0;
  uint64_t lost_sequences = 0;
};

class SwapSimulation {
 public:
  explicit SwapSimulation(uint64_t seed) : random_(seed) {
    MakeCache();
    MakeScheduler();
    engine_ = std::make_unique<TieredEngine>(cache_.get(), scheduler_.get());
    failure_percent_ = OneIn(3) ? Uniform(1, 60) : 0;
  }

  void Run(int ticks) {
    for (int i = 0; i < ticks && !Failed(); ++i) Tick();
    if (OneIn(2)) failure_percent_ = 0;
    Drain();
    if (!Failed()) CheckEmpty();
  }

  void AddTo(Totals* totals) const {
    const BatchSchedulerStats stats = scheduler_->Stats();
    totals->swap_outs += stats.swap_outs;
    totals->recomputes += stats.preemptions - stats.swap_outs;
    totals->failed_requests += stats.failed;
    totals->failed_transfers += stats.failed_transfers;
    totals->downloads_before_steps += waits_;
    totals->drafted += stats.drafted_tokens;
    totals->accepted += stats.accepted_tokens;
    totals->device_losses += stats.device_losses;
    totals->lost_sequences += lost_sequences_;
  }

 private:
  static bool Failed() { return ::testing::Test::HasFatalFailure(); }

  uint32_t Uniform(uint32_t min, uint32_t max) {
    return std::uniform_int_distribution<uint32_t>(min, max)(random_);
  }
  bool OneIn(uint32_t n) { return Uniform(1, n) == 1; }

  void MakeCache() {
    KvCacheOptions options;
    LayerGroup full;
    full.shape.block_tokens = uint32_t{1} << Uniform(0, 4);
    options.groups = {full};
    if (OneIn(4)) {
      LayerGroup windowed = full;
      windowed.window = Uniform(1, 40);
      windowed.sink_tokens = OneIn(2) ? Uniform(1, 10) : 0;
      if (OneIn(2)) windowed.shape.block_tokens *= 2;
      options.groups.push_back(windowed);
    }
    options.host_blocks = BlockCount(Uniform(8, 80));
    options.device.splits = OneIn(3) ? Uniform(2, 3) : 1;
    const uint32_t most = options.host_blocks.value() / options.device.splits;
    options.device.pages =
        BlockCount(options.device.splits * Uniform(1, std::max(1u, most / 2)));
    options.device.watermark_pages = BlockCount(OneIn(4) ? 1 : 0);
    options.max_sequences = Uniform(4, 20);
    options.max_tokens_per_sequence = 512;
    options.max_steps_in_flight = 2;
    options.watermark_blocks = BlockCount(Uniform(0, 2));
    options.prefix_caching = !OneIn(5);
    options.hash_seed = 1;
    auto cache = KvCacheManager::Create(options);
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  void MakeScheduler() {
    BatchSchedulerOptions options;
    options.decode_tier = Tier::kDevice;
    options.max_requests = Uniform(4, 40);
    options.max_batch_sequences = Uniform(1, cache_->options().max_sequences);
    options.max_batch_tokens =
        std::max(options.max_batch_sequences, Uniform(4, 64));
    options.max_chunk_tokens = OneIn(2) ? 0 : Uniform(1, 4);
    options.max_steps_in_flight = Uniform(1, 2);
    options.growth_reserve_tokens = OneIn(2) ? 0 : Uniform(1, 32);
    options.max_draft_tokens =
        OneIn(2) ? 0 : std::min(Uniform(1, 6), options.max_batch_tokens - 1);
    options.max_prefix_wait_steps = OneIn(2) ? 0 : Uniform(1, 30);
    options.prefix_wait_min_tokens = Uniform(1, 16);
    // Moving a token there and back costs about twice its bytes.
    BlockShape token = cache_->options().groups[0].shape;
    token.block_tokens = 1;
    options.recompute_token_bytes =
        OneIn(3) ? 0 : PageBytes(token).value() * Uniform(1, 8);
    options.max_transfer_failures = Uniform(2, 10);
    auto scheduler = BatchScheduler::Create(cache_.get(), &clock_, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
  }

  TestRequest MakeRequest() {
    TestRequest request;
    request.id = RequestId(++last_id_);
    const uint32_t family = Uniform(0, 3);
    const uint32_t length = Uniform(1, OneIn(4) ? 80 : 24);
    const uint32_t shared = Uniform(0, length);
    for (uint32_t i = 0; i < length; ++i) {
      request.prompt.push_back(static_cast<TokenId>(
          i < shared ? MixHash(family, i) % 1000 : Uniform(0, 999)));
    }
    request.max_output_tokens = OneIn(8) ? 0 : Uniform(1, OneIn(4) ? 60 : 12);
    request.samples = OneIn(4) ? Uniform(2, 4) : 1;
    request.priority = static_cast<int32_t>(Uniform(0, 2)) - 1;
    if (OneIn(2)) request.stop_tokens = {5, 17};
    if (OneIn(3)) request.salt = OneIn(2) ? "blue" : "green";
    request.share = !OneIn(6);
    return request;
  }

  void SubmitOne() {
    const TestRequest request = MakeRequest();
    const absl::Status status = engine_->Submit(request);
    if (absl::IsOutOfRange(status)) return;
    if (absl::IsResourceExhausted(status)) {
      ASSERT_EQ(known_, scheduler_->options().max_requests) << status;
      return;
    }
    ASSERT_TRUE(status.ok()) << status;
    ++known_;
    requests_.emplace(request.id, request);
    priorities_.push_back(request.priority);
  }

  void CancelOne() {
    if (requests_.empty()) return;
    auto it = requests_.begin();
    std::advance(it, Uniform(0, static_cast<uint32_t>(requests_.size()) - 1));
    const absl::Status status = scheduler_->Cancel(it->first);
    ASSERT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
    CheckAll();
  }

  void Tick() {
    clock_.Advance(absl::Milliseconds(Uniform(0, 2000)));
    if (OneIn(3)) SubmitOne();
    if (!Failed() && OneIn(40)) CancelOne();
    if (!Failed() && OneIn(60)) Crash();
    if (!Failed() && OneIn(80)) LoseDevice();
    for (uint32_t n = Uniform(0, 3); n > 0 && !Failed(); --n) MoveOne();
    if (Failed()) return;
    if (engine_->in_flight() < scheduler_->options().max_steps_in_flight &&
        !OneIn(4)) {
      Launch();
    } else if (engine_->in_flight() > 0) {
      Land();
    }
    if (!Failed() && OneIn(2)) TakeAll();
  }

  void MoveOne() {
    if (engine_->transfers() == 0) return;
    const uint32_t i =
        Uniform(0, static_cast<uint32_t>(engine_->transfers()) - 1);
    const bool moved = Uniform(1, 100) > failure_percent_;
    const absl::Status status = engine_->EndTransfer(i, moved);
    ASSERT_TRUE(status.ok()) << status;
    CheckAll();
  }

  void Launch() {
    const auto launched = engine_->Launch();
    ASSERT_TRUE(launched.ok()) << launched.status();
    CheckAll();
    if (Failed() || !*launched) return;
    // A step may wait for what its admissions found on the device alone.
    for (int i = 0; !Failed(); ++i) {
      const auto ready = engine_->Export();
      ASSERT_TRUE(ready.ok()) << ready.status();
      if (*ready) break;
      ASSERT_GT(engine_->transfers(), 0u) << "nothing is on its way";
      if (i == 100) {
        Crash();
        return;
      }
      ++waits_;
      MoveOne();
    }
  }

  void Land() {
    const absl::Status status = engine_->Land();
    ASSERT_TRUE(status.ok()) << status;
    CheckAll();
    if (!Failed()) ProposeSome();
  }

  void ProposeSome() {
    const uint32_t most = scheduler_->options().max_draft_tokens;
    if (most == 0) return;
    for (const auto& [id, request] : requests_) {
      for (uint32_t i = 0; i < request.samples; ++i) {
        if (OneIn(3)) continue;
        const absl::Status status =
            engine_->Propose(id, i, Uniform(0, most), Uniform(0, 3));
        ASSERT_TRUE(status.ok() || absl::IsFailedPrecondition(status))
            << status;
      }
    }
    CheckAll();
  }

  void Crash() {
    const absl::Status status = engine_->Crash();
    ASSERT_TRUE(status.ok()) << status;
    crashed_ = true;
    CheckAll();
  }

  void LoseDevice() {
    const uint32_t waiting = scheduler_->Stats().waiting;
    const uint32_t running = scheduler_->Stats().running;
    const auto loss = engine_->LoseDevice();
    ASSERT_TRUE(loss.ok()) << loss.status();
    crashed_ = true;
    lost_sequences_ += loss->sequences.size();
    const BatchSchedulerStats stats = scheduler_->Stats();
    ASSERT_EQ(stats.on_device + stats.transfers, 0u);
    // Nobody is dropped.
    ASSERT_EQ(stats.waiting + stats.running, waiting + running);
    ASSERT_GE(stats.waiting, loss->sequences.size());
    for (const DevicePoolStats& pool : cache_->Stats().device_pools) {
      ASSERT_EQ(pool.free, pool.capacity);
    }
    CheckAll();
  }

  void CheckAll() {
    absl::Status status = cache_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
    status = scheduler_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(scheduler_->Stats().transfers, engine_->transfers());
  }

  void TakeAll() {
    while (std::optional<FinishedRequest> done = scheduler_->TakeFinished()) {
      --known_;
      const auto it = requests_.find(done->id);
      ASSERT_NE(it, requests_.end());
      CheckFinished(it->second, *done);
      if (Failed()) return;
      requests_.erase(it);
    }
  }

  void CheckFinished(const TestRequest& request, const FinishedRequest& done) {
    SCOPED_TRACE(absl::StrCat("request ", done.id.value()));
    for (uint32_t i = 0; i < request.samples; ++i) {
      const absl::Span<const TokenId> output = done.Output(i);
      const std::vector<TokenId> expected = ExpectedOutput(request, i);
      ASSERT_LE(output.size(), expected.size());
      ASSERT_TRUE(std::equal(output.begin(), output.end(), expected.begin()));
      const FinishReason reason = done.samples[i].reason;
      if (reason == FinishReason::kFailed) {
        ASSERT_TRUE(absl::IsUnavailable(done.status)) << done.status;
        ASSERT_GT(scheduler_->Stats().failed_transfers,
                  scheduler_->options().max_transfer_failures);
      } else if (reason != FinishReason::kCancelled) {
        ASSERT_EQ(output.size(), expected.size());
      }
    }
    if (crashed_ || scheduler_->Stats().failed_transfers > 0) return;
    // As without a device: each time that a sample has to go it asks for twice
    // the room before it comes back.
    uint32_t better = 1;
    for (const int32_t priority : priorities_) {
      if (priority >= request.priority) ++better;
    }
    ASSERT_LE(done.costs.preemptions, request.samples * (12 + better));
  }

  void Drain() {
    for (int i = 0; !Failed() && i < 200000; ++i) {
      clock_.Advance(absl::Milliseconds(10));
      if (engine_->in_flight() < scheduler_->options().max_steps_in_flight) {
        const size_t before = engine_->in_flight();
        Launch();
        if (Failed()) return;
        if (engine_->in_flight() > before) continue;
      }
      if (engine_->transfers() > 0) {
        MoveOne();
      } else if (engine_->in_flight() == 0) {
        break;
      }
      if (!Failed() && engine_->in_flight() > 0) Land();
    }
    if (!Failed()) TakeAll();
  }

  void CheckEmpty() {
    ASSERT_EQ(known_, 0u);
    const BatchSchedulerStats stats = scheduler_->Stats();
    ASSERT_EQ(stats.submitted, stats.finished);
    ASSERT_EQ(stats.waiting + stats.running + stats.untaken + stats.in_flight +
                  stats.transfers + stats.on_device + stats.swapped_out,
              0u);
    const CacheStats cache = cache_->Stats();
    ASSERT_EQ(stats.pages_in + stats.pages_out + stats.failed_transfers,
              cache.uploads_started + cache.downloads_started);
    for (const PoolStats& pool : cache.pools) {
      ASSERT_EQ(pool.held + pool.quarantined, BlockCount(0));
    }
    for (const DevicePoolStats& pool : cache.device_pools) {
      ASSERT_EQ(pool.seated + pool.moving + pool.quarantined, BlockCount(0));
    }
    ASSERT_TRUE(cache_->Reset().ok());
  }

  std::mt19937_64 random_;
  ManualClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<BatchScheduler> scheduler_;
  std::unique_ptr<TieredEngine> engine_;
  std::map<RequestId, TestRequest> requests_;
  uint64_t last_id_ = 0;
  uint32_t known_ = 0;
  std::vector<int32_t> priorities_;  // of all that were accepted
  uint32_t failure_percent_ = 0;
  uint64_t waits_ = 0;
  uint64_t lost_sequences_ = 0;
  bool crashed_ = false;
};

TEST(BatchSchedulerSwapSimulationTest, EveryRequestIsRightOrReportedFailed) {
  uint64_t first = 1, last = 400;
  if (const char* text = std::getenv("PAGED_KV_TEST_SEED")) {
    first = last = std::strtoull(text, nullptr, 0);
  } else if (const char* many = std::getenv("PAGED_KV_TEST_SEEDS")) {
    last = std::strtoull(many, nullptr, 0);
  }
  Totals totals;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(absl::StrCat("PAGED_KV_TEST_SEED=", seed));
    SwapSimulation simulation(seed);
    if (HasFatalFailure()) return;
    simulation.Run(300);
    if (HasFatalFailure()) return;
    simulation.AddTo(&totals);
  }
  std::printf(
      "seeds %llu to %llu: %llu swaps out, %llu recomputes, %llu requests "
      "failed, %llu transfers failed, %llu waits for downloads, %llu of %llu "
      "drafts accepted, %llu devices lost with %llu sequences\n",
      static_cast<unsigned long long>(first),
      static_cast<unsigned long long>(last),
      static_cast<unsigned long long>(totals.swap_outs),
      static_cast<unsigned long long>(totals.recomputes),
      static_cast<unsigned long long>(totals.failed_requests),
      static_cast<unsigned long long>(totals.failed_transfers),
      static_cast<unsigned long long>(totals.downloads_before_steps),
      static_cast<unsigned long long>(totals.accepted),
      static_cast<unsigned long long>(totals.drafted),
      static_cast<unsigned long long>(totals.device_losses),
      static_cast<unsigned long long>(totals.lost_sequences));
  if (first == last) return;
  EXPECT_GT(totals.swap_outs, 100u);
  EXPECT_GT(totals.recomputes, 100u);
  EXPECT_GT(totals.failed_transfers, 100u);
  EXPECT_GT(totals.downloads_before_steps, 10u);
  EXPECT_GT(totals.device_losses, 100u);
  EXPECT_GT(totals.lost_sequences, 100u);
  EXPECT_GT(totals.accepted, 500u);
  EXPECT_GT(totals.drafted - totals.accepted, 500u);
}

}  // namespace
}  // namespace paged_kv

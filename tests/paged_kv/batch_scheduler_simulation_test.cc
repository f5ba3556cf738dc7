// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random traffic against small pools: arrivals, cancellations, early stops,
// several samples, shared prefixes, one and two steps in flight, drafts of
// which some are wrong, engine crashes. Everything is a function of the seed;
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
#include "tests/paged_kv/batch_scheduler_fake_engine.h"

namespace paged_kv {
namespace {

// What a request has done so far, as seen from outside.
struct Seen {
  TestRequest request;
  uint64_t arrival = 0;  // order of submission
  absl::Time arrival_time;
  std::optional<uint64_t> first_step;  // order of the step that ran it first
  bool cancelled = false;
  std::vector<bool> stopped;  // per sample, by Finish()
  bool finished = false;
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed) {
    MakeCache();
    MakeScheduler();
    engine_ = std::make_unique<FakeEngine>(cache_.get(), scheduler_.get());
  }

  void Run(int ticks) {
    for (int i = 0; i < ticks && !Failed(); ++i) Tick();
    Drain();
    if (!Failed()) CheckEmpty();
  }

  BatchSchedulerStats Stats() const { return scheduler_->Stats(); }

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
    options.host_blocks = BlockCount(Uniform(6, 60));
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
    options.max_requests = Uniform(4, 40);
    options.max_batch_sequences = Uniform(1, cache_->options().max_sequences);
    options.max_batch_tokens =
        std::max(options.max_batch_sequences, Uniform(4, 64));
    options.max_chunk_tokens = OneIn(2) ? 0 : Uniform(1, 4);
    options.max_steps_in_flight = Uniform(1, 2);
    options.growth_reserve_tokens = OneIn(2) ? 0 : Uniform(1, 32);
    options.max_draft_tokens =
        OneIn(2) ? 0 : std::min(Uniform(1, 6), options.max_batch_tokens - 1);
    switch (Uniform(0, 2)) {
      case 0:
        options.priority_head_start = absl::ZeroDuration();
        break;
      case 1:
        options.priority_head_start = absl::Seconds(Uniform(1, 20));
        break;
      default:
        options.priority_head_start = absl::InfiniteDuration();
    }
    options.max_prefix_wait_steps = OneIn(2) ? 0 : Uniform(1, 30);
    options.prefix_wait_min_tokens = Uniform(1, 16);
    auto scheduler = BatchScheduler::Create(cache_.get(), &clock_, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
  }

  TestRequest MakeRequest() {
    TestRequest request;
    request.id = RequestId(++last_id_);
    // A few families of prompts that share their beginning.
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

  // Where nothing is released, a request fits exactly if its blocks do.
  bool NeverFits(const TestRequest& request) const {
    const KvCacheOptions& options = cache_->options();
    const uint32_t tokens = static_cast<uint32_t>(request.prompt.size()) +
                            std::max(request.max_output_tokens, 1u) - 1;
    const uint32_t block_tokens = options.groups[0].shape.block_tokens;
    const uint32_t blocks = (tokens + block_tokens - 1) / block_tokens;
    return request.samples > scheduler_->options().max_batch_sequences ||
           blocks + options.watermark_blocks.value() >
               options.host_blocks.value();
  }

  void SubmitOne() {
    Seen seen;
    seen.request = MakeRequest();
    seen.arrival = last_id_;
    seen.arrival_time = clock_.Now();
    seen.stopped.resize(seen.request.samples);
    const absl::Status status = engine_->Submit(seen.request);
    if (absl::IsResourceExhausted(status)) {
      ASSERT_EQ(known_, scheduler_->options().max_requests) << status;
      return;
    }
    if (cache_->options().groups.size() == 1) {
      ASSERT_EQ(absl::IsOutOfRange(status), NeverFits(seen.request)) << status;
    }
    if (absl::IsOutOfRange(status)) return;
    ASSERT_TRUE(status.ok()) << status;
    ++known_;
    seen_.emplace(seen.request.id, std::move(seen));
  }

  // Any request ever accepted: half of them are gone, as clients would have it.
  Seen* PickAny() {
    if (seen_.empty()) return nullptr;
    auto it = seen_.begin();
    std::advance(it, Uniform(0, static_cast<uint32_t>(seen_.size()) - 1));
    return &it->second;
  }

  void CancelOne() {
    Seen* seen = PickAny();
    if (seen == nullptr) return;
    const absl::Status status = scheduler_->Cancel(seen->request.id);
    if (seen->finished) {
      ASSERT_TRUE(absl::IsNotFound(status)) << status;
    } else if (status.ok()) {
      ASSERT_FALSE(seen->cancelled);
      seen->cancelled = true;
    } else {
      ASSERT_TRUE(absl::IsFailedPrecondition(status)) << status;
    }
  }

  void StopOne() {
    Seen* seen = PickAny();
    if (seen == nullptr || seen->finished) return;
    const uint32_t sample = Uniform(0, seen->request.samples - 1);
    if (scheduler_->Finish(seen->request.id, sample).ok()) {
      ASSERT_FALSE(seen->stopped[sample]);
      seen->stopped[sample] = true;
    }
  }

  void Tick() {
    clock_.Advance(absl::Milliseconds(Uniform(0, 2000)));
    if (OneIn(3)) SubmitOne();
    if (OneIn(40)) CancelOne();
    if (OneIn(40)) StopOne();
    if (Failed()) return;
    if (crashes_ && OneIn(50)) Crash();
    if (engine_->in_flight() < scheduler_->options().max_steps_in_flight &&
        !OneIn(4)) {
      Launch();
    } else if (engine_->in_flight() > 0) {
      Land();
    }
    if (!Failed() && OneIn(2)) TakeAll();
  }

  void Launch() {
    const auto launched = engine_->Launch();
    ASSERT_TRUE(launched.ok()) << launched.status();
    CheckAll();
    if (!*launched || Failed()) return;
    ++steps_;
    uint32_t tokens = 0;
    for (const WorkItem& item : engine_->newest_items()) {
      tokens += item.new_tokens.value();
      tokens += static_cast<uint32_t>(item.drafts.size());
      Seen& seen = seen_.at(item.request);
      if (!seen.first_step.has_value()) {
        seen.first_step = steps_;
        CheckNobodyWasOvertaken(seen);
      }
    }
    ASSERT_LE(tokens, scheduler_->options().max_batch_tokens);
    ASSERT_LE(engine_->newest_items().size(),
              scheduler_->options().max_batch_sequences);
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
    for (const auto& [id, seen] : seen_) {
      if (seen.finished) continue;
      for (uint32_t i = 0; i < seen.request.samples; ++i) {
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
    crashed_ = crashed_ || engine_->in_flight() > 0;
    const absl::Status status = engine_->Crash();
    ASSERT_TRUE(status.ok()) << status;
    CheckAll();
  }

  void CheckAll() {
    absl::Status status = cache_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
    status = scheduler_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
  }

  // First admission is first come, first served within a priority. (In the
  // step of `seen` itself others may still follow, so they are not looked at;
  // requests that chose to wait for a prefix may be overtaken.)
  void CheckNobodyWasOvertaken(const Seen& seen) {
    if (scheduler_->options().max_prefix_wait_steps > 0) return;
    for (const auto& [id, other] : seen_) {
      if (other.arrival >= seen.arrival) break;
      if (other.request.priority != seen.request.priority) continue;
      if (other.cancelled || other.finished) continue;
      if (other.first_step.has_value()) continue;
      bool in_this_step = false;
      for (const WorkItem& item : engine_->newest_items()) {
        in_this_step = in_this_step || item.request == id;
      }
      ASSERT_TRUE(in_this_step)
          << "request " << seen.request.id << " overtook " << id;
    }
  }

  void TakeAll() {
    while (std::optional<FinishedRequest> done = scheduler_->TakeFinished()) {
      --known_;
      const auto it = seen_.find(done->id);
      ASSERT_NE(it, seen_.end());
      ASSERT_FALSE(it->second.finished) << "request " << done->id << " twice";
      it->second.finished = true;
      CheckFinished(it->second, *done);
      if (Failed()) return;
    }
  }

  void CheckFinished(const Seen& seen, const FinishedRequest& done) {
    SCOPED_TRACE(absl::StrCat("request ", done.id.value()));
    ASSERT_TRUE(done.status.ok()) << done.status;
    ASSERT_EQ(done.samples.size(), seen.request.samples);
    ASSERT_EQ(done.prompt_tokens, seen.request.prompt.size());
    for (uint32_t i = 0; i < done.samples.size(); ++i) {
      CheckSample(seen, done, i);
      if (Failed()) return;
    }
    CheckTiming(seen, done);
    ASSERT_LE(
        done.costs.prefix_wait_steps,
        scheduler_->options().max_prefix_wait_steps * seen.request.samples);
    if (!crashed_) {
      ASSERT_LE(done.costs.preemptions, MaxPreemptions(seen));
    }
  }

  void CheckSample(const Seen& seen, const FinishedRequest& done, uint32_t i) {
    const SampleResult& result = done.samples[i];
    ASSERT_GE(result.tokens.size(), done.prompt_tokens);
    ASSERT_TRUE(std::equal(seen.request.prompt.begin(),
                           seen.request.prompt.end(), result.tokens.begin()));
    const absl::Span<const TokenId> output = done.Output(i);
    const std::vector<TokenId> expected = ExpectedOutput(seen.request, i);
    ASSERT_LE(output.size(), expected.size());
    ASSERT_TRUE(std::equal(output.begin(), output.end(), expected.begin()));
    const bool complete = output.size() == expected.size();
    const bool stop_token =
        !expected.empty() &&
        std::count(seen.request.stop_tokens.begin(),
                   seen.request.stop_tokens.end(), expected.back()) > 0;
    switch (result.reason) {
      case FinishReason::kMaxTokens:
        ASSERT_TRUE(complete);
        ASSERT_EQ(output.size(), seen.request.max_output_tokens);
        break;
      case FinishReason::kStopToken:
        ASSERT_TRUE(complete && stop_token);
        break;
      case FinishReason::kStopped:
        ASSERT_TRUE(seen.stopped[i]);
        ASSERT_FALSE(output.empty());
        break;
      case FinishReason::kCancelled:
        ASSERT_TRUE(seen.cancelled);
        break;
      default:
        FAIL() << FinishReasonName(result.reason);
    }
  }

  void CheckTiming(const Seen& seen, const FinishedRequest& done) {
    ASSERT_EQ(done.timing.arrival, seen.arrival_time);
    ASSERT_LE(done.timing.arrival, done.timing.finished);
    ASSERT_LE(done.timing.finished, clock_.Now());
    if (seen.cancelled) return;
    ASSERT_LE(done.timing.arrival, done.timing.first_scheduled);
    ASSERT_LE(done.timing.first_scheduled, done.timing.finished);
    if (seen.request.max_output_tokens == 0) return;
    ASSERT_LE(done.timing.first_scheduled, done.timing.first_token);
    ASSERT_LE(done.timing.first_token, done.timing.finished);
  }

  // Each time that a sample is thrown out it asks for twice the room before it
  // comes back, so that those in front of it can hardly do it often: a few
  // times more than log2 of the longest sequence, for each of those in front.
  uint32_t MaxPreemptions(const Seen& seen) const {
    uint32_t better = 1;
    for (const auto& [id, other] : seen_) {
      if (other.request.priority >= seen.request.priority) ++better;
    }
    return seen.request.samples * (12 + better);
  }

  void Drain() {
    for (int i = 0; !Failed() && i < 100000; ++i) {
      clock_.Advance(absl::Milliseconds(10));
      if (engine_->in_flight() < scheduler_->options().max_steps_in_flight) {
        const size_t before = engine_->in_flight();
        Launch();
        if (Failed()) return;
        if (engine_->in_flight() > before) continue;
      }
      if (engine_->in_flight() == 0) break;
      Land();
    }
    if (!Failed()) TakeAll();
  }

  void CheckEmpty() {
    ASSERT_EQ(known_, 0u);
    for (const auto& [id, seen] : seen_) {
      ASSERT_TRUE(seen.finished) << "request " << id << " never ended";
    }
    const BatchSchedulerStats stats = scheduler_->Stats();
    ASSERT_LE(stats.accepted_tokens, stats.drafted_tokens);
    ASSERT_LE(stats.accepted_tokens, stats.output_tokens);
    ASSERT_EQ(stats.submitted, seen_.size());
    ASSERT_EQ(stats.finished, seen_.size());
    ASSERT_EQ(stats.waiting + stats.running + stats.untaken + stats.in_flight,
              0u);
    ASSERT_EQ(stats.max_preemptions > 0, stats.preemptions > 0);
    const CacheStats cache = cache_->Stats();
    ASSERT_EQ(cache.sequences, 0u);
    for (const PoolStats& pool : cache.pools) {
      ASSERT_EQ(pool.held, BlockCount(0));
      ASSERT_EQ(pool.quarantined, BlockCount(0));
      ASSERT_EQ(pool.cached + pool.free, pool.capacity);
    }
    ASSERT_TRUE(cache_->Reset().ok());
  }

  std::mt19937_64 random_;
  ManualClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<BatchScheduler> scheduler_;
  std::unique_ptr<FakeEngine> engine_;
  std::map<RequestId, Seen> seen_;
  uint64_t last_id_ = 0;
  uint64_t steps_ = 0;
  uint32_t known_ = 0;  // accepted and not taken
  const bool crashes_ = OneIn(4);
  bool crashed_ = false;
};

struct Totals {
  uint64_t finished = 0;
  uint64_t preemptions = 0;
  uint32_t max_preemptions = 0;  // of one sequence
  uint64_t stalls = 0;
  uint64_t prefix_waits = 0;
  uint64_t drafted = 0;
  uint64_t accepted = 0;
};

void RunSeed(uint64_t seed, Totals* totals) {
  SCOPED_TRACE(absl::StrCat("PAGED_KV_TEST_SEED=", seed));
  Simulation simulation(seed);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  simulation.Run(/*ticks=*/600);
  const BatchSchedulerStats stats = simulation.Stats();
  totals->finished += stats.finished;
  totals->preemptions += stats.preemptions;
  totals->max_preemptions =
      std::max(totals->max_preemptions, stats.max_preemptions);
  totals->stalls += stats.stalls;
  totals->prefix_waits += stats.prefix_waits;
  totals->drafted += stats.drafted_tokens;
  totals->accepted += stats.accepted_tokens;
}

TEST(BatchSchedulerSimulationTest, EveryRequestEndsOnceAndRight) {
  Totals totals;
  if (const char* only = std::getenv("PAGED_KV_TEST_SEED")) {
    RunSeed(std::strtoull(only, nullptr, 10), &totals);
    return;
  }
  constexpr uint64_t kSeeds = 400;
  std::printf("seeds 1 to %llu\n", static_cast<unsigned long long>(kSeeds));
  for (uint64_t seed = 1; seed <= kSeeds && !HasFatalFailure(); ++seed) {
    RunSeed(seed, &totals);
  }
  if (HasFatalFailure()) return;
  // The traffic is worth its time only if it gets into trouble.
  EXPECT_GT(totals.finished, 10000u);
  EXPECT_GT(totals.preemptions, 1000u);
  EXPECT_GT(totals.stalls, 1000u);
  EXPECT_GT(totals.prefix_waits, 100u);
  EXPECT_GT(totals.accepted, 1000u);
  EXPECT_GT(totals.drafted - totals.accepted, 1000u);
  std::printf(
      "%s\n",
      absl::StrCat(totals.finished, " requests, ", totals.preemptions,
                   " preemptions, at most ", totals.max_preemptions,
                   " of one sequence, ", totals.stalls, " pauses, ",
                   totals.prefix_waits, " waits for a prefix, ",
                   totals.accepted, " of ", totals.drafted, " drafts accepted")
          .c_str());
}

}  // namespace
}  // namespace paged_kv

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Several samples of one prompt.

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv {
namespace {

TestRequest ThreeSamples(uint64_t id, uint32_t prompt, uint32_t output) {
  TestRequest request = SchedulerRig::Request(id, prompt, output);
  request.samples = 3;
  return request;
}

TEST(BatchSchedulerSamplesTest, ThePromptIsComputedAndStoredOnce) {
  SchedulerRig rig(SmallCache(32, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(ThreeSamples(1, 8, 5)).ok());
  // One item yields the first token of all three.
  EXPECT_EQ(Show(rig.Step()), "1:0+8>3");
  EXPECT_EQ(rig.cache().Stats().pools[0].held, BlockCount(2));
  EXPECT_EQ(rig.cache().Stats().sequences, 3u);
  EXPECT_EQ(Show(rig.Step()), "1:8+1>1 1.1:8+1>1 1.2:8+1>1");
  EXPECT_EQ(rig.cache().Stats().pools[0].held, BlockCount(5));
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].costs.computed_tokens, 8u + 3 * 4);
  EXPECT_NE(finished[0].samples[0].tokens, finished[0].samples[1].tokens);
}

TEST(BatchSchedulerSamplesTest, APartialBlockIsCopiedOnWrite) {
  SchedulerRig rig(SmallCache(32, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(ThreeSamples(1, 6, 5)).ok());
  rig.Step();
  EXPECT_EQ(rig.cache().Stats().pools[0].held, BlockCount(2));
  rig.Step();
  // The last owner writes in place.
  EXPECT_EQ(rig.cache().Stats().blocks_copied, 2u);
  EXPECT_EQ(rig.cache().Stats().pools[0].held, BlockCount(4));
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

TEST(BatchSchedulerSamplesTest, AChunkedPromptYieldsAtItsEndOnly) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_chunk_tokens = 5;
  SchedulerRig rig(SmallCache(32, 4), options);
  ASSERT_TRUE(rig.Submit(ThreeSamples(1, 12, 2)).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+5");
  EXPECT_EQ(Show(rig.Step()), "1:5+5");
  EXPECT_EQ(Show(rig.Step()), "1:10+2>3");
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

TEST(BatchSchedulerSamplesTest, AFirstTokenMayBeTheLast) {
  SchedulerRig rig(SmallCache(32, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(ThreeSamples(1, 6, 1)).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+6>3");
  EXPECT_TRUE(rig.Step().empty());
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
  // And for some of the samples only, the first one (which has computed the
  // prompt) included.
  for (uint32_t ends : {0, 1, 2}) {
    TestRequest request = ThreeSamples(10 + ends, 6, 4);
    request.stop_tokens = {ExpectedOutput(request, ends)[0]};
    ASSERT_TRUE(rig.Submit(request).ok());
    rig.Step();
    EXPECT_GE(rig->Progress(request.id)->samples_ended, 1u);
    const std::vector<FinishedRequest> finished = rig.RunToEnd();
    ASSERT_EQ(finished.size(), 1u);
    EXPECT_EQ(finished[0].samples[ends].reason, FinishReason::kStopToken);
    EXPECT_EQ(finished[0].Output(ends).size(), 1u);
  }
}

TEST(BatchSchedulerSamplesTest, SeatsAreKeptForAllSamples) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_sequences = 4;
  SchedulerRig rig(SmallCache(64, 4), options);
  ASSERT_TRUE(rig.Submit(ThreeSamples(1, 6, 4)).ok());
  ASSERT_TRUE(rig.Submit(2, 4, 2).ok());
  ASSERT_TRUE(rig.Submit(3, 4, 2).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+6>3 2:0+4>1");
  EXPECT_EQ(Show(rig.Step()), "1:6+1>1 1.1:6+1>1 1.2:6+1>1 2:4+1>1");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerSamplesTest, ThePromptWaitsForItsForkInFlight) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = 2;
  SchedulerRig rig(SmallCache(32, 4), options);
  ASSERT_TRUE(rig.Submit(ThreeSamples(1, 6, 3)).ok());
  EXPECT_EQ(Show(rig.Launch()), "1:0+6>3");
  // Nothing behind the prompt until it is written and forked.
  EXPECT_TRUE(rig.Launch().empty());
  rig.Land();
  EXPECT_EQ(Show(rig.Launch()), "1:6+1>1 1.1:6+1>1 1.2:6+1>1");
  EXPECT_EQ(Show(rig.Launch()), "1:7+1>1 1.1:7+1>1 1.2:7+1>1");
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
  EXPECT_EQ(rig->Stats().failed_forks, 0u);
}

// If the cache has no sequence left for a fork, the sample takes the way of a
// preempted one.
TEST(BatchSchedulerSamplesTest, AFailedForkFindsThePromptInTheCache) {
  KvCacheOptions cache = SmallCache(32, 4);
  cache.max_sequences = 4;
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_sequences = 4;
  SchedulerRig rig(cache, options);
  const auto other = rig.cache().Allocate(Prompt(99, 4));
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(rig.cache().Retire(other->step).ok());
  TestRequest request = SchedulerRig::Request(1, 8, 3);
  request.samples = 4;
  ASSERT_TRUE(rig.Submit(request).ok());
  rig.Step();
  EXPECT_EQ(rig->Stats().failed_forks, 1u);
  EXPECT_EQ(rig->Progress(RequestId(1))->samples_waiting, 1u);
  EXPECT_EQ(Show(rig.Step()), "1:8+1>1 1.1:8+1>1 1.2:8+1>1");
  ASSERT_TRUE(rig.cache().Free(other->id).ok());
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  // The whole prompt was found, so that nothing was computed twice.
  EXPECT_EQ(finished[0].costs.recomputed_tokens, 0u);
  EXPECT_EQ(finished[0].costs.computed_tokens, 8u + 4 * 2);
}

// The prompt is thrown out while the step that ends it is in flight: all its
// samples go into the queue.
TEST(BatchSchedulerSamplesTest, ThePromptIsPreemptedBeforeItsFork) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = 2;
  SchedulerRig rig(SmallCache(7, 4), options);
  ASSERT_TRUE(rig.Submit(1, 16, 6).ok());
  ASSERT_TRUE(rig.Submit(ThreeSamples(2, 12, 2)).ok());
  EXPECT_EQ(Show(rig.Launch()), "1:0+16>1 2:0+12>3");
  EXPECT_TRUE(rig.Launch().empty());
  EXPECT_EQ(rig->Progress(RequestId(2))->costs.preemptions, 1u);
  rig.Land();
  EXPECT_EQ(rig->Progress(RequestId(2))->samples_waiting, 3u);
  EXPECT_EQ(rig->Output(RequestId(2), 2)->size(), 1u);
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 2u);
}

}  // namespace
}  // namespace paged_kv

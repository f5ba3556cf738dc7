// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decode steps allocate no memory, scheduler and cache included.

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler_step_ring.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace {

uint64_t allocations = 0;

void* Allocate(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Out of line: GCC takes free() inlined into a delete expression for a mistake.
[[gnu::noinline]] void Release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t bytes) { return Allocate(bytes); }
void* operator new[](std::size_t bytes) { return Allocate(bytes); }
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete[](void* memory) noexcept { Release(memory); }
void operator delete(void* memory, std::size_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Release(memory); }

namespace paged_kv {
namespace {

TEST(BatchSchedulerAllocationTest, TheCounterWorks) {
  const uint64_t before = allocations;
  const std::vector<int> vector(3);
  EXPECT_EQ(allocations - before, 1u);
}

// Allocations of `steps` steps with all of `sequences` decoding.
uint64_t CountDecode(uint32_t sequences, uint32_t waiting,
                     uint32_t steps_in_flight, int steps) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = steps_in_flight;
  // Room for those that run and no more: the others wait all the time.
  options.growth_reserve_tokens = 1000;
  SchedulerRig rig(SmallCache(sequences * 32, 4), options);
  for (uint32_t id = 0; id < sequences + waiting; ++id) {
    EXPECT_TRUE(rig.Submit(id, 60, 69).ok());
  }
  std::vector<TokenId> sampled(sequences, 1);
  std::vector<StepId> in_flight(2);
  uint64_t launched = 0;
  uint64_t landed = 0;
  const auto step = [&] {
    while (launched - landed < steps_in_flight) {
      const auto scheduled = rig->Schedule();
      if (!scheduled.ok() || scheduled->items.size() != sequences) std::abort();
      in_flight[launched++ % 2] = scheduled->id;
    }
    if (!rig->Complete(in_flight[landed++ % 2], sampled).ok()) std::abort();
  };
  for (int i = 0; i < 4; ++i) step();
  const uint64_t before = allocations;
  for (int i = 0; i < steps; ++i) step();
  const uint64_t counted = allocations - before;
  EXPECT_EQ(rig->Stats().preemptions, 0u);
  EXPECT_EQ(rig->Stats().waiting, waiting);
  return counted;
}

TEST(BatchSchedulerAllocationTest, DecodeStepsAllocateNothing) {
  for (uint32_t steps_in_flight : {1, 2}) {
    EXPECT_EQ(CountDecode(8, 0, steps_in_flight, 50), 0u);
    EXPECT_EQ(CountDecode(8, 3, steps_in_flight, 50), 0u) << "others wait";
  }
}

// Every decode checks drafts, the first of which is right.
TEST(BatchSchedulerAllocationTest, CheckingDraftsAllocatesNothing) {
  constexpr uint32_t kSequences = 8;
  BatchSchedulerOptions options = PlainOptions();
  options.max_draft_tokens = 3;
  SchedulerRig rig(SmallCache(kSequences * 64, 4), options);
  for (uint32_t id = 0; id < kSequences; ++id) {
    ASSERT_TRUE(rig.Submit(id, 60, 190).ok());
  }
  const std::vector<TokenId> drafts = {1, 2, 2};
  const std::vector<TokenId> sampled(kSequences * 4, 1);
  const auto step = [&] {
    for (uint32_t id = 0; id < kSequences; ++id) {
      rig->Propose(RequestId(id), 0, drafts).IgnoreError();
    }
    const auto scheduled = rig->Schedule();
    if (!scheduled.ok() || scheduled->items.size() != kSequences) std::abort();
    if (!rig->Complete(scheduled->id,
                       absl::MakeConstSpan(sampled).first(scheduled->outputs))
             .ok()) {
      std::abort();
    }
  };
  // The first proposals are refused, with a message.
  for (int i = 0; i < 4; ++i) step();
  const uint64_t before = allocations;
  for (int i = 0; i < 50; ++i) step();
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_EQ(rig->Stats().drafted_tokens, 53u * kSequences * 3);
  EXPECT_EQ(rig->Stats().accepted_tokens, 53u * kSequences);
}

// Plain decodes on a device with room for `sequences`, while `parked` others
// wait in host memory for room there.
uint64_t CountDeviceDecode(uint32_t sequences, uint32_t parked, int steps) {
  BatchSchedulerOptions options = PlainOptions();
  options.decode_tier = Tier::kDevice;
  options.growth_reserve_tokens = 1000;
  KvCacheOptions cache = SmallCache((sequences + parked) * 33, 4);
  cache.device.pages = BlockCount(sequences * 33);
  SchedulerRig rig(cache, options);
  for (uint32_t id = 0; id < sequences + parked; ++id) {
    EXPECT_TRUE(rig.Submit(id, 60, 69).ok());
  }
  const std::vector<TokenId> sampled(sequences + parked, 1);
  const auto step = [&] {
    const auto scheduled = rig->Schedule();
    if (!scheduled.ok()) std::abort();
    for (const TierTransfer& transfer : rig->TakeTransfers()) {
      if (!rig->FinishTransfer(transfer.id, true).ok()) std::abort();
    }
    if (scheduled->empty()) return;
    if (!rig->Complete(scheduled->id,
                       absl::MakeConstSpan(sampled).first(scheduled->outputs))
             .ok()) {
      std::abort();
    }
  };
  for (int i = 0; i < 8; ++i) step();
  EXPECT_EQ(rig->Stats().on_device, sequences);
  const uint64_t before = allocations;
  for (int i = 0; i < steps; ++i) step();
  const uint64_t counted = allocations - before;
  EXPECT_EQ(rig->Stats().on_device, sequences);
  EXPECT_EQ(rig->Stats().running, sequences + parked);
  EXPECT_EQ(rig->Stats().preemptions, 0u);
  return counted;
}

TEST(BatchSchedulerAllocationTest, DecodeStepsOnADeviceAllocateNothing) {
  EXPECT_EQ(CountDeviceDecode(8, 0, 50), 0u);
  EXPECT_EQ(CountDeviceDecode(8, 3, 50), 0u) << "others wait";
}

TEST(BatchSchedulerAllocationTest, AStepRingHasRoomForItsStepsFromTheStart) {
  internal::StepRing ring(2, 8);
  const uint64_t before = allocations;
  for (int i = 0; i < 2; ++i) {
    internal::StepInFlight& step = ring.Push();
    for (int item = 0; item < 8; ++item) {
      step.items.emplace_back();
      step.owners.emplace_back();
    }
  }
  EXPECT_EQ(allocations - before, 0u);
}

}  // namespace
}  // namespace paged_kv

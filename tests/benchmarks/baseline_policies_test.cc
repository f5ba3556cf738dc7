// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/tool/baselines/baseline_policy.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/trace.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

Trace MakeTrace(const std::vector<std::pair<uint32_t, uint32_t>>& lengths) {
  Trace trace;
  for (const auto& [prompt, output] : lengths) {
    Request request;
    request.prompt_tokens = prompt;
    request.output_tokens = output;
    trace.requests.push_back(request);
  }
  return trace;
}

void ExpectSlots(const SlotCounts& slots, uint64_t live, uint64_t tail,
                 uint64_t reserved, uint64_t free) {
  EXPECT_EQ(slots.live, live);
  EXPECT_EQ(slots.tail, tail);
  EXPECT_EQ(slots.reserved, reserved);
  EXPECT_EQ(slots.free, free);
  EXPECT_EQ(slots.Total(), live + tail + reserved + free);
}

TEST(BaselinePoliciesTest, ContiguousReservesTheMaximum) {
  const Trace trace = MakeTrace({{10, 5}, {3, 40}, {20, 0}});
  const auto policy = MakeContiguousPolicy(trace, 100);
  ASSERT_TRUE(policy->Admit(0, 10, 4).ok());
  ExpectSlots(policy->Slots(), 4, 0, 39, 57);
  ASSERT_TRUE(policy->Grow(0, 15).ok());
  ExpectSlots(policy->Slots(), 15, 0, 28, 57);
  ASSERT_TRUE(policy->Admit(1, 3, 3).ok());
  ExpectSlots(policy->Slots(), 18, 0, 68, 14);
  EXPECT_EQ(policy->Admit(2, 20, 20).status().code(),
            absl::StatusCode::kResourceExhausted);
  ExpectSlots(policy->Slots(), 18, 0, 68, 14);
  ExpectSlots(policy->Release(0), 15, 0, 28, 0);
  EXPECT_TRUE(policy->Admit(2, 20, 20).ok());
  EXPECT_EQ(MakeContiguousPolicy(trace, 42)->CheckFits(0).code(),
            absl::StatusCode::kOutOfRange);
}

TEST(BaselinePoliciesTest, OracleReservesTheFinalLength) {
  const Trace trace = MakeTrace({{10, 5}, {3, 40}, {20, 0}});
  const auto policy = MakeOraclePolicy(trace, 60);
  ASSERT_TRUE(policy->Admit(0, 10, 10).ok());
  ASSERT_TRUE(policy->Admit(1, 3, 3).ok());
  ExpectSlots(policy->Slots(), 13, 0, 45, 2);
  // 15 + 2 slots are free then, but not in one piece.
  policy->Release(0);
  EXPECT_EQ(policy->AvailableSlots(), 17u);
  EXPECT_EQ(policy->Admit(2, 20, 20).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(policy->Admit(0, 10, 10).ok());
  EXPECT_EQ(MakeOraclePolicy(trace, 42)->CheckFits(1).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(MakeOraclePolicy(trace, 42)->CheckFits(0).ok());
}

TEST(BaselinePoliciesTest, BuddyDoubles) {
  const Trace trace = MakeTrace({{5, 20}, {16, 10}, {40, 30}});
  const auto policy = MakeBuddyPolicy(trace, 64, 4);
  ASSERT_TRUE(policy->Admit(0, 5, 5).ok());  // [0, 8)
  ExpectSlots(policy->Slots(), 5, 3, 0, 56);
  ASSERT_TRUE(policy->Grow(0, 8).ok());
  ExpectSlots(policy->Slots(), 8, 0, 0, 56);
  ASSERT_TRUE(policy->Grow(0, 9).ok());  // over its buddy: [0, 16)
  ExpectSlots(policy->Slots(), 9, 7, 0, 48);
  ASSERT_TRUE(policy->Admit(1, 16, 16).ok());  // [16, 32)
  ASSERT_TRUE(policy->Grow(0, 17).ok());       // moves to [32, 64)
  ExpectSlots(policy->Slots(), 33, 15, 0, 16);
  EXPECT_EQ(policy->Grow(1, 17).code(), absl::StatusCode::kOk);  // [0, 32)
  ExpectSlots(policy->Slots(), 34, 30, 0, 0);
  EXPECT_EQ(policy->CheckFits(2).code(), absl::StatusCode::kOutOfRange);
  ExpectSlots(policy->Release(0), 17, 15, 0, 0);
}

TEST(BaselinePoliciesTest, CellsWasteNothing) {
  const Trace trace = MakeTrace({{5, 20}, {16, 10}, {40, 30}});
  const auto policy = MakeCellsPolicy(trace, 40);
  ASSERT_TRUE(policy->Admit(0, 5, 5).ok());
  ASSERT_TRUE(policy->Admit(1, 16, 16).ok());
  ASSERT_TRUE(policy->Grow(0, 24).ok());
  ExpectSlots(policy->Slots(), 40, 0, 0, 0);
  EXPECT_EQ(policy->Grow(0, 25).code(), absl::StatusCode::kResourceExhausted);
  ExpectSlots(policy->Slots(), 40, 0, 0, 0);
  ExpectSlots(policy->Release(1), 16, 0, 0, 0);
  EXPECT_TRUE(policy->Grow(0, 25).ok());
  EXPECT_EQ(policy->CheckFits(2).code(), absl::StatusCode::kOutOfRange);
}

// A page of 2 MiB holds 2,048 tokens' K (or V) of one layer of Qwen2.5-7B.
TEST(BaselinePoliciesTest, LargePagesMapOnePageInEveryTensor) {
  const Trace trace = MakeTrace({{5, 3000}, {2048, 1}, {5, 5000}});
  const auto policy = MakeLargePagesPolicy(trace, 5000, uint64_t{2} << 20);
  ASSERT_TRUE(policy->Admit(0, 5, 5).ok());
  ExpectSlots(policy->Slots(), 5, 2043, 0, 2952);
  ASSERT_TRUE(policy->Grow(0, 2049).ok());
  ExpectSlots(policy->Slots(), 2049, 2047, 0, 904);
  EXPECT_EQ(policy->AvailableSlots(), 0u);
  EXPECT_EQ(policy->Admit(1, 2048, 2048).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(policy->CheckFits(2).code(), absl::StatusCode::kOutOfRange);
  const auto small = MakeLargePagesPolicy(trace, 5056, uint64_t{64} << 10);
  EXPECT_EQ(small->CheckFits(2).code(), absl::StatusCode::kOk);
  ASSERT_TRUE(small->Admit(0, 5, 5).ok());
  ExpectSlots(small->Slots(), 5, 59, 0, 4992);
}

// How many slots a request of `length` tokens holds, from the definition.
using HeldBy = std::function<uint64_t(const Trace&, size_t, uint32_t)>;

uint64_t PowerOfTwo(uint32_t length) {
  uint64_t size = 16;
  while (size < length) size *= 2;
  return size;
}

struct PolicyCase {
  std::string name;
  std::function<std::unique_ptr<MemoryPolicy>(const Trace&, uint64_t)> make;
  HeldBy held_by;
  // Regions must be in one piece, so a refusal may come with room to spare.
  bool needs_one_piece;
};

std::vector<PolicyCase> Cases() {
  return {
      {"contiguous", MakeContiguousPolicy,
       [](const Trace& t, size_t, uint32_t) { return t.max_total_tokens(); },
       false},
      {"oracle", MakeOraclePolicy,
       [](const Trace& t, size_t r, uint32_t) {
         return t.requests[r].total_tokens();
       },
       true},
      {"buddy",
       [](const Trace& t, uint64_t n) { return MakeBuddyPolicy(t, n, 16); },
       [](const Trace&, size_t, uint32_t length) { return PowerOfTwo(length); },
       true},
      {"cells", MakeCellsPolicy,
       [](const Trace&, size_t, uint32_t length) { return length; }, false},
      {"large_pages_64k",
       [](const Trace& t, uint64_t n) {
         return MakeLargePagesPolicy(t, n, uint64_t{64} << 10);
       },
       [](const Trace&, size_t, uint32_t length) {
         return (length + 63) / 64 * 64;
       },
       false},
  };
}

// Random admissions, growth and releases; every state is recomputed from the
// list of running requests.
TEST(BaselinePoliciesTest, AgreeWithTheirDefinitionsUnderRandomOperations) {
  for (const PolicyCase& c : Cases()) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      Random random(seed);
      std::vector<std::pair<uint32_t, uint32_t>> lengths;
      for (int i = 0; i < 40; ++i) {
        lengths.emplace_back(1 + random.Below(150), random.Below(100));
      }
      const Trace trace = MakeTrace(lengths);
      const uint64_t capacity = 1024;
      const auto policy = c.make(trace, capacity);
      std::map<size_t, uint32_t> running;
      int refused = 0, grown = 0;
      for (int op = 0; op < 3000; ++op) {
        const size_t r = random.Below(40);
        const uint32_t total = trace.requests[r].total_tokens();
        const auto it = running.find(r);
        absl::Status status;
        if (it == running.end()) {
          const uint32_t prompt = trace.requests[r].prompt_tokens;
          const uint32_t chunk = 1 + random.Below(200);
          const auto tokens = policy->Admit(r, prompt, chunk);
          status = tokens.status();
          if (status.ok()) {
            EXPECT_EQ(tokens->cached, 0u);
            EXPECT_EQ(tokens->computed, std::min(prompt, chunk));
            running[r] = tokens->computed;
          }
        } else if (it->second < total && random.Chance(700)) {
          const uint32_t length =
              it->second + 1 + random.Below(total - it->second);
          status = policy->Grow(r, length);
          if (status.ok()) {
            it->second = length;
            ++grown;
          }
        } else {
          const SlotCounts gone = policy->Release(r);
          EXPECT_EQ(gone.live, it->second);
          EXPECT_EQ(gone.Allocated(), c.held_by(trace, r, it->second));
          running.erase(it);
        }
        if (!status.ok()) {
          ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
          ++refused;
        }
        uint64_t live = 0, held = 0;
        for (const auto& [request, length] : running) {
          live += length;
          held += c.held_by(trace, request, length);
        }
        const SlotCounts slots = policy->Slots();
        ASSERT_EQ(slots.live, live);
        ASSERT_EQ(slots.Allocated(), held);
        ASSERT_EQ(slots.Total(), capacity);
        ASSERT_LE(policy->AvailableSlots(), slots.free);
        if (!status.ok() && !c.needs_one_piece) {
          // Refused only for want of memory.
          ASSERT_LT(capacity - held, 250u);
        }
      }
      EXPECT_GT(refused, 20);
      EXPECT_TRUE(grown > 100);
    }
  }
}

}  // namespace
}  // namespace paged_kv::tool

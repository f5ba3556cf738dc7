// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Nothing on the step path allocates memory. The binary counts.

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace {

thread_local uint64_t allocations = 0;
thread_local bool counting = false;

void* CountedAllocate(size_t bytes, size_t alignment) {
  if (counting) ++allocations;
  void* memory = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                     ? std::malloc(bytes == 0 ? 1 : bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) /
                                                         alignment * alignment);
  if (memory == nullptr) std::abort();
  return memory;
}

// Out of line: GCC takes free() inlined into a delete expression for a mistake.
[[gnu::noinline]] void Release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(size_t bytes) { return CountedAllocate(bytes, 1); }
void* operator new[](size_t bytes) { return CountedAllocate(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return CountedAllocate(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return CountedAllocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete[](void* memory) noexcept { Release(memory); }
void operator delete(void* memory, size_t) noexcept { Release(memory); }
void operator delete[](void* memory, size_t) noexcept { Release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  Release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  Release(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  Release(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  Release(memory);
}

namespace paged_kv {
namespace {

// Allocations of `call`.
template <typename Call>
uint64_t Allocations(Call call) {
  const uint64_t before = allocations;
  counting = true;
  call();
  counting = false;
  return allocations - before;
}

TEST(AllocationTest, TheCounterCounts) {
  EXPECT_GT(Allocations([] { std::vector<int> v(100); }), 0u);
  EXPECT_EQ(Allocations([] {}), 0u);
}

struct Shape {
  const char* name;
  KvCacheOptions options;
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  shapes.push_back({"plain", PoolOptions(64, 4)});
  shapes.push_back({"window", PoolOptions(64, 4, 12, 4)});
  KvCacheOptions groups = PoolOptions(64, 4);
  for (uint32_t i = 1; i < 6; ++i) {
    groups.groups.push_back(groups.groups[0]);
    groups.groups[i].shape.block_tokens = i % 2 == 0 ? 4 : 8;
    groups.groups[i].shape.kv_heads = i;
    groups.groups[i].window = 4 * i;
  }
  shapes.push_back({"six groups", groups});
  KvCacheOptions events = PoolOptions(64, 4);
  events.event_capacity = 16;
  shapes.push_back({"events", events});
  KvCacheOptions flights = PoolOptions(64, 4);
  flights.max_steps_in_flight = 3;
  flights.eviction = &MakeSegmentedLruPolicy;
  shapes.push_back({"segmented LRU", flights});
  return shapes;
}

// Everything that the calls need is made before they are counted.
struct Engine {
  explicit Engine(const KvCacheOptions& options)
      : cache(*KvCacheManager::Create(options)) {
    for (int32_t i = 0; i < 8; ++i) {
      prompts.push_back(Text(i % 3, 22 + static_cast<uint32_t>(i)));
    }
    drafts = Text(7, 2);
    extras = {Salt("tenant"), Content(TokenPos(9), "an image's hash")};
    indptr.resize(64);
    pages.resize(4096);
    last.resize(64);
    first.resize(64);
    slots.resize(4096);
    padded.resize(64 * 64);
    tokens.resize(64);
  }

  // One round: every call of the step path. (A refusal carries a message,
  // which is allocated.)
  void Round() {
    // Now a prompt of before, now one that was never seen.
    if (round % 2 == 0) {
      prompts[round % prompts.size()][0] = static_cast<TokenId>(round);
    }
    StepRequest requests[3];
    for (int i = 0; i < 2; ++i) {
      requests[i] =
          StepRequest::Admit(prompts[(round + i) % prompts.size()], extras);
    }
    auto plan = cache->Plan({requests, 2});
    ok = ok && plan.ok();
    if (!ok) return;
    auto step = cache->Commit(*std::move(plan));
    ok = ok && step.ok();
    const SequenceId a = cache->View(*step)->sequences[0].id;
    const SequenceId b = cache->View(*step)->sequences[1].id;
    Export(*step);
    ok = ok && cache->MarkWritten(*step, 0).ok();
    ok = ok && cache->Retire(*step).ok();
    auto child = cache->Fork(a);
    ok = ok && child.ok();

    requests[0] = StepRequest::Extend(a, TokenCount(2));
    requests[1] = StepRequest::Extend(b, prompts[0]);
    requests[2] = StepRequest::Extend(*child, TokenCount(1));
    requests[2].lookahead = TokenCount(3);
    auto second = cache->Plan({requests, 3});
    ok = ok && second.ok();
    if (!ok) return;
    step = cache->Commit(*std::move(second));
    Export(*step);
    ok = ok && cache->Free(b).ok();  // into quarantine
    ok = ok && cache->Retire(*step).ok();
    const auto known = cache->Describe(a)->known;
    ok = ok && cache->SetTokens(a, TokenPos(known.value()), drafts).ok();
    const TokenPos next(cache->Describe(*child)->known.value());
    ok = ok && cache->SetTokens(*child, next, {drafts.data(), 1}).ok();
    ok = ok && cache->Accept(*child, drafts).ok();
    const TokenCount accepted = cache->Describe(*child)->tokens;
    ok = ok && cache->Truncate(*child, accepted - TokenCount(1)).ok();
    const auto appended = cache->Append(*child, drafts);
    ok = ok && appended.ok() && cache->Retire(appended->step).ok();
    auto pin = cache->Pin(prompts[0], extras);
    if (pin.ok()) ok = ok && cache->Unpin(*pin).ok();
    ok = ok && cache->Free(a).ok() && cache->Free(*child).ok();
    CacheEvent events[4];
    cache->DrainEvents(events);
    ++round;
  }

  void Export(StepId step) {
    for (uint32_t g = 0; g < cache->options().groups.size(); ++g) {
      ok = ok && cache->TableSize(step, GroupId(g)).ok();
      ok = ok &&
           cache
               ->ExportPageTable(step, GroupId(g),
                                 {absl::MakeSpan(indptr), absl::MakeSpan(pages),
                                  absl::MakeSpan(last), absl::MakeSpan(first)})
               .ok();
      ok = ok &&
           cache->ExportSlotMapping(step, GroupId(g), absl::MakeSpan(slots))
               .ok();
      PaddedPageTableBuffers buffers;
      buffers.page_indices = absl::MakeSpan(padded);
      buffers.tokens = absl::MakeSpan(tokens);
      buffers.first_token = absl::MakeSpan(first);
      buffers.width = 20;
      ok = ok && cache->ExportPaddedPageTable(step, GroupId(g), buffers).ok();
    }
  }

  std::unique_ptr<KvCacheManager> cache;
  std::vector<std::vector<TokenId>> prompts;
  std::vector<TokenId> drafts;
  std::vector<KeyExtra> extras;
  std::vector<int32_t> indptr, pages, last, first, padded, tokens;
  std::vector<int64_t> slots;
  size_t round = 0;
  bool ok = true;
};

TEST(AllocationTest, TheStepPathAllocatesNothing) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape.name);
    Engine engine(shape.options);
    // From the first call on, through a pool that fills up and evicts.
    for (int round = 0; round < 60; ++round) {
      const uint64_t count = Allocations([&] { engine.Round(); });
      ASSERT_TRUE(engine.ok) << "round " << round;
      EXPECT_EQ(count, 0u) << "round " << round;
    }
    EXPECT_GT(engine.cache->Stats().blocks_evicted, 0u);
    EXPECT_GT(engine.cache->Stats().blocks_copied, 0u);
    EXPECT_GT(engine.cache->Stats().hit_tokens, 0u);
    EXPECT_TRUE(engine.cache->CheckInvariants().ok());
  }
}

}  // namespace
}  // namespace paged_kv

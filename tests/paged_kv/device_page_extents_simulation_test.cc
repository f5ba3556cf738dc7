// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How long the extents of sequences are after much coming and going, with the
// allocator that prefers extents and with a plain list of free pages, last in
// first out. One descriptor of a DMA moves one extent.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/device_page_pool.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::internal {
namespace {

constexpr uint32_t kBlockTokens = 16;

struct Request {
  uint32_t prompt_tokens;
  uint32_t output_tokens;
};

// Lengths like those of the Azure conversation trace (Patel et al. 2024,
// "Splitwise", table 2): medians of 1,020 prompt and 129 output tokens, with a
// long tail.
std::vector<Request> MakeRequests(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> prompt(std::log(1020.0), 1.0);
  std::lognormal_distribution<double> output(std::log(129.0), 0.9);
  std::vector<Request> requests(count);
  for (Request& request : requests) {
    request.prompt_tokens =
        static_cast<uint32_t>(std::clamp(prompt(random), 8.0, 8000.0));
    request.output_tokens =
        static_cast<uint32_t>(std::clamp(output(random), 1.0, 2000.0));
  }
  return requests;
}

// The trace itself, where there is a copy: TIMESTAMP,ContextTokens,
// GeneratedTokens.
std::vector<Request> ReadTrace(size_t count) {
  const char* folder = std::getenv("PAGED_KV_SHARED_DIR");
  std::vector<Request> requests;
  if (folder == nullptr) return requests;
  std::ifstream file(std::string(folder) +
                     "/traces/AzureLLMInferenceTrace_conv_2023.csv");
  std::string line;
  std::getline(file, line);
  while (requests.size() < count && std::getline(file, line)) {
    unsigned prompt = 0, output = 0;
    if (std::sscanf(line.c_str(), "%*[^,],%u,%u", &prompt, &output) == 2) {
      requests.push_back({std::max(prompt, 1u), std::max(output, 1u)});
    }
  }
  return requests;
}

// A free list like those of most page allocators.
class LifoPool {
 public:
  explicit LifoPool(uint32_t pages) : free_(pages) {
    std::iota(free_.rbegin(), free_.rend(), 0u);
  }
  uint32_t free(uint32_t) const { return static_cast<uint32_t>(free_.size()); }
  uint32_t Take(uint32_t, uint32_t, uint32_t) {
    const uint32_t page = free_.back();
    free_.pop_back();
    return page;
  }
  void Give(uint32_t page) { free_.push_back(page); }

 private:
  std::vector<uint32_t> free_;
};

struct Sequence {
  uint32_t tokens;
  uint32_t final_tokens;
  std::vector<uint32_t> pages;
};

uint64_t Extents(const std::vector<uint32_t>& pages) {
  uint64_t extents = pages.empty() ? 0 : 1;
  for (size_t i = 1; i < pages.size(); ++i) {
    extents += pages[i] != pages[i - 1] + 1 ? 1 : 0;
  }
  return extents;
}

// Serves the requests with continuous batching: whoever fits with `reserve`
// pages left joins, each step adds one token to all, whoever is done leaves.
// Returns pages per extent over all steps.
template <typename Pool>
double PagesPerExtent(Pool* pool, const std::vector<Request>& requests,
                      uint32_t reserve) {
  std::vector<Sequence> running;
  uint64_t pages = 0, extents = 0;
  const auto grow = [&](Sequence* sequence) {
    const uint32_t need = (sequence->tokens + kBlockTokens - 1) / kBlockTokens;
    while (sequence->pages.size() < need && pool->free(0) > 0) {
      const uint32_t last =
          sequence->pages.empty() ? kNoPage : sequence->pages.back();
      const auto run = need - static_cast<uint32_t>(sequence->pages.size());
      sequence->pages.push_back(pool->Take(0, last, run));
    }
    return sequence->pages.size() == need;
  };
  const auto leave = [&](Sequence* sequence) {
    for (size_t i = sequence->pages.size(); i-- > 0;) {
      pool->Give(sequence->pages[i]);
    }
    sequence->pages.clear();
  };
  size_t next = 0;
  while (next < requests.size()) {
    for (; next < requests.size(); ++next) {
      const Request& request = requests[next];
      const uint32_t need =
          (request.prompt_tokens + kBlockTokens - 1) / kBlockTokens;
      if (need + reserve > pool->free(0)) break;
      running.push_back({request.prompt_tokens,
                         request.prompt_tokens + request.output_tokens,
                         {}});
      grow(&running.back());
    }
    for (size_t i = 0; i < running.size();) {
      Sequence& sequence = running[i];
      ++sequence.tokens;
      // One that finds no page gives up, as if it were preempted.
      if (sequence.tokens < sequence.final_tokens && grow(&sequence)) {
        pages += sequence.pages.size();
        extents += Extents(sequence.pages);
        ++i;
        continue;
      }
      leave(&sequence);
      std::swap(sequence, running.back());
      running.pop_back();
    }
  }
  return static_cast<double>(pages) / static_cast<double>(extents);
}

void ExpectLongerExtents(const std::vector<Request>& requests, uint32_t pages,
                         double factor) {
  DevicePagePool extents;
  ASSERT_TRUE(extents.Create(pages, 1).ok());
  LifoPool lifo(pages);
  const uint32_t reserve = pages / 20;
  const double with_extents = PagesPerExtent(&extents, requests, reserve);
  const double with_lifo = PagesPerExtent(&lifo, requests, reserve);
  std::printf("%u pages: %.1f pages per extent, last in first out %.1f\n",
              pages, with_extents, with_lifo);
  EXPECT_GE(with_extents, factor * with_lifo);
  EXPECT_TRUE(extents.CheckInvariants().ok());
}

TEST(DevicePageExtentsSimulationTest, LengthsLikeTheConversationTrace) {
  const uint64_t seed = TestSeed(1);
  for (uint32_t pages : {2048u, 8192u, 32768u}) {
    ExpectLongerExtents(MakeRequests(seed, 4000), pages, 4.0);
  }
}

TEST(DevicePageExtentsSimulationTest, ConversationTrace) {
  const std::vector<Request> requests = ReadTrace(19366);
  if (requests.empty()) {
    GTEST_SKIP() << "no traces/AzureLLMInferenceTrace_conv_2023.csv in "
                    "PAGED_KV_SHARED_DIR";
  }
  for (uint32_t pages : {2048u, 8192u, 32768u}) {
    ExpectLongerExtents(requests, pages, 4.0);
  }
}

}  // namespace
}  // namespace paged_kv::internal

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <map>
#include <memory>

#include "benchmarks/paged_kv/cost_case.h"
#include "benchmarks/paged_kv/eviction_caches.h"
#include "benchmarks/paged_kv/eviction_stream.h"
#include "paged_kv/check.h"

namespace paged_kv::benchmarks {
namespace {

constexpr size_t kBytesPerBlock = 64 + kBlockTokens * sizeof(TokenId);

// What the evictions of a stream's first documents were, by pool size. Times of
// caches that do not evict the same blocks would not be comparable.
constexpr uint64_t kComparedDocuments = 25;
void CompareEvictions(uint32_t blocks, uint64_t evicted) {
  static auto* const seen = new std::map<uint32_t, uint64_t>;
  const auto [it, added] = seen->try_emplace(blocks, evicted);
  PAGED_KV_CHECK(added || it->second == evicted);
}

template <typename Cache>
class EvictionCase final : public CostCase {
 public:
  explicit EvictionCase(uint32_t blocks)
      : blocks_(blocks), cache_(blocks), stream_(&cache_, blocks) {}

  size_t footprint_bytes() const override { return blocks_ * kBytesPerBlock; }
  int batch() const override { return int{EvictionStream<Cache>::kChain}; }
  void Prepare() override {
    if (documents_++ == kComparedDocuments) {
      CompareEvictions(blocks_, stream_.evicted());
    }
    stream_.PrepareDocument();
  }
  void Run() override { stream_.Evict(); }

 private:
  uint32_t blocks_;
  uint64_t documents_ = 0;
  Cache cache_;
  EvictionStream<Cache> stream_;
};

}  // namespace

std::unique_ptr<CostCase> MakeEviction(uint32_t blocks) {
  return std::make_unique<EvictionCase<PagedCache>>(blocks);
}

std::unique_ptr<CostCase> MakeNaiveEviction(uint32_t blocks) {
  return std::make_unique<EvictionCase<NaiveCache>>(blocks);
}

}  // namespace paged_kv::benchmarks

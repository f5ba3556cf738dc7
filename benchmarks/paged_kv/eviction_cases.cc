// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>

#include "benchmarks/paged_kv/cost_case.h"
#include "benchmarks/paged_kv/eviction_caches.h"
#include "benchmarks/paged_kv/eviction_stream.h"

namespace paged_kv::benchmarks {
namespace {

constexpr size_t kBytesPerBlock = 64 + kBlockTokens * sizeof(TokenId);

template <typename Cache>
class EvictionCase final : public CostCase {
 public:
  explicit EvictionCase(uint32_t blocks)
      : footprint_bytes_(blocks * kBytesPerBlock),
        cache_(blocks),
        stream_(&cache_, blocks) {}

  size_t footprint_bytes() const override { return footprint_bytes_; }
  int batch() const override { return int{EvictionStream<Cache>::kChain}; }
  void Prepare() override { stream_.PrepareDocument(); }
  void Run() override { stream_.Evict(); }

 private:
  size_t footprint_bytes_;
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

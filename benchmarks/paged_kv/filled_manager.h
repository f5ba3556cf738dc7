// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_FILLED_MANAGER_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_FILLED_MANAGER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv::benchmarks {

// A manager whose blocks all hold cached content and none is free: the state
// of a cache that has been in use for a while. Made through the public calls:
// sequences of 128 blocks grow side by side in random order, so that the
// blocks of each lie scattered over the pool, then are freed in random order.
class FilledManager {
 public:
  static constexpr uint32_t kSequenceBlocks = 128;

  explicit FilledManager(uint32_t blocks);

  KvCacheManager& cache() { return *cache_; }
  size_t footprint_bytes() const { return footprint_bytes_; }

  // Texts 0 to cached_texts() - 1 are cached with kSequenceBlocks blocks each,
  // until evicted; some blocks of other content are older than all of them.
  uint32_t cached_texts() const { return cached_texts_; }
  // The number of a text that the cache has never seen.
  uint64_t NewText() { return next_text_++; }

  // Calls that cannot be refused here.
  Admission Allocate(absl::Span<const TokenId> prompt);
  void Retire(StepId step);
  void Free(SequenceId id);
  // Plans and commits.
  StepId Step(absl::Span<const StepRequest> requests);

 private:
  void Grow();
  void FillRest();

  size_t footprint_bytes_;
  uint32_t cached_texts_;
  uint64_t next_text_;
  std::unique_ptr<KvCacheManager> cache_;
};

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_FILLED_MANAGER_H_

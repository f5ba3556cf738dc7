// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "benchmarks/paged_kv/manager_case.h"
#include "paged_kv/check.h"

namespace paged_kv::benchmarks {
namespace {

// Prompts that continue a cached text by one token, all texts in turn, in
// random order. With a large pool, nothing of the text is in the processor's
// caches.
class HitCase : public ManagerCase {
 public:
  explicit HitCase(uint32_t blocks)
      : ManagerCase(blocks), texts_(manager().cached_texts()) {
    std::iota(texts_.begin(), texts_.end(), 0u);
    std::shuffle(texts_.begin(), texts_.end(), std::mt19937_64(1));
  }

  // No two of a batch are of one text: a hit on blocks that are held already
  // is a cheaper one.
  int batch() const override { return 4; }
  int units() const override { return FilledManager::kSequenceBlocks; }
  void Prepare() override {
    StartPrompts(batch(), kCachedTokens + 1);
    for (int i = 0; i < batch(); ++i) {
      FillText(texts_[next_text_], 0, MutablePrompt(i));
      next_text_ = (next_text_ + 1) % texts_.size();
    }
    next_ = 0;
  }

 protected:
  static constexpr uint32_t kCachedTokens =
      FilledManager::kSequenceBlocks * kBlockTokens;

  absl::Span<const TokenId> NextPrompt() { return Prompt(next_++); }

 private:
  std::vector<uint32_t> texts_;
  size_t next_text_ = 0;
  int next_ = 0;
};

class LookupCase final : public HitCase {
 public:
  using HitCase::HitCase;
  void Run() override {
    const auto prefix = manager().cache().Lookup(NextPrompt());
    PAGED_KV_CHECK(prefix.ok() && prefix->hit_tokens.value() == kCachedTokens);
  }
};

class AdmitHitCase final : public HitCase {
 public:
  using HitCase::HitCase;
  void Run() override {
    const Admission admission = manager().Allocate(NextPrompt());
    PAGED_KV_CHECK(admission.cached_tokens.value() == kCachedTokens);
    manager().Retire(admission.step);
    living_.push_back(admission.id);
  }
  void Finish() override {
    for (SequenceId id : living_) manager().Free(id);
    living_.clear();
  }

 private:
  std::vector<SequenceId> living_;
};

}  // namespace

std::unique_ptr<CostCase> MakeLookup(uint32_t blocks) {
  return std::make_unique<LookupCase>(blocks);
}

std::unique_ptr<CostCase> MakeHit(uint32_t blocks) {
  return std::make_unique<AdmitHitCase>(blocks);
}

}  // namespace paged_kv::benchmarks

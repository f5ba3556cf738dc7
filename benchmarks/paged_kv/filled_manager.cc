// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/paged_kv/filled_manager.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "benchmarks/paged_kv/cost_case.h"
#include "benchmarks/paged_kv/token_content.h"
#include "paged_kv/check.h"

namespace paged_kv::benchmarks {
namespace {

// Blocks of no cached text: the first to be evicted, so that the texts stay
// whole while a case holds a few blocks.
constexpr uint32_t kOtherBlocks = 104;
constexpr uint32_t kStepSequences = 256;

}  // namespace

FilledManager::FilledManager(uint32_t blocks)
    : footprint_bytes_(size_t{blocks} * (64 + kBlockTokens * sizeof(TokenId))),
      cached_texts_((blocks - kOtherBlocks) / kSequenceBlocks),
      next_text_(cached_texts_) {
  PAGED_KV_CHECK(blocks >= kOtherBlocks + kSequenceBlocks);
  KvCacheOptions options;
  LayerGroup group;
  group.shape.block_tokens = kBlockTokens;
  options.groups = {group};
  options.host_blocks = BlockCount(blocks);
  options.max_sequences = cached_texts_ + 2 * kStepSequences;
  options.max_tokens_per_sequence = (kSequenceBlocks + 4) * kBlockTokens;
  options.hash_seed = 1;
  auto cache = KvCacheManager::Create(options);
  PAGED_KV_CHECK(cache.ok());
  cache_ = *std::move(cache);
  Grow();
}

void FilledManager::Grow() {
  std::mt19937_64 random(1);
  std::vector<uint32_t> texts(cached_texts_);
  std::iota(texts.begin(), texts.end(), 0u);
  std::vector<SequenceId> ids(cached_texts_);
  std::vector<TokenId> tokens(kStepSequences * kBlockTokens);
  std::vector<StepRequest> requests;
  for (uint32_t block = 0; block < kSequenceBlocks; ++block) {
    std::shuffle(texts.begin(), texts.end(), random);
    for (size_t begin = 0; begin < texts.size(); begin += kStepSequences) {
      const size_t end = std::min(texts.size(), begin + kStepSequences);
      requests.clear();
      for (size_t i = begin; i < end; ++i) {
        const auto values = absl::MakeSpan(tokens).subspan(
            (i - begin) * kBlockTokens, kBlockTokens);
        FillText(texts[i], block * kBlockTokens, values);
        requests.push_back(block == 0
                               ? StepRequest::Admit(values)
                               : StepRequest::Extend(ids[texts[i]], values));
      }
      const StepId step = Step(requests);
      const auto view = cache_->View(step);
      for (size_t i = begin; i < end; ++i) {
        ids[texts[i]] = view->sequences[i - begin].id;
      }
      Retire(step);
    }
  }
  FillRest();
  std::shuffle(texts.begin(), texts.end(), random);
  for (uint32_t text : texts) Free(ids[text]);
}

void FilledManager::FillRest() {
  std::vector<SequenceId> ids;
  TokenId tokens[kBlockTokens];
  while (cache_->AvailableBlocks(GroupId(0)).value() > 0) {
    FillText(NewText(), 0, absl::MakeSpan(tokens));
    const Admission admission = Allocate(tokens);
    Retire(admission.step);
    ids.push_back(admission.id);
  }
  for (SequenceId id : ids) Free(id);
}

Admission FilledManager::Allocate(absl::Span<const TokenId> prompt) {
  const auto admission = cache_->Allocate(prompt);
  PAGED_KV_CHECK(admission.ok());
  return *admission;
}

void FilledManager::Retire(StepId step) {
  PAGED_KV_CHECK(cache_->Retire(step).ok());
}

void FilledManager::Free(SequenceId id) {
  PAGED_KV_CHECK(cache_->Free(id).ok());
}

StepId FilledManager::Step(absl::Span<const StepRequest> requests) {
  auto plan = cache_->Plan(requests);
  PAGED_KV_CHECK(plan.ok());
  const auto step = cache_->Commit(*std::move(plan));
  PAGED_KV_CHECK(step.ok());
  return *step;
}

}  // namespace paged_kv::benchmarks

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/paged_policy.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "benchmarks/tool/token_source.h"
#include "paged_kv/check.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr GroupId kGroup(0);

class PagedPolicy : public MemoryPolicy {
 public:
  PagedPolicy(const PolicyOptions& options, const Trace& trace,
              TokenSource tokens, std::unique_ptr<KvCacheManager> cache)
      : name_(PolicyName(options.kind)),
        block_tokens_(options.block_tokens),
        blocks_(cache->PoolBlocks(kGroup).value()),
        trace_(&trace),
        tokens_(std::move(tokens)),
        cache_(std::move(cache)) {}

  absl::string_view name() const override { return name_; }
  uint64_t capacity_slots() const override { return blocks_ * block_tokens_; }

  absl::Status CheckFits(size_t request) const override {
    const uint64_t total = trace_->requests[request].total_tokens();
    const uint64_t blocks = (total + block_tokens_ - 1) / block_tokens_;
    if (blocks <= blocks_) return absl::OkStatus();
    return absl::OutOfRangeError(absl::StrCat("request ", request,
                                              " never fits: it needs ", blocks,
                                              " blocks of ", blocks_));
  }

  absl::StatusOr<AdmittedTokens> Admit(size_t request, uint32_t prompt,
                                       uint32_t chunk) override {
    PAGED_KV_CHECK(!running_.contains(request));
    PAGED_KV_RETURN_IF_ERROR(CheckFits(request));
    StepRequest admit = StepRequest::Admit(Tokens(request, 0, prompt));
    admit.new_tokens = TokenCount(chunk);
    PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, cache_->Plan({&admit, 1}));
    const PlannedSequence planned = plan.view().sequences[0];
    PAGED_KV_RETURN_IF_ERROR(Run(std::move(plan)));
    running_[request] = {planned.id, planned.Context().value(), prompt};
    return AdmittedTokens{planned.cached_tokens.value(),
                          planned.new_tokens.value()};
  }

  absl::Status Grow(size_t request, uint32_t length) override {
    const auto it = running_.find(request);
    PAGED_KV_CHECK(it != running_.end());
    Running& running = it->second;
    PAGED_KV_CHECK(length > running.length);
    StepRequest extend =
        StepRequest::Extend(running.id, TokenCount(length - running.length));
    // The values of an admitted prompt are known already.
    if (length > running.known) {
      extend.tokens = Tokens(request, running.known, length);
    }
    PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, cache_->Plan({&extend, 1}));
    PAGED_KV_RETURN_IF_ERROR(Run(std::move(plan)));
    running.length = length;
    running.known = std::max(running.known, length);
    return absl::OkStatus();
  }

  SlotCounts Release(size_t request) override {
    const auto it = running_.find(request);
    PAGED_KV_CHECK(it != running_.end());
    const SequenceId id = it->second.id;
    running_.erase(it);
    const uint64_t held =
        cache_->BlockTable(id, kGroup)->size() * block_tokens_;
    // What the pool's states lose with the sequence were its own; the rest of
    // what it held is live in others too.
    const SlotCounts before = Slots();
    PAGED_KV_CHECK(cache_->Free(id).ok());
    const SlotCounts after = Slots();
    SlotCounts counts;
    counts.tail = before.tail - after.tail;
    counts.reserved = before.reserved - after.reserved;
    counts.live = held - counts.tail - counts.reserved;
    return counts;
  }

  uint64_t SlotsToAdmit(size_t request, uint32_t prompt) const override {
    const absl::StatusOr<Prefix> prefix =
        cache_->Lookup(Tokens(request, 0, prompt));
    return prompt - (prefix.ok() ? prefix->hit_tokens.value() : 0);
  }

  uint64_t AvailableSlots() const override {
    return uint64_t{cache_->AvailableBlocks(kGroup).value()} * block_tokens_;
  }

  SlotCounts Slots() const override { return cache_->Stats().pools[0].slots; }

  uint64_t evicted_blocks() const override {
    return cache_->Stats().blocks_evicted;
  }

 private:
  struct Running {
    SequenceId id;
    uint32_t length = 0;  // computed
    uint32_t known = 0;   // whose values the manager has
  };

  absl::Status Run(StepPlan plan) {
    PAGED_KV_ASSIGN_OR_RETURN(const StepId step,
                              cache_->Commit(std::move(plan)));
    return cache_->Retire(step);
  }

  // Valid until the next call.
  absl::Span<const TokenId> Tokens(size_t request, uint32_t first,
                                   uint32_t end) const {
    buffer_.resize(std::max<size_t>(buffer_.size(), end - first));
    const absl::Span<TokenId> tokens(buffer_.data(), end - first);
    tokens_.Fill(request, first, tokens);
    return tokens;
  }

  const absl::string_view name_;
  const uint64_t block_tokens_;
  const uint64_t blocks_;
  const Trace* trace_;
  const TokenSource tokens_;
  const std::unique_ptr<KvCacheManager> cache_;
  absl::flat_hash_map<size_t, Running> running_;
  mutable std::vector<TokenId> buffer_;
};

}  // namespace

KvCacheOptions ManagerOptions(const Trace& trace, uint32_t blocks,
                              uint32_t block_tokens, Eviction eviction,
                              bool share) {
  LayerGroup group;
  group.shape.layers = 28;
  group.shape.kv_heads = 4;
  group.shape.head_dim = 128;
  group.shape.block_tokens = block_tokens;
  group.shape.dtype = DType::kBF16;
  KvCacheOptions options;
  options.groups = {group};
  options.host_blocks = BlockCount(blocks);
  options.max_sequences = 1024;
  options.max_tokens_per_sequence = trace.max_total_tokens();
  options.max_steps_in_flight = 1;
  options.prefix_caching = share;
  options.eviction =
      eviction == Eviction::kLru ? &MakeLruPolicy : &MakeSegmentedLruPolicy;
  options.hash_seed = 1;  // a replay is to be repeatable
  return options;
}

absl::StatusOr<std::unique_ptr<MemoryPolicy>> MakePagedPolicy(
    const PolicyOptions& options, const Trace& trace) {
  const uint64_t blocks = options.capacity_slots / options.block_tokens;
  if (blocks > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pool of ", blocks, " blocks is above the limit of ",
                     std::numeric_limits<int32_t>::max()));
  }
  PAGED_KV_ASSIGN_OR_RETURN(TokenSource tokens, TokenSource::Create(trace));
  PAGED_KV_ASSIGN_OR_RETURN(
      std::unique_ptr<KvCacheManager> cache,
      KvCacheManager::Create(ManagerOptions(
          trace, static_cast<uint32_t>(blocks), options.block_tokens,
          options.eviction, options.kind == PolicyKind::kPaged)));
  return std::make_unique<PagedPolicy>(options, trace, std::move(tokens),
                                       std::move(cache));
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How an engine embeds PagedKV: two prompts that share a prefix are prefilled,
// one is forked, and all decode together. The "model" is a function that makes
// up Q, K and V, so that every attention result can be checked at the end.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/append_kv.h"
#include "attention/copy_blocks.h"
#include "attention/paged_prefill.h"
#include "attention/parallel_for.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/status_macros.h"

namespace {

using paged_kv::BlockCopy;
using paged_kv::GroupId;
using paged_kv::KvCacheManager;
using paged_kv::KvCacheOptions;
using paged_kv::PageTable;
using paged_kv::PlannedSequence;
using paged_kv::SequenceId;
using paged_kv::StepId;
using paged_kv::StepPlan;
using paged_kv::StepRequest;
using paged_kv::StepView;
using paged_kv::TokenId;

constexpr uint32_t kLayers = 2;
constexpr uint32_t kQueryHeads = 4;
constexpr uint32_t kKvHeads = 2;
constexpr uint32_t kHeadDim = 64;
constexpr GroupId kGroup{0};

// The stand-in for a model's projections: one value of Q, K or V.
float Project(int which, TokenId token, uint32_t position, uint32_t layer,
              uint32_t head, uint32_t dim) {
  return std::sin(0.1f * static_cast<float>(which * 7 + token * 3 +
                                            static_cast<int>(layer * 5 + head) +
                                            static_cast<int>(position)) +
                  0.3f * static_cast<float>(dim));
}

// Rows [tokens, heads, kHeadDim] of Q, K or V.
std::vector<float> ProjectRows(int which, const std::vector<TokenId>& tokens,
                               const std::vector<uint32_t>& positions,
                               uint32_t layer, uint32_t heads) {
  std::vector<float> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (uint32_t head = 0; head < heads; ++head) {
      for (uint32_t dim = 0; dim < kHeadDim; ++dim) {
        rows.push_back(
            Project(which, tokens[i], positions[i], layer, head, dim));
      }
    }
  }
  return rows;
}

// Attention of the last token over the whole history, without any cache.
double ReferenceValue(const std::vector<TokenId>& history, uint32_t layer,
                      uint32_t query_head, uint32_t dim) {
  const auto last = static_cast<uint32_t>(history.size() - 1);
  const uint32_t head = query_head / (kQueryHeads / kKvHeads);
  double sum = 0, weighted = 0;
  for (uint32_t p = 0; p <= last; ++p) {
    double score = 0;
    for (uint32_t d = 0; d < kHeadDim; ++d) {
      score += double{Project(0, history[last], last, layer, query_head, d)} *
               double{Project(1, history[p], p, layer, head, d)};
    }
    const double weight = std::exp(score / std::sqrt(double{kHeadDim}));
    sum += weight;
    weighted += weight * double{Project(2, history[p], p, layer, head, dim)};
  }
  return weighted / sum;
}

class Engine {
 public:
  static absl::StatusOr<std::unique_ptr<Engine>> Create() {
    KvCacheOptions options;
    paged_kv::LayerGroup group;
    group.shape.layers = kLayers;
    group.shape.kv_heads = kKvHeads;
    group.shape.head_dim = kHeadDim;
    group.shape.block_tokens = 16;
    group.shape.dtype = paged_kv::DType::kF32;
    options.groups = {group};
    options.host_blocks = paged_kv::BlockCount(64);
    options.max_sequences = 8;
    options.max_tokens_per_sequence = 512;
    options.memory = paged_kv::MemoryMode::kOwnMemory;
    PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<KvCacheManager> cache,
                              KvCacheManager::Create(options));
    PAGED_KV_ASSIGN_OR_RETURN(const paged_kv::PageLayout layout,
                              cache->Layout(kGroup));
    return std::unique_ptr<Engine>(new Engine(
        std::move(cache), {group.shape, layout, options.host_blocks.value()}));
  }

  // One forward pass; returns the ids of its sequences.
  absl::StatusOr<std::vector<SequenceId>> Step(
      const std::vector<StepRequest>& requests) {
    // [README]
    PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, cache_->Plan(requests));
    PAGED_KV_ASSIGN_OR_RETURN(StepId step, cache_->Commit(std::move(plan)));
    PAGED_KV_ASSIGN_OR_RETURN(StepView view, cache_->View(step));
    PAGED_KV_ASSIGN_OR_RETURN(StepInputs in, ExportInputs(step, view));
    PAGED_KV_RETURN_IF_ERROR(CopyBlocks(pages_, in.copies, threads_));
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      const auto k = ProjectRows(1, in.tokens, in.positions, layer, kKvHeads);
      const auto v = ProjectRows(2, in.tokens, in.positions, layer, kKvHeads);
      PAGED_KV_RETURN_IF_ERROR(
          AppendKv(pages_, layer, {k.data()}, {v.data()}, in.slots, threads_));
      const auto q =
          ProjectRows(0, in.tokens, in.positions, layer, kQueryHeads);
      std::vector<float> out(q.size());
      PAGED_KV_RETURN_IF_ERROR(
          PagedPrefill({pages_, layer, in.table, kQueryHeads, q}, in.qo_indptr,
                       {}, {absl::MakeSpan(out), {}}, threads_));
      Check(view, in.qo_indptr, layer, out);
    }
    const std::vector<SequenceId> ids = Report(view);
    PAGED_KV_RETURN_IF_ERROR(cache_->Retire(step));
    // [/README]
    return ids;
  }

  KvCacheManager& cache() { return *cache_; }
  double max_error() const { return max_error_; }

 private:
  Engine(std::unique_ptr<KvCacheManager> cache,
         const paged_kv::attention::KvPages& pages)
      : cache_(std::move(cache)), pages_(pages) {}

  // What a step's kernels read, in the order of its sequences.
  struct StepInputs {
    std::vector<TokenId> tokens;        // to compute
    std::vector<uint32_t> positions;    // of these
    std::vector<int32_t> qo_indptr{0};  // rows of each sequence
    std::vector<int64_t> slots;         // where their K/V goes
    std::vector<paged_kv::attention::PageCopy> copies;
    std::vector<int32_t> indptr, page_indices, last_page_tokens, first_token;
    PageTable table;  // over these four
  };

  absl::StatusOr<StepInputs> ExportInputs(StepId step, const StepView& view) {
    StepInputs in;
    for (const PlannedSequence& sequence : view.sequences) {
      PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const TokenId> history,
                                cache_->Tokens(sequence.id));
      for (uint32_t i = 0; i < sequence.new_tokens.value(); ++i) {
        in.positions.push_back(sequence.first_new.value() + i);
        in.tokens.push_back(history[in.positions.back()]);
      }
      in.qo_indptr.push_back(static_cast<int32_t>(in.tokens.size()));
    }
    for (const BlockCopy& copy : view.copies) {
      in.copies.push_back(
          {copy.source.value(), copy.target.value(), copy.filled_tokens});
    }
    in.slots.resize(in.tokens.size());
    PAGED_KV_RETURN_IF_ERROR(
        cache_->ExportSlotMapping(step, kGroup, absl::MakeSpan(in.slots)));
    PAGED_KV_ASSIGN_OR_RETURN(const paged_kv::PageTableSize size,
                              cache_->TableSize(step, kGroup));
    in.indptr.resize(size.sequences + 1);
    in.page_indices.resize(size.pages);
    in.last_page_tokens.resize(size.sequences);
    in.first_token.resize(size.sequences);
    PAGED_KV_ASSIGN_OR_RETURN(
        in.table, cache_->ExportPageTable(step, kGroup,
                                          {absl::MakeSpan(in.indptr),
                                           absl::MakeSpan(in.page_indices),
                                           absl::MakeSpan(in.last_page_tokens),
                                           absl::MakeSpan(in.first_token)}));
    return in;
  }

  std::vector<SequenceId> Report(const StepView& view) const {
    std::vector<SequenceId> ids;
    for (const PlannedSequence& sequence : view.sequences) {
      std::printf("  sequence %zu: %u tokens in the cache, %u computed\n",
                  ids.size(), sequence.first_new.value(),
                  sequence.new_tokens.value());
      ids.push_back(sequence.id);
    }
    if (!view.copies.empty()) {
      std::printf("  %zu block copied before it was written\n",
                  view.copies.size());
    }
    return ids;
  }

  // Compares the last query of every sequence with the reference.
  void Check(const StepView& view, const std::vector<int32_t>& qo_indptr,
             uint32_t layer, const std::vector<float>& out) {
    for (size_t i = 0; i < view.sequences.size(); ++i) {
      const PlannedSequence& sequence = view.sequences[i];
      const auto known = cache_->Tokens(sequence.id);
      const std::vector<TokenId> history(
          known->begin(), known->begin() + sequence.Context().value());
      const auto row = static_cast<size_t>(qo_indptr[i + 1] - 1);
      for (uint32_t head = 0; head < kQueryHeads; ++head) {
        const double value = double{out[(row * kQueryHeads + head) * kHeadDim]};
        max_error_ =
            std::max(max_error_,
                     std::abs(value - ReferenceValue(history, layer, head, 0)));
      }
    }
  }

  std::unique_ptr<KvCacheManager> cache_;
  paged_kv::attention::KvPages pages_;
  paged_kv::attention::ThreadPool threads_{2};
  double max_error_ = 0;
};

absl::Status Run() {
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            Engine::Create());
  std::vector<TokenId> prompt(40);
  std::iota(prompt.begin(), prompt.end(), 100);
  std::printf("prefill a prompt of %zu tokens\n", prompt.size());
  PAGED_KV_ASSIGN_OR_RETURN(const std::vector<SequenceId> first,
                            engine->Step({StepRequest::Admit(prompt)}));

  std::vector<TokenId> question = prompt;
  question.insert(question.end() - 3, {7, 8, 9});
  std::printf("prefill another that shares its beginning\n");
  PAGED_KV_ASSIGN_OR_RETURN(const std::vector<SequenceId> second,
                            engine->Step({StepRequest::Admit(question)}));

  std::printf("fork the first; its partial block is shared until written\n");
  PAGED_KV_ASSIGN_OR_RETURN(const SequenceId fork,
                            engine->cache().Fork(first[0]));
  for (TokenId token = 1; token <= 3; ++token) {
    const std::vector<TokenId> a = {token}, b = {token + 10}, c = {token + 20};
    std::printf("decode one token of each\n");
    PAGED_KV_RETURN_IF_ERROR(engine
                                 ->Step({StepRequest::Extend(first[0], a),
                                         StepRequest::Extend(second[0], b),
                                         StepRequest::Extend(fork, c)})
                                 .status());
  }
  const paged_kv::CacheStats stats = engine->cache().Stats();
  std::printf(
      "held %u blocks; %llu of %llu prompt tokens came from the cache; "
      "largest attention error %.2g\n",
      stats.pools[0].held.value(),
      static_cast<unsigned long long>(stats.hit_tokens),
      static_cast<unsigned long long>(stats.prompt_tokens),
      engine->max_error());
  if (engine->max_error() > 1e-5) {
    return absl::InternalError("attention over pages is wrong");
  }
  return engine->cache().CheckInvariants();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// An engine that has its own tensors and its own kernels and wants only the
// bookkeeping: the manager runs in metadata-only mode and hands out page
// indices; K and V lie in one tensor per layer, [2, pages, heads, tokens, dim],
// and the attention kernel below has never heard of PagedKV.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/status_macros.h"

namespace {

constexpr int kLayers = 3;
constexpr int kPages = 24;
constexpr int kHeads = 2;
constexpr int kPageTokens = 8;
constexpr int kDim = 16;

// ---- The engine's side -----------------------------------------------------

// [2, kPages, kHeads, kPageTokens, kDim]
using LayerTensor = std::vector<float>;

LayerTensor NewTensor() {
  return LayerTensor(size_t{2} * kPages * kHeads * kPageTokens * kDim);
}

float* Entry(LayerTensor& tensor, int which, int page, int head, int token) {
  const size_t row =
      ((size_t(which) * kPages + size_t(page)) * kHeads + size_t(head)) *
          kPageTokens +
      size_t(token);
  return tensor.data() + row * kDim;
}

// K (which 0) or V (1) of a token, made up.
float Value(int which, int token, int position, int layer, int head, int dim) {
  return std::cos(0.2f * static_cast<float>(which + token * 2 + position +
                                            layer * 11 + head * 5) +
                  0.4f * static_cast<float>(dim));
}

// The engine's kernel: one query against `tokens` keys found through `pages`.
void ForeignDecodeKernel(LayerTensor& tensor, const int32_t* pages, int tokens,
                         int head, const float* query, float* out) {
  std::vector<double> weights(static_cast<size_t>(tokens));
  double sum = 0;
  for (int t = 0; t < tokens; ++t) {
    const float* k =
        Entry(tensor, 0, pages[t / kPageTokens], head, t % kPageTokens);
    double score = 0;
    for (int d = 0; d < kDim; ++d) score += double{query[d]} * double{k[d]};
    weights[static_cast<size_t>(t)] = std::exp(score / std::sqrt(kDim));
    sum += weights[static_cast<size_t>(t)];
  }
  std::fill(out, out + kDim, 0.0f);
  for (int t = 0; t < tokens; ++t) {
    const float* v =
        Entry(tensor, 1, pages[t / kPageTokens], head, t % kPageTokens);
    const auto weight =
        static_cast<float>(weights[static_cast<size_t>(t)] / sum);
    for (int d = 0; d < kDim; ++d) out[d] += weight * v[d];
  }
}

// ---- The cache's side ------------------------------------------------------

absl::StatusOr<std::unique_ptr<paged_kv::KvCacheManager>> MakeCache() {
  paged_kv::KvCacheOptions options;
  paged_kv::LayerGroup group;
  group.shape.layers = kLayers;
  group.shape.kv_heads = kHeads;
  group.shape.head_dim = kDim;
  group.shape.block_tokens = kPageTokens;
  group.shape.dtype = paged_kv::DType::kF32;
  options.groups = {group};
  options.host_blocks = paged_kv::BlockCount(kPages);
  options.max_sequences = 4;
  options.max_tokens_per_sequence = kPages * kPageTokens;
  options.memory = paged_kv::MemoryMode::kMetadataOnly;
  return paged_kv::KvCacheManager::Create(options);
}

// Writes the K/V of a step's new tokens where the slot mapping says.
absl::Status WriteStep(const paged_kv::KvCacheManager& cache,
                       paged_kv::StepId step,
                       std::vector<LayerTensor>& tensors) {
  PAGED_KV_ASSIGN_OR_RETURN(const paged_kv::StepView view, cache.View(step));
  for (const paged_kv::BlockCopy& copy : view.copies) {
    for (LayerTensor& tensor : tensors) {
      for (int which = 0; which < 2; ++which) {
        for (int head = 0; head < kHeads; ++head) {
          std::copy_n(Entry(tensor, which, int(copy.source.value()), head, 0),
                      copy.filled_tokens * kDim,
                      Entry(tensor, which, int(copy.target.value()), head, 0));
        }
      }
    }
  }
  size_t rows = 0;
  for (const auto& sequence : view.sequences) rows += sequence.Rows().value();
  std::vector<int64_t> slots(rows);
  PAGED_KV_RETURN_IF_ERROR(cache.ExportSlotMapping(step, paged_kv::GroupId(0),
                                                   absl::MakeSpan(slots)));
  size_t row = 0;
  for (const auto& sequence : view.sequences) {
    PAGED_KV_ASSIGN_OR_RETURN(const auto tokens, cache.Tokens(sequence.id));
    for (uint32_t i = 0; i < sequence.Rows().value(); ++i, ++row) {
      const int position = int(sequence.first_new.value() + i);
      const int page = int(slots[row] / kPageTokens);
      const int offset = int(slots[row] % kPageTokens);
      for (int layer = 0; layer < kLayers; ++layer) {
        for (int which = 0; which < 2; ++which) {
          for (int head = 0; head < kHeads; ++head) {
            float* entry =
                Entry(tensors[size_t(layer)], which, page, head, offset);
            for (int d = 0; d < kDim; ++d) {
              entry[d] = Value(which, tokens[size_t(position)], position, layer,
                               head, d);
            }
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

// Largest difference between the kernel over pages and plain arrays.
absl::StatusOr<double> Compare(const paged_kv::KvCacheManager& cache,
                               paged_kv::SequenceId id,
                               std::vector<LayerTensor>& tensors) {
  PAGED_KV_ASSIGN_OR_RETURN(const auto tokens, cache.Tokens(id));
  const paged_kv::GroupId group(0);
  PAGED_KV_ASSIGN_OR_RETURN(const auto size, cache.TableSize({&id, 1}, group));
  std::vector<int32_t> indptr(2), pages(size.pages), last(1), first(1);
  PAGED_KV_RETURN_IF_ERROR(
      cache
          .ExportPageTable({&id, 1}, group,
                           {absl::MakeSpan(indptr), absl::MakeSpan(pages),
                            absl::MakeSpan(last), absl::MakeSpan(first)})
          .status());
  // The same history in a tensor whose pages simply follow each other.
  LayerTensor plain = NewTensor();
  std::vector<int32_t> in_order(kPages);
  for (int i = 0; i < kPages; ++i) in_order[size_t(i)] = i;
  double worst = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int head = 0; head < kHeads; ++head) {
      for (int t = 0; t < int(tokens.size()); ++t) {
        for (int which = 0; which < 2; ++which) {
          float* entry =
              Entry(plain, which, t / kPageTokens, head, t % kPageTokens);
          for (int d = 0; d < kDim; ++d) {
            entry[d] = Value(which, tokens[size_t(t)], t, layer, head, d);
          }
        }
      }
      float query[kDim], paged[kDim], contiguous[kDim];
      for (int d = 0; d < kDim; ++d) query[d] = Value(0, 5, 9, layer, head, d);
      ForeignDecodeKernel(tensors[size_t(layer)], pages.data(),
                          int(tokens.size()), head, query, paged);
      ForeignDecodeKernel(plain, in_order.data(), int(tokens.size()), head,
                          query, contiguous);
      for (int d = 0; d < kDim; ++d) {
        worst =
            std::max(worst, std::abs(double{paged[d]} - double{contiguous[d]}));
      }
    }
  }
  return worst;
}

absl::Status Run() {
  PAGED_KV_ASSIGN_OR_RETURN(const auto cache, MakeCache());
  std::vector<LayerTensor> tensors(kLayers, NewTensor());
  const std::vector<paged_kv::TokenId> prompt = {3, 1, 4, 1, 5, 9, 2,
                                                 6, 5, 3, 5, 8, 9};

  PAGED_KV_ASSIGN_OR_RETURN(const auto parent, cache->Allocate(prompt));
  PAGED_KV_RETURN_IF_ERROR(WriteStep(*cache, parent.step, tensors));
  PAGED_KV_RETURN_IF_ERROR(cache->Retire(parent.step));

  PAGED_KV_ASSIGN_OR_RETURN(const auto child, cache->Fork(parent.id));
  for (const paged_kv::SequenceId id : {parent.id, child}) {
    const paged_kv::TokenId token = id == child ? 8 : 7;
    PAGED_KV_ASSIGN_OR_RETURN(const auto grown, cache->Append(id, {token}));
    PAGED_KV_RETURN_IF_ERROR(WriteStep(*cache, grown.step, tensors));
    PAGED_KV_RETURN_IF_ERROR(cache->Retire(grown.step));
  }
  for (const paged_kv::SequenceId id : {parent.id, child}) {
    PAGED_KV_ASSIGN_OR_RETURN(const double error, Compare(*cache, id, tensors));
    PAGED_KV_ASSIGN_OR_RETURN(const auto tokens, cache->Tokens(id));
    std::printf("sequence of %zu tokens: paged and plain differ by %g\n",
                tokens.size(), error);
    if (error != 0) return absl::InternalError("pages hold the wrong K/V");
  }
  const paged_kv::CacheStats stats = cache->Stats();
  std::printf("%u pages held for 28 tokens of 2 sequences, %llu copied\n",
              stats.pools[0].held.value(),
              static_cast<unsigned long long>(stats.blocks_copied));
  return cache->CheckInvariants();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}

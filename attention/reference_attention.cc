// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/reference_attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "attention/plan_checks_internal.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::attention {
namespace {

float LoadF32(const uint8_t* from) {
  float value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// The element at `from`; of 8-bit types without its scale.
double Decode(const uint8_t* from, DType dtype) {
  uint16_t bits;
  switch (dtype) {
    case DType::kF32:
      return LoadF32(from);
    case DType::kF16:
      std::memcpy(&bits, from, sizeof(bits));
      return F16ToF32(bits);
    case DType::kBF16:
      std::memcpy(&bits, from, sizeof(bits));
      return Bf16ToF32(bits);
    case DType::kFp8E4M3:
      return E4m3ToF32(*from);
    case DType::kInt8:
      return Int8ToF32(*from);
  }
  PAGED_KV_CHECK(false);
}

// The scale of a token of a slice with `data_bytes` before its scales.
double LoadScale(const uint8_t* slice, Bytes data_bytes, uint32_t token,
                 DType dtype) {
  if (!HasScales(dtype)) return 1.0;
  return LoadF32(slice + data_bytes.value() + size_t{token} * sizeof(float));
}

// The page index and the slot that hold a position of a sequence.
struct Place {
  uint32_t page;
  uint32_t token;
};

Place Locate(const PageTable& table, size_t sequence, int64_t position) {
  int64_t held = position;  // place among the tokens that the table holds
  const int64_t sink_tokens = int64_t{table.sink_pages} * table.block_tokens;
  const int64_t first_token = table.first_token[sequence];
  if (first_token != 0 && position >= sink_tokens) {
    held = position - first_token + sink_tokens;
  }
  const int64_t entry = table.indptr[sequence] + held / table.block_tokens;
  return {static_cast<uint32_t>(table.page_indices[entry]),
          static_cast<uint32_t>(held % table.block_tokens)};
}

// One query head's attention to one sequence.
class Reference {
 public:
  Reference(const AttentionInputs& inputs, const AttentionOptions& options,
            size_t sequence, int64_t first_position)
      : inputs_(inputs),
        options_(options),
        sequence_(sequence),
        first_position_(first_position),
        num_tokens_(inputs.table.SequenceTokens(sequence)) {}

  // Reads the K and V that some query of the sequence sees, as [dim, token]
  // and [token, dim].
  void LoadHead(uint32_t kv_head) {
    const BlockShape& shape = inputs_.pages.shape;
    const auto tokens = static_cast<size_t>(num_tokens_);
    keys_.assign(shape.head_dim * tokens, 0.0);
    values_.assign(shape.VHeadDim() * tokens, 0.0);
    for (int64_t j = 0; j < num_tokens_; ++j) {
      if (!SeenFrom(first_position_, j)) continue;
      const Place place = Locate(inputs_.table, sequence_, j);
      const auto t = static_cast<size_t>(j);
      for (uint32_t d = 0; d < shape.head_dim; ++d) {
        keys_[d * tokens + t] = StoredKey(
            inputs_.pages, place.page, inputs_.layer, kv_head, place.token, d);
      }
      for (uint32_t d = 0; d < shape.VHeadDim(); ++d) {
        values_[t * shape.VHeadDim() + d] = StoredValue(
            inputs_.pages, place.page, inputs_.layer, kv_head, place.token, d);
      }
    }
  }

  // softmax(scale * q K^T) V for a query at `position`.
  void Attend(const float* q, int64_t position, double* out, double* lse) {
    const BlockShape& shape = inputs_.pages.shape;
    Score(q);
    double max = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < num_tokens_; ++j) {
      if (Sees(position, j)) max = std::max(max, scores_[j]);
    }
    double sum = 0.0;
    std::fill_n(out, shape.VHeadDim(), 0.0);
    for (int64_t j = 0; j < num_tokens_; ++j) {
      if (!Sees(position, j)) continue;
      const double weight = std::exp(scores_[j] - max);
      sum += weight;
      const double* value = values_.data() + j * shape.VHeadDim();
      for (uint32_t d = 0; d < shape.VHeadDim(); ++d) {
        out[d] += weight * value[d];
      }
    }
    for (uint32_t d = 0; d < shape.VHeadDim() && sum != 0.0; ++d) {
      out[d] /= sum;
    }
    if (lse != nullptr) *lse = max + std::log(sum);
  }

 private:
  // Whether a query at `position` sees key `key`.
  bool Sees(int64_t position, int64_t key) const {
    if (options_.causal && key > position) return false;
    if (options_.window == 0) return true;
    return key > position - int64_t{options_.window} ||
           key < int64_t{options_.sink_tokens};
  }
  // Whether a query at `position` or later may see key `key`.
  bool SeenFrom(int64_t position, int64_t key) const {
    return key >= position || Sees(position, key);
  }

  // Scaled and capped products with all keys.
  void Score(const float* q) {
    const uint32_t head_dim = inputs_.pages.shape.head_dim;
    const double scale = options_.scale != 0.0f ? double{options_.scale}
                                                : 1.0 / std::sqrt(head_dim);
    scores_.assign(static_cast<size_t>(num_tokens_), 0.0);
    for (uint32_t d = 0; d < head_dim; ++d) {
      const double* keys = keys_.data() + d * num_tokens_;
      for (int64_t j = 0; j < num_tokens_; ++j) scores_[j] += q[d] * keys[j];
    }
    const double cap = options_.soft_cap;
    for (double& score : scores_) {
      score *= scale;
      if (cap != 0.0) score = cap * std::tanh(score / cap);
    }
  }

  const AttentionInputs& inputs_;
  const AttentionOptions& options_;
  const size_t sequence_;
  const int64_t first_position_;
  const int64_t num_tokens_;
  std::vector<double> keys_;    // [head_dim, tokens]
  std::vector<double> values_;  // [tokens, v_head_dim]
  std::vector<double> scores_;  // [tokens]
};

absl::Status CheckReference(const AttentionInputs& inputs,
                            absl::Span<const int32_t> qo_indptr,
                            const AttentionOptions& options,
                            const ReferenceOutputs& outputs) {
  using internal::CheckArray;
  const BlockShape& shape = inputs.pages.shape;
  PAGED_KV_RETURN_IF_ERROR(Validate(inputs.pages));
  AttentionOptions checked = options;
  checked.isa = Isa::kAuto;
  PAGED_KV_RETURN_IF_ERROR(Validate(checked));
  PAGED_KV_RETURN_IF_ERROR(
      internal::CheckPageTable(inputs.pages, inputs.table));
  PAGED_KV_RETURN_IF_ERROR(internal::CheckHeads(shape, inputs.query_heads));
  PAGED_KV_RETURN_IF_ERROR(internal::CheckQueries(inputs.table, qo_indptr));
  for (size_t i = 0; i < inputs.table.num_sequences(); ++i) {
    const int64_t queries = qo_indptr[i + 1] - qo_indptr[i];
    if (queries == 0) continue;
    PAGED_KV_RETURN_IF_ERROR(internal::CheckWindow(
        inputs.table, i, inputs.table.SequenceTokens(i) - queries, options));
  }
  if (inputs.layer >= shape.layers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layer is ", inputs.layer, ", but pages hold ", shape.layers));
  }
  const size_t rows =
      static_cast<size_t>(qo_indptr.back()) * inputs.query_heads;
  PAGED_KV_RETURN_IF_ERROR(CheckArray("q", inputs.q.data(), inputs.q.size(),
                                      rows * shape.head_dim, alignof(float)));
  PAGED_KV_RETURN_IF_ERROR(
      CheckArray("out", outputs.out.data(), outputs.out.size(),
                 rows * shape.VHeadDim(), alignof(double)));
  if (outputs.lse.empty()) return absl::OkStatus();
  return CheckArray("lse", outputs.lse.data(), outputs.lse.size(), rows,
                    alignof(double));
}

}  // namespace

double StoredKey(const KvPages& pages, uint32_t page, uint32_t layer,
                 uint32_t head, uint32_t token, uint32_t dim) {
  const BlockShape& shape = pages.shape;
  const uint8_t* slice = static_cast<const uint8_t*>(pages.layout.base) +
                         KSliceOffset(pages.layout, page, layer, head);
  const uint32_t element = ElementBytes(shape.dtype);
  int64_t offset;
  if (pages.layout.k_order == KOrder::kTiled16) {
    const uint32_t k = 4 / element;  // dims in a unit of 4 bytes
    const int64_t tile_bytes = int64_t{kTileTokens} * shape.head_dim * element;
    offset = token / kTileTokens * tile_bytes;     // [tile]
    offset += dim / k * int64_t{kTileTokens} * 4;  // [dim / k]
    offset += token % kTileTokens * 4;             // [16 tokens]
    offset += dim % k * element;                   // [k]
  } else {
    offset = token * KTokenStride(pages) + dim * element;
  }
  return Decode(slice + offset, shape.dtype) *
         LoadScale(slice, KDataBytes(shape), token, shape.dtype);
}

double StoredValue(const KvPages& pages, uint32_t page, uint32_t layer,
                   uint32_t head, uint32_t token, uint32_t dim) {
  const BlockShape& shape = pages.shape;
  const uint8_t* slice = static_cast<const uint8_t*>(pages.layout.base) +
                         VSliceOffset(pages.layout, page, layer, head);
  const int64_t offset =
      token * VTokenStride(pages) + dim * ElementBytes(shape.dtype);
  return Decode(slice + offset, shape.dtype) *
         LoadScale(slice, VDataBytes(shape), token, shape.dtype);
}

absl::Status ReferenceAttention(const AttentionInputs& inputs,
                                absl::Span<const int32_t> qo_indptr,
                                const AttentionOptions& options,
                                const ReferenceOutputs& outputs,
                                ParallelFor& parallel) {
  PAGED_KV_RETURN_IF_ERROR(CheckReference(inputs, qo_indptr, options, outputs));
  const BlockShape& shape = inputs.pages.shape;
  const uint32_t group = inputs.query_heads / shape.kv_heads;
  const size_t tasks = inputs.table.num_sequences() * shape.kv_heads;
  parallel.Run(tasks, [&](size_t task, size_t) {
    const size_t i = task / shape.kv_heads;
    const auto kv_head = static_cast<uint32_t>(task % shape.kv_heads);
    const int64_t first_position =
        inputs.table.SequenceTokens(i) - (qo_indptr[i + 1] - qo_indptr[i]);
    Reference reference(inputs, options, i, first_position);
    reference.LoadHead(kv_head);
    for (int64_t query = qo_indptr[i]; query < qo_indptr[i + 1]; ++query) {
      for (uint32_t g = 0; g < group; ++g) {
        const int64_t index = query * inputs.query_heads + kv_head * group + g;
        reference.Attend(
            inputs.q.data() + index * shape.head_dim,
            first_position + query - qo_indptr[i],
            outputs.out.data() + index * shape.VHeadDim(),
            outputs.lse.empty() ? nullptr : outputs.lse.data() + index);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace paged_kv::attention

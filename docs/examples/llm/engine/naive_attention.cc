// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/naive_attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "docs/examples/llm/engine/onednn_matmul.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// Rows [rows, width] of which each is softmaxed in place.
class RowSoftmax {
 public:
  static absl::StatusOr<RowSoftmax> Create(int64_t rows, int64_t width) {
    RowSoftmax result;
    try {
      result.shape_ =
          dnnl::memory::desc({rows, width}, dnnl::memory::data_type::f32,
                             dnnl::memory::format_tag::ab);
      const dnnl::softmax_forward::primitive_desc primitive(
          dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference,
                                      result.shape_, 1),
          result.engine_);
      result.softmax_ = dnnl::softmax_forward(primitive);
    } catch (const dnnl::error& error) {
      return absl::UnimplementedError(
          absl::StrCat("oneDNN has no softmax here: ", error.what()));
    }
    return result;
  }

  void Run(float* rows) const {
    dnnl::stream stream(engine_);
    const dnnl::memory memory(shape_, engine_, rows);
    softmax_.execute(stream, {{DNNL_ARG_SRC, memory}, {DNNL_ARG_DST, memory}});
    stream.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::memory::desc shape_;
  dnnl::softmax_forward softmax_;
};

class OneDnnNaiveAttention final : public NaiveAttention {
 public:
  OneDnnNaiveAttention(const ModelConfig& config, uint32_t tokens,
                       OneDnnMatmul qk, OneDnnMatmul pv, RowSoftmax softmax)
      : heads_(config.heads),
        kv_heads_(config.kv_heads),
        head_dim_(config.head_dim),
        tokens_(tokens),
        qk_(std::move(qk)),
        pv_(std::move(pv)),
        softmax_(std::move(softmax)),
        scores_(size_t{heads_} * tokens * tokens) {}

  absl::Status Run(absl::Span<const float> q, absl::Span<const float> k,
                   absl::Span<const float> v, absl::Span<float> out,
                   attention::ParallelFor& parallel) override {
    const size_t q_size = size_t{tokens_} * heads_ * head_dim_;
    const size_t kv_size = size_t{tokens_} * kv_heads_ * head_dim_;
    if (q.size() != q_size || out.size() != q_size || k.size() != kv_size ||
        v.size() != kv_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "q, k, v, out of ", q.size(), ", ", k.size(), ", ", v.size(), ", ",
          out.size(), " values, not ", q_size, " and ", kv_size));
    }
    std::vector<absl::Status> statuses(heads_);
    parallel.Run(heads_, [&](size_t head, size_t) {
      const OneDnnSingleThread single_thread;
      statuses[head] = Head(static_cast<uint32_t>(head), q, k, v, out);
    });
    for (const absl::Status& status : statuses) {
      PAGED_KV_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Head(uint32_t head, absl::Span<const float> q,
                    absl::Span<const float> k, absl::Span<const float> v,
                    absl::Span<float> out) {
    const uint32_t kv_head = head / (heads_ / kv_heads_);
    const size_t n = tokens_, d = head_dim_;
    const float scale = 1.0F / std::sqrt(static_cast<float>(d));
    std::vector<float> q_rows(n * d), k_rows(n * d), v_columns(n * d);
    for (size_t i = 0; i < n; ++i) {
      for (size_t c = 0; c < d; ++c) {
        const size_t kv_at = (i * kv_heads_ + kv_head) * d + c;
        q_rows[i * d + c] = q[(i * heads_ + head) * d + c] * scale;
        k_rows[i * d + c] = k[kv_at];
        v_columns[c * n + i] = v[kv_at];
      }
    }
    float* scores = scores_.data() + head * n * n;
    PAGED_KV_RETURN_IF_ERROR(Multiply(qk_, q_rows.data(), k_rows, scores));
    for (size_t i = 0; i < n; ++i) {
      std::fill(scores + i * n + i + 1, scores + (i + 1) * n,
                -std::numeric_limits<float>::infinity());
    }
    softmax_.Run(scores);
    std::vector<float> out_rows(n * d);
    PAGED_KV_RETURN_IF_ERROR(Multiply(pv_, scores, v_columns, out_rows.data()));
    for (size_t i = 0; i < n; ++i) {
      std::copy_n(out_rows.data() + i * d, d,
                  out.data() + (i * heads_ + head) * d);
    }
    return absl::OkStatus();
  }

  // y = x W, the columns of W as rows.
  absl::Status Multiply(const OneDnnMatmul& matmul, const float* x,
                        const std::vector<float>& columns, float* y) const {
    const dnnl::memory::desc& layout = matmul.weights_layout();
    const auto dims = layout.dims();
    std::vector<std::byte> packed(layout.get_size());
    std::vector<std::byte> scratch(matmul.scratch_bytes());
    PAGED_KV_ASSIGN_OR_RETURN(
        const dnnl::memory weights,
        PackWeights(WeightType::kF32, dims[0], dims[1], columns.data(), layout,
                    packed.data()));
    matmul.Run(x, weights, y, scratch.data());
    return absl::OkStatus();
  }

  const uint32_t heads_, kv_heads_, head_dim_, tokens_;
  const OneDnnMatmul qk_, pv_;
  const RowSoftmax softmax_;
  std::vector<float> scores_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NaiveAttention>> NaiveAttention::Create(
    const ModelConfig& config, uint32_t tokens) {
  const int64_t d = config.head_dim;
  PAGED_KV_ASSIGN_OR_RETURN(
      OneDnnMatmul qk,
      OneDnnMatmul::Create(WeightType::kF32, tokens, d, tokens, nullptr));
  PAGED_KV_ASSIGN_OR_RETURN(
      OneDnnMatmul pv,
      OneDnnMatmul::Create(WeightType::kF32, tokens, tokens, d, nullptr));
  PAGED_KV_ASSIGN_OR_RETURN(RowSoftmax softmax,
                            RowSoftmax::Create(tokens, tokens));
  return std::make_unique<OneDnnNaiveAttention>(
      config, tokens, std::move(qk), std::move(pv), std::move(softmax));
}

}  // namespace paged_kv::llm

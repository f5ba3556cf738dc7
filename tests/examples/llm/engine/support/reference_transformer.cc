// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/examples/llm/engine/support/reference_transformer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace paged_kv::llm {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

double At(const Matrix& m, size_t row, size_t col) {
  const size_t i = row * m.cols + col;
  if (m.type == WeightType::kF32) return double{m.f32()[i]};
  const uint32_t bits = uint32_t{m.bf16()[i]} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return double{value};
}

Row Multiply(const Matrix& m, const Row& x,
             const std::vector<float>& bias = {}) {
  Row y(m.rows);
  for (size_t r = 0; r < m.rows; ++r) {
    double sum = bias.empty() ? 0 : double{bias[r]};
    for (size_t c = 0; c < m.cols; ++c) sum += At(m, r, c) * x[c];
    y[r] = sum;
  }
  return y;
}

Row Normed(const Row& x, const std::vector<float>& weight, float epsilon) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double root =
      std::sqrt(squares / static_cast<double>(x.size()) + double{epsilon});
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] / root * double{weight[i]};
  return y;
}

void Rotate(Row& heads, size_t position, const Model& model) {
  const ModelConfig& c = model.config;
  for (size_t first = 0; first < heads.size(); first += c.head_dim) {
    for (size_t i = 0; i < c.head_dim / 2; ++i) {
      const bool interleaved = c.rope_style == RopeStyle::kInterleaved;
      double& a = heads[first + (interleaved ? 2 * i : i)];
      double& b = heads[first + (interleaved ? 2 * i + 1 : i + c.head_dim / 2)];
      double angle = static_cast<double>(position) /
                     std::pow(double{c.rope_theta},
                              2.0 * static_cast<double>(i) / c.head_dim);
      if (!model.rope_factors.empty()) angle /= double{model.rope_factors[i]};
      const double x = a, y = b;
      a = x * std::cos(angle) - y * std::sin(angle);
      b = x * std::sin(angle) + y * std::cos(angle);
    }
  }
}

// Attention of the token at `position` to all up to it.
Row Attend(const Row& q, const Rows& k, const Rows& v, size_t position,
           const ModelConfig& c) {
  Row out(q.size());
  const size_t group = c.heads / c.kv_heads;
  for (size_t head = 0; head < c.heads; ++head) {
    const size_t q_first = head * c.head_dim;
    const size_t kv_first = head / group * c.head_dim;
    Row weights;
    for (size_t p = 0; p <= position; ++p) {
      double score = 0;
      for (size_t d = 0; d < c.head_dim; ++d) {
        score += q[q_first + d] * k[p][kv_first + d];
      }
      weights.push_back(score / std::sqrt(static_cast<double>(c.head_dim)));
    }
    const double highest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - highest);
    for (size_t p = 0; p <= position; ++p) {
      for (size_t d = 0; d < c.head_dim; ++d) {
        out[q_first + d] += weights[p] / sum * v[p][kv_first + d];
      }
    }
  }
  return out;
}

void AddTo(Row& x, const Row& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

void RunLayer(const LayerWeights& layer, const Model& model, Rows& x) {
  const ModelConfig& c = model.config;
  Rows q, k, v;
  for (size_t p = 0; p < x.size(); ++p) {
    const Row normed = Normed(x[p], layer.attention_norm, c.rms_epsilon);
    q.push_back(Multiply(layer.wq, normed, layer.bq));
    k.push_back(Multiply(layer.wk, normed, layer.bk));
    v.push_back(Multiply(layer.wv, normed, layer.bv));
    Rotate(q.back(), p, model);
    Rotate(k.back(), p, model);
  }
  for (size_t p = 0; p < x.size(); ++p) {
    AddTo(x[p], Multiply(layer.wo, Attend(q[p], k, v, p, c)));
    const Row normed = Normed(x[p], layer.ffn_norm, c.rms_epsilon);
    Row gate = Multiply(layer.w_gate, normed);
    const Row up = Multiply(layer.w_up, normed);
    for (size_t i = 0; i < gate.size(); ++i) {
      gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    }
    AddTo(x[p], Multiply(layer.w_down, gate));
  }
}

}  // namespace

std::vector<double> ReferenceLogits(const Model& model,
                                    absl::Span<const TokenId> tokens) {
  Rows x;
  for (const TokenId token : tokens) {
    Row row;
    for (size_t i = 0; i < model.config.hidden; ++i) {
      row.push_back(At(model.token_embedding, static_cast<size_t>(token), i));
    }
    x.push_back(row);
  }
  for (const LayerWeights& layer : model.layers) RunLayer(layer, model, x);
  std::vector<double> logits;
  for (const Row& row : x) {
    const Row normed = Normed(row, model.final_norm, model.config.rms_epsilon);
    const Row own = Multiply(model.output, normed);
    logits.insert(logits.end(), own.begin(), own.end());
  }
  return logits;
}

}  // namespace paged_kv::llm

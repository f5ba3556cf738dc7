// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fpga_dma/kernels/decode_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace paged_kv::fpga_dma {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kTurns = 8;

float ZeroBelow(float value, int exponent) {
  return std::fabs(value) < std::ldexp(1.0f, exponent) ? 0.0f : value;
}

// An element of K, V or a query: integers stay what they are.
float Read(float element) { return ZeroBelow(element, -55); }
float ReadScale(float scale) { return ZeroBelow(scale, -60); }

float Shifted(float value, float shift) {
  if (!std::isfinite(value)) return value;
  if (!(shift > -128.0f)) return 0.0f;
  return ZeroBelow(std::ldexp(value, static_cast<int>(shift)), -102);
}

float Polynomial(std::initializer_list<float> coefficients, float x) {
  float result = 0.0f;
  bool first = true;
  for (const float c : coefficients) {
    result = first ? c : result * x + c;
    first = false;
  }
  return result;
}

float Exp2(float x) {
  if (std::isnan(x)) return x;
  if (x < -39.0f) return 0.0f;
  const float whole = std::trunc(x);
  const float r = Polynomial({0.000946877035f, 0.00920918025f, 0.0552981198f,
                              0.240178958f, 0.693143129f, 1.0f},
                             x - whole);
  return Shifted(r, whole);
}

float Log2(float x) {
  if (!std::isfinite(x)) return x;
  int exponent;
  float mantissa = std::frexp(x, &exponent) * 2.0f;  // [1, 2)
  --exponent;
  if (mantissa >= 1.41421354f) {
    mantissa *= 0.5f;
    ++exponent;
  }
  const float t = mantissa - 1.0f;
  const float r =
      Polynomial({-0.14275974f, 0.232652575f, -0.249271825f, 0.287288874f,
                  -0.360225171f, 0.480916709f, -0.721352935f, 1.44269502f},
                 t);
  return static_cast<float>(exponent) + ZeroBelow(r * t, -60);
}

// The sum of 2^n values, halves added to halves.
float TreeSum(std::vector<float> values) {
  while (values.size() > 1) {
    const size_t half = values.size() / 2;
    for (size_t i = 0; i < half; ++i) values[i] = values[i] + values[i + half];
    values.resize(half);
  }
  return values[0];
}

// One query head of one item.
class HeadModel {
 public:
  HeadModel(const DecodeCase& launch, const DecodeItem& item, uint32_t head)
      : launch_(launch), item_(item), head_(head) {}

  void Run() {
    const uint32_t begin = item_.first_slot;
    const uint32_t end = begin + item_.num_tokens;
    for (uint32_t tile = begin / 16; tile * 16 < end; ++tile) {
      AddTile(tile, std::max(begin, tile * 16), std::min(end, tile * 16 + 16));
    }
  }
  float Lse() const { return (maximum_ + Log2(sum_)) * 0.693147182f; }
  float Out(uint32_t dim) const {
    return ZeroBelow(Accumulated(dim) * (1.0f / sum_), -102);
  }

 private:
  // Slots [begin, end), counted over all pages, of the tile-th tile.
  void AddTile(uint32_t tile, uint32_t begin, uint32_t end) {
    std::vector<float> score(16, -kInfinity);
    float tile_maximum = -kInfinity;
    for (uint32_t position = begin; position < end; ++position) {
      float& s = score[position % 16];
      s = ZeroBelow(Dot(position) * Factor(position), -60);
      if (s > tile_maximum) tile_maximum = s;
    }
    const float before = maximum_;
    maximum_ = std::max(before, std::ceil(tile_maximum));
    std::vector<float> weight(16, 0.0f);
    for (uint32_t position = begin; position < end; ++position) {
      const float s = score[position % 16];
      weight[position % 16] = s == -kInfinity ? 0.0f : Exp2(s - maximum_);
    }
    const float shift = before - maximum_;
    sum_ = Shifted(sum_, shift) + TreeSum(weight);
    for (auto& turn : turns_) {
      for (float& value : turn) value = Shifted(value, shift);
    }
    // Elements of V take turns in groups of 32, whole tile included: slots
    // outside add a weight of 0 times 0. The scale of V is a part of the
    // weight.
    for (uint32_t position = begin; position < end; ++position) {
      weight[position % 16] = weight[position % 16] * ValueScaleAt(position);
    }
    for (uint32_t position = tile * 16; position < tile * 16 + 16; ++position) {
      const bool inside = position >= begin && position < end;
      for (uint32_t dim = 0; dim < launch_.shape.head_dim; ++dim) {
        const uint32_t element = position % 16 * launch_.shape.head_dim + dim;
        float& value = turns_[element / 32 % kTurns][element % 32];
        value = value + (inside ? weight[position % 16] * ValueAt(position, dim)
                                : 0.0f);
      }
    }
  }

  void Find(uint32_t position, uint32_t* page, uint32_t* slot) const {
    launch_.Place(item_, position - item_.first_slot, page, slot);
  }
  float ValueAt(uint32_t position, uint32_t dim) const {
    uint32_t page, slot;
    Find(position, &page, &slot);
    return Read(launch_.Value(page, item_.slice_beat, slot, dim));
  }
  float ValueScaleAt(uint32_t position) const {
    uint32_t page, slot;
    Find(position, &page, &slot);
    return ReadScale(launch_.ValueScale(page, item_.slice_beat, slot));
  }
  // From a sum of products to a power of 2.
  float Factor(uint32_t position) const {
    uint32_t page, slot;
    Find(position, &page, &slot);
    const float scale = ZeroBelow(item_.scale * 1.44269502f, -60);
    const float key_scale =
        ReadScale(launch_.KeyScale(page, item_.slice_beat, slot));
    return ZeroBelow(scale * key_scale, -60);
  }
  float Dot(uint32_t position) const {
    uint32_t page, slot;
    Find(position, &page, &slot);
    std::vector<float> turns(kTurns, 0.0f);
    for (uint32_t d = 0; d < launch_.shape.head_dim; d += 2) {
      float product[2];
      for (uint32_t i = 0; i < 2; ++i) {
        product[i] = Read(launch_.Query(item_.query_beat, head_, d + i)) *
                     Read(launch_.Key(page, item_.slice_beat, slot, d + i));
      }
      float& turn = turns[d / 2 % kTurns];
      turn = turn + (product[0] + product[1]);
    }
    return TreeSum(turns);
  }
  // Everything that was added for a dim: first the rows within a group of 32
  // elements, then the turns.
  float Accumulated(uint32_t dim) const {
    const uint32_t head_dim = launch_.shape.head_dim;
    const uint32_t groups_per_row = std::max(1u, head_dim / 32);
    std::vector<float> of_turn;
    for (uint32_t turn = dim / 32; turn < kTurns; turn += groups_per_row) {
      std::vector<float> rows;
      for (uint32_t e = dim % 32; e < 32; e += std::min(head_dim, 32u)) {
        rows.push_back(turns_[turn][e]);
      }
      of_turn.push_back(TreeSum(rows));
    }
    return TreeSum(of_turn);
  }

  const DecodeCase& launch_;
  const DecodeItem item_;
  const uint32_t head_;
  float maximum_ = -kInfinity;
  float sum_ = 0.0f;
  std::array<std::array<float, 32>, kTurns> turns_ = {};
};

void SetFloat(CardMemory* out, size_t index, float value) {
  const uint32_t nan = 0x7FC00000;
  if (std::isnan(value)) {
    out->Set(index, nan);
  } else {
    out->Set(index, value);
  }
}

}  // namespace

CardMemory ModelOutputs(const DecodeCase& launch) {
  return ModelOutputs(launch, launch.shape.num_items);
}

CardMemory ModelOutputs(const DecodeCase& launch, uint32_t num_items) {
  CardMemory out = launch.out;
  const DecodeShape& shape = launch.shape;
  const uint32_t row_floats = OutRowBeats(shape.head_dim) * 16;
  for (uint32_t i = 0; i < num_items; ++i) {
    const DecodeItem item = launch.Item(i);
    for (uint32_t w = 0; w < 16; ++w) {
      out.Set(size_t{item.lse_beat} * 16 + w, 0.0f);
    }
    for (uint32_t head = 0; head < shape.group_heads; ++head) {
      HeadModel model(launch, item, head);
      model.Run();
      const size_t row = size_t{item.out_beat} * 16 + head * row_floats;
      for (uint32_t d = 0; d < row_floats; ++d) {
        SetFloat(&out, row + d, d < shape.head_dim ? model.Out(d) : 0.0f);
      }
      SetFloat(&out, size_t{item.lse_beat} * 16 + head, model.Lse());
    }
  }
  return out;
}

ExactAttention ExactItem(const DecodeCase& launch, const DecodeItem& item) {
  const DecodeShape& shape = launch.shape;
  ExactAttention result;
  for (uint32_t head = 0; head < shape.group_heads; ++head) {
    std::vector<double> score(item.num_tokens, 0.0);
    std::vector<double> out(shape.head_dim, 0.0);
    uint32_t page, slot;
    for (uint32_t token = 0; token < item.num_tokens; ++token) {
      launch.Place(item, token, &page, &slot);
      for (uint32_t d = 0; d < shape.head_dim; ++d) {
        score[token] += double{launch.Query(item.query_beat, head, d)} *
                        double{launch.Key(page, item.slice_beat, slot, d)};
      }
      score[token] *= double{item.scale} *
                      double{launch.KeyScale(page, item.slice_beat, slot)};
    }
    const double maximum = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (uint32_t token = 0; token < item.num_tokens; ++token) {
      const double weight = std::exp(score[token] - maximum);
      sum += weight;
      launch.Place(item, token, &page, &slot);
      const double scale = launch.ValueScale(page, item.slice_beat, slot);
      for (uint32_t d = 0; d < shape.head_dim; ++d) {
        out[d] += weight * scale *
                  double{launch.Value(page, item.slice_beat, slot, d)};
      }
    }
    for (const double o : out) result.out.push_back(o / sum);
    result.lse.push_back(maximum + std::log(sum));
  }
  return result;
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/weight_slice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "attention/float_formats.h"
#include "docs/examples/llm/engine/split_bf16.h"
#include "docs/examples/llm/engine/tile_rows.h"
#include "hwy/aligned_allocator.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// A slice this large stays in a core's second cache and is long enough that
// starting a product costs little.
constexpr size_t kSliceBytes = 256u << 10;
// Slices begin at multiples of a cache line.
constexpr size_t kSliceAlignment = 64;

uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

// Rows that tell products apart, as these take them.
struct TestRows {
  std::vector<float> values;      // [kMaxProductRows, inputs]
  std::vector<uint16_t> rounded;  // the same of bf16, if that is their type

  const std::byte* data() const {
    return rounded.empty() ? reinterpret_cast<const std::byte*>(values.data())
                           : reinterpret_cast<const std::byte*>(rounded.data());
  }
};

// Values that differ much in size, so that the order of a sum shows.
TestRows MakeTestRows(WeightType type, uint32_t inputs) {
  TestRows rows;
  rows.values.resize(size_t{kMaxProductRows} * inputs);
  uint32_t state = 1;
  for (float& value : rows.values) {
    state = state * 1664525u + 1013904223u;  // of Numerical Recipes
    const int exponent = static_cast<int>(state >> 28) - 8;
    value =
        std::ldexp(static_cast<float>(state >> 8) * 0x1p-24F - 0.5F, exponent);
  }
  if (type == WeightType::kBf16) {
    rows.rounded.resize(rows.values.size());
    SplitIntoBf16(rows.values, 1, rows.rounded.data());
    std::transform(rows.rounded.begin(), rows.rounded.end(),
                   rows.values.begin(), attention::Bf16ToF32);
  }
  return rows;
}

// The results of all test rows, a product's rows at a time.
std::vector<float> Products(const OneDnnMatmul& matmul,
                            const dnnl::memory& weights, size_t outputs,
                            const std::byte* x, size_t row_bytes) {
  const auto rows = static_cast<size_t>(matmul.rows());
  std::vector<float> y(size_t{kMaxProductRows} * outputs);
  std::vector<std::byte> scratch(matmul.scratch_bytes());
  for (size_t first = 0; first < kMaxProductRows; first += rows) {
    matmul.Run(x + first * row_bytes, weights, y.data() + first * outputs,
               scratch.data());
  }
  return y;
}

// Multiplies `rows` rows, of which `first` is the first, with a block of
// weights that begin at the third argument and end at the fourth.
using BlockProduct = absl::FunctionRef<void(
    size_t first, const std::byte* weights, const std::byte* end, float* y)>;

// Whether `rows` rows at a time give the test rows these bits.
bool GivesBits(const WeightSlice& slice, size_t block_bytes, size_t rows,
               const std::vector<float>& expected, BlockProduct multiply) {
  std::vector<float> y(rows * kOutputBlock);
  for (size_t first = 0; first < kMaxProductRows; first += rows) {
    const auto* block =
        static_cast<const std::byte*>(slice.weights.get_data_handle());
    for (size_t n = 0; n < slice.outputs; n += kOutputBlock) {
      multiply(first, block, block + block_bytes, y.data());
      block += block_bytes;
      const size_t count = std::min<size_t>(kOutputBlock, slice.outputs - n);
      for (size_t row = 0; row < rows; ++row) {
        const float* wanted =
            expected.data() + (first + row) * slice.outputs + n;
        if (std::memcmp(y.data() + row * kOutputBlock, wanted,
                        count * sizeof(float)) != 0) {
          return false;
        }
      }
    }
  }
  return true;
}

// Rows with the zeros behind them.
template <typename T>
std::vector<T> Padded(const std::vector<T>& rows, size_t inputs) {
  const size_t stride = PaddedInputs(inputs);
  std::vector<T> padded(rows.size() / inputs * stride);
  for (size_t row = 0; row < rows.size() / inputs; ++row) {
    std::copy_n(rows.data() + row * inputs, inputs,
                padded.data() + row * stride);
  }
  return padded;
}

// The chain with which a few rows have the same bits; 0 if none of those that
// oneDNN was seen to use is it.
uint32_t FindChain(Arithmetic arithmetic, uint32_t inputs,
                   const WeightSlice& slice, const TestRows& tests,
                   const std::vector<float>& expected) {
  const WeightType type = StoredType(arithmetic);
  const size_t block_bytes = OutputBlockBytes(type, slice.layout);
  if (block_bytes == 0 || arithmetic == Arithmetic::kBf16) return 0;
  const std::vector<float> x = Padded(tests.values, inputs);
  const auto fits = [&](uint32_t chain) {
    return GivesBits(slice, block_bytes, kMaxFewRows, expected,
                     [&](size_t first, const std::byte* weights,
                         const std::byte*, float* y) {
                       MultiplyFewRows(
                           {type, inputs, chain, kMaxFewRows,
                            x.data() + first * PaddedInputs(inputs)},
                           weights, nullptr, kOutputBlock, y);
                     });
  };
  const std::array<uint32_t, 4> chains = {inputs + inputs % 2, 512, 1024, 256};
  const auto found = std::find_if(chains.begin(), chains.end(), fits);
  return found == chains.end() ? 0 : *found;
}

// Whether tiles give these bits.
bool TilesFit(Arithmetic arithmetic, uint32_t inputs, const WeightSlice& slice,
              const TestRows& tests, const std::vector<float>& expected) {
  if (arithmetic != Arithmetic::kBf16 || !CanMultiplyTileRows()) return false;
  const size_t block_bytes = OutputBlockBytes(WeightType::kBf16, slice.layout);
  if (block_bytes == 0) return false;
  const TileLayout layout = {inputs, kMaxTileRows};
  std::vector<uint16_t> x(layout.size());
  return GivesBits(
      slice, block_bytes, kMaxTileRows, expected,
      [&](size_t first, const std::byte* weights, const std::byte* end,
          float* y) {
        for (size_t row = 0; row < kMaxTileRows; ++row) {
          uint16_t* const target = x.data() + layout.RowOffset(row);
          SplitIntoTiles(absl::MakeConstSpan(tests.values)
                             .subspan((first + row) * inputs, inputs),
                         absl::MakeConstSpan(&target, 1), layout.stride());
        }
        MultiplyTileRows({layout, x.data()}, weights, end, y);
      });
}

}  // namespace

WeightType StoredType(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kF32 ? WeightType::kF32 : WeightType::kBf16;
}

WeightType ProductType(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kBf16 ? WeightType::kBf16 : WeightType::kF32;
}

size_t WeightSlice::PaddedBytes() const {
  return (layout.get_size() + kSliceAlignment - 1) / kSliceAlignment *
         kSliceAlignment;
}

size_t WeightSlice::WideBytes() const {
  const dnnl::memory::desc& wanted = matmuls->reference().weights_layout();
  return layout == wanted ? 0 : wanted.get_size();
}

absl::Status FindProducts(Arithmetic arithmetic, uint32_t inputs,
                          WeightSlice* slice) {
  PAGED_KV_ASSIGN_OR_RETURN(slice->matmuls, MatmulsFor(ProductType(arithmetic),
                                                       inputs, slice->outputs));
  slice->layout = slice->matmuls->reference().weights_layout();
  if (arithmetic != Arithmetic::kWidened) return absl::OkStatus();
  if (OutputBlockBytes(WeightType::kF32, slice->layout) == 0) {
    return absl::UnimplementedError(
        "oneDNN packs f32 weights in an order of its own here");
  }
  slice->layout = PairedLayout(inputs, slice->outputs);
  return absl::OkStatus();
}

dnnl::memory ProductWeights(Arithmetic arithmetic, const WeightSlice& slice,
                            std::byte* wide) {
  if (arithmetic != Arithmetic::kWidened) return slice.weights;
  const dnnl::memory::desc& wanted =
      slice.matmuls->reference().weights_layout();
  const size_t from_bytes = OutputBlockBytes(WeightType::kBf16, slice.layout);
  const size_t to_bytes = OutputBlockBytes(WeightType::kF32, wanted);
  const auto inputs =
      static_cast<uint32_t>(to_bytes / (kOutputBlock * sizeof(float)));
  const auto* from =
      static_cast<const std::byte*>(slice.weights.get_data_handle());
  std::byte* to = wide;
  for (uint32_t n = 0; n < slice.outputs; n += kOutputBlock) {
    WidenBlock(from, inputs, reinterpret_cast<float*>(to));
    from += from_bytes;
    to += to_bytes;
  }
  return OnCpu(wanted, wide);
}

std::vector<WeightSlice> CutOutputs(uint32_t outputs, size_t bytes) {
  const uint32_t blocks = CeilDiv(outputs, kOutputBlock);
  const auto wanted =
      static_cast<uint32_t>((bytes + kSliceBytes - 1) / kSliceBytes);
  const uint32_t count = std::min(std::max(wanted, 1u), blocks);
  std::vector<WeightSlice> slices(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto block = [&](uint32_t slice) {
      return static_cast<uint32_t>(uint64_t{blocks} * slice / count);
    };
    slices[i].first = block(i) * kOutputBlock;
    slices[i].outputs =
        std::min(block(i + 1) * kOutputBlock, outputs) - slices[i].first;
  }
  return slices;
}

void ChooseProducts(Arithmetic arithmetic, uint32_t inputs,
                    WeightSlice* slice) {
  const WeightType type = ProductType(arithmetic);
  const TestRows tests = MakeTestRows(type, inputs);
  const size_t row_bytes = inputs * WeightTypeBytes(type);
  const auto wide = hwy::AllocateAligned<std::byte>(
      std::max(slice->WideBytes(), kSliceAlignment));
  const dnnl::memory weights = ProductWeights(arithmetic, *slice, wide.get());
  const auto products = [&](const OneDnnMatmul& matmul) {
    return Products(matmul, weights, slice->outputs, tests.data(), row_bytes);
  };
  const std::vector<float> expected = products(slice->matmuls->reference());
  for (const OneDnnMatmul& matmul : slice->matmuls->by_rows) {
    const std::vector<float> y = products(matmul);
    if (std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) == 0) {
      slice->by_rows.push_back(&matmul);
    }
  }
  slice->few_rows_chain =
      FindChain(arithmetic, inputs, *slice, tests, expected);
  slice->tile_rows = TilesFit(arithmetic, inputs, *slice, tests, expected);
}

}  // namespace paged_kv::llm

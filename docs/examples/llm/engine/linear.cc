// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "docs/examples/llm/engine/matmul_set.h"
#include "docs/examples/llm/engine/onednn_matmul.h"
#include "docs/examples/llm/engine/split_bf16.h"
#include "docs/examples/llm/model_file/weight_memory.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// Outputs come in blocks of so many in the orders that oneDNN prefers.
constexpr uint32_t kOutputBlock = 64;
// A slice this large stays in a core's second cache and is long enough that
// starting a product costs little.
constexpr size_t kSliceBytes = 256u << 10;
// Slices begin at multiples of a cache line.
constexpr size_t kSliceAlignment = 64;

struct Slice {
  uint32_t first = 0;  // output
  uint32_t outputs = 0;
  std::shared_ptr<const MatmulSet> matmuls;
  std::vector<const OneDnnMatmul*> by_rows;  // of these, ascending
  dnnl::memory weights;

  const dnnl::memory::desc& Layout() const {
    return matmuls->reference().weights_layout();
  }
  size_t PaddedBytes() const {
    return (Layout().get_size() + kSliceAlignment - 1) / kSliceAlignment *
           kSliceAlignment;
  }
};

uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

// As many slices as kSliceBytes asks for, of equal size but for one block.
std::vector<Slice> CutOutputs(uint32_t outputs, size_t bytes) {
  const uint32_t blocks = CeilDiv(outputs, kOutputBlock);
  const auto wanted =
      static_cast<uint32_t>((bytes + kSliceBytes - 1) / kSliceBytes);
  const uint32_t count = std::min(std::max(wanted, 1u), blocks);
  std::vector<Slice> slices(count);
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

absl::Status CheckMatrices(absl::Span<const Matrix> matrices,
                           const std::vector<float>& bias,
                           const LinearOptions& options) {
  if (matrices.empty()) return absl::InvalidArgumentError("no matrix");
  if (options.activation_parts < 1 || options.activation_parts > 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "activation_parts is ", options.activation_parts, ", not 1 to 3"));
  }
  uint64_t rows = 0;
  for (const Matrix& matrix : matrices) {
    if (matrix.cols != matrices[0].cols || matrix.type != matrices[0].type) {
      return absl::InvalidArgumentError(absl::StrCat(
          "matrices that are one layer differ: ", matrices[0].cols,
          " columns of ", WeightTypeName(matrices[0].type), " and ",
          matrix.cols, " of ", WeightTypeName(matrix.type)));
    }
    rows += matrix.rows;
  }
  if (!bias.empty() && bias.size() != rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("a bias of ", bias.size(), " for ", rows, " outputs"));
  }
  return absl::OkStatus();
}

// Rows [first, first + rows) of the stacked matrices, as `type`.
std::vector<std::byte> CopyRows(absl::Span<const Matrix> matrices,
                                uint32_t first, uint32_t rows,
                                WeightType type) {
  const size_t cols = matrices[0].cols;
  const size_t row_bytes = cols * WeightTypeBytes(type);
  std::vector<std::byte> copy(rows * row_bytes);
  uint32_t begin = 0;  // of the matrix, in stacked rows
  for (const Matrix& matrix : matrices) {
    const uint32_t from = std::max(first, begin);
    const uint32_t to = std::min(first + rows, begin + matrix.rows);
    for (uint32_t row = from; row < to; ++row) {
      std::byte* target = copy.data() + (row - first) * row_bytes;
      const size_t source = (row - begin) * cols;
      if (matrix.type == WeightType::kF32) {
        std::memcpy(target, matrix.f32() + source, row_bytes);
      } else if (type == WeightType::kBf16) {
        std::memcpy(target, matrix.bf16() + source, row_bytes);
      } else {
        for (size_t i = 0; i < cols; ++i) {
          const float value = attention::Bf16ToF32(matrix.bf16()[source + i]);
          std::memcpy(target + i * sizeof(float), &value, sizeof(float));
        }
      }
    }
    begin += matrix.rows;
  }
  return copy;
}

}  // namespace

// Values that differ much in size, so that the order of a sum shows.
std::vector<float> TestRows(size_t n) {
  std::vector<float> values(n);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;  // of Numerical Recipes
    const int exponent = static_cast<int>(state >> 28) - 8;
    value =
        std::ldexp(static_cast<float>(state >> 8) * 0x1p-24F - 0.5F, exponent);
  }
  return values;
}

// The results of all test rows, a product's rows at a time.
std::vector<float> Products(const OneDnnMatmul& matmul, const Slice& slice,
                            const std::byte* x, size_t row_bytes) {
  const auto rows = static_cast<size_t>(matmul.rows());
  std::vector<float> y(size_t{kMaxProductRows} * slice.outputs);
  std::vector<std::byte> scratch(matmul.scratch_bytes());
  for (size_t first = 0; first < kMaxProductRows; first += rows) {
    matmul.Run(x + first * row_bytes, slice.weights,
               y.data() + first * slice.outputs, scratch.data());
  }
  return y;
}

// Takes the products of the slice's set but for those that give a row other
// bits than that of kReferenceRows rows does: oneDNN has other kernels for few
// rows, and cuts long sums for many.
void KeepEqualProducts(WeightType type, uint32_t inputs, Slice* slice) {
  const std::vector<float> values = TestRows(size_t{kMaxProductRows} * inputs);
  std::vector<uint16_t> rounded;
  const auto* x = reinterpret_cast<const std::byte*>(values.data());
  if (type == WeightType::kBf16) {
    rounded.resize(values.size());
    SplitIntoBf16(values, 1, rounded.data());
    x = reinterpret_cast<const std::byte*>(rounded.data());
  }
  const size_t row_bytes = inputs * WeightTypeBytes(type);
  const std::vector<float> expected =
      Products(slice->matmuls->reference(), *slice, x, row_bytes);
  for (const OneDnnMatmul& matmul : slice->matmuls->by_rows) {
    const std::vector<float> y = Products(matmul, *slice, x, row_bytes);
    if (std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) == 0) {
      slice->by_rows.push_back(&matmul);
    }
  }
}

// x as the products take it, in blocks of Impl::block_rows rows.
struct BlockedRows {
  const std::byte* blocks = nullptr;
  const std::byte* last = nullptr;  // the block that is not full, if any
};

struct Linear::Impl {
  uint32_t inputs = 0;
  uint32_t outputs = 0;
  WeightType type = WeightType::kF32;
  uint32_t parts = 1;                     // rows of a product per row of x
  uint32_t block_rows = kMaxProductRows;  // of a product at most
  std::vector<float> bias;
  WeightMemory packed;
  std::vector<Slice> slices;  // over `packed`
  size_t weight_bytes = 0;

  // Rows of x in one product.
  uint32_t BlockTokens() const { return block_rows / parts; }

  absl::Status Pack(absl::Span<const Matrix> matrices);
  BlockedRows Block(absl::Span<const float> x, size_t rows,
                    LinearScratch& scratch,
                    attention::ParallelFor& parallel) const;
  void RunSlice(const Slice& slice, const BlockedRows& x, size_t rows, float* y,
                LinearScratch::Worker& worker) const;
  void Finish(const Slice& slice, const float* products, size_t rows,
              float* y) const;
};

Linear::Linear(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

absl::Status Linear::Impl::Pack(absl::Span<const Matrix> matrices) {
  slices =
      CutOutputs(outputs, size_t{inputs} * outputs * WeightTypeBytes(type));
  weight_bytes = 0;
  const OneDnnSingleThread single_thread;
  for (Slice& slice : slices) {
    PAGED_KV_ASSIGN_OR_RETURN(slice.matmuls,
                              MatmulsFor(type, inputs, slice.outputs));
    weight_bytes += slice.PaddedBytes();
  }
  PAGED_KV_ASSIGN_OR_RETURN(packed, WeightMemory::Allocate(weight_bytes));
  std::byte* target = packed.data();
  for (Slice& slice : slices) {
    const std::vector<std::byte> plain =
        CopyRows(matrices, slice.first, slice.outputs, type);
    PAGED_KV_ASSIGN_OR_RETURN(
        slice.weights, PackWeights(type, inputs, slice.outputs, plain.data(),
                                   slice.Layout(), target));
    target += slice.PaddedBytes();
    KeepEqualProducts(type, inputs, &slice);
    block_rows = std::min(block_rows,
                          static_cast<uint32_t>(slice.by_rows.back()->rows()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Linear> Linear::Create(absl::Span<const Matrix> matrices,
                                      std::vector<float> bias,
                                      const LinearOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(CheckMatrices(matrices, bias, options));
  auto impl = std::make_unique<Impl>();
  impl->inputs = matrices[0].cols;
  for (const Matrix& matrix : matrices) impl->outputs += matrix.rows;
  impl->type = matrices[0].type;
  impl->bias = std::move(bias);
  if (impl->type == WeightType::kBf16) {
    impl->parts = options.activation_parts;
    const absl::Status packed = impl->Pack(matrices);
    if (packed.ok()) return Linear(std::move(impl));
    if (!absl::IsUnimplemented(packed)) return packed;
    impl->type = WeightType::kF32;
    impl->parts = 1;
  }
  PAGED_KV_RETURN_IF_ERROR(impl->Pack(matrices));
  return Linear(std::move(impl));
}

uint32_t Linear::inputs() const { return impl_->inputs; }
uint32_t Linear::outputs() const { return impl_->outputs; }
size_t Linear::bytes() const {
  return impl_->weight_bytes + impl_->bias.size() * sizeof(float);
}

void Linear::Row(uint32_t output, absl::Span<float> weights) const {
  PAGED_KV_CHECK(output < impl_->outputs);
  PAGED_KV_CHECK(weights.size() == impl_->inputs);
  const auto slice = std::find_if(
      impl_->slices.begin(), impl_->slices.end(),
      [&](const Slice& s) { return output < s.first + s.outputs; });
  PAGED_KV_CHECK(slice != impl_->slices.end());
  UnpackColumn(slice->weights, output - slice->first, weights.data());
}

// f32 rows are read where they are, but for a last block that needs padding.
// bf16 rows come out as blocks that hold the first parts of BlockTokens() rows,
// then their second ones. Padding is whatever was there: no result reads it.
BlockedRows Linear::Impl::Block(absl::Span<const float> x, size_t rows,
                                LinearScratch& scratch,
                                attention::ParallelFor& parallel) const {
  const size_t block_values = size_t{block_rows} * inputs;
  const size_t tokens = BlockTokens();
  const size_t blocks = (rows + tokens - 1) / tokens;
  const auto* bytes = reinterpret_cast<const std::byte*>(x.data());
  if (type == WeightType::kF32) {
    const absl::Span<const float> rest =
        x.subspan(rows / tokens * block_values);
    scratch.f32.resize(std::max(scratch.f32.size(), block_values));
    std::copy(rest.begin(), rest.end(), scratch.f32.begin());
    return {bytes, reinterpret_cast<const std::byte*>(scratch.f32.data())};
  }
  scratch.bf16.resize(std::max(scratch.bf16.size(), blocks * block_values));
  parallel.Run(blocks, [&](size_t block, size_t) {
    const size_t first = block * tokens;
    const size_t count = std::min(tokens, rows - first);
    SplitIntoBf16(x.subspan(first * inputs, count * inputs), parts,
                  scratch.bf16.data() + block * block_values);
  });
  bytes = reinterpret_cast<const std::byte*>(scratch.bf16.data());
  return {bytes, bytes + rows / tokens * block_values * sizeof(uint16_t)};
}

// Adds up the parts and the bias.
void Linear::Impl::Finish(const Slice& slice, const float* products,
                          size_t rows, float* y) const {
  const size_t n = slice.outputs;
  for (size_t row = 0; row < rows; ++row) {
    float* target = y + row * outputs + slice.first;
    const float* source = products + row * n;
    std::copy_n(source, n, target);
    for (uint32_t part = 1; part < parts; ++part) {
      const float* more = source + part * rows * n;
      for (size_t i = 0; i < n; ++i) target[i] += more[i];
    }
    if (bias.empty()) continue;
    const float* add = bias.data() + slice.first;
    for (size_t i = 0; i < n; ++i) target[i] += add[i];
  }
}

void Linear::Impl::RunSlice(const Slice& slice, const BlockedRows& x,
                            size_t rows, float* y,
                            LinearScratch::Worker& worker) const {
  const OneDnnSingleThread single_thread;
  const size_t row_bytes = inputs * WeightTypeBytes(type);
  const size_t tokens = BlockTokens();
  worker.y.resize(
      std::max(worker.y.size(), size_t{block_rows} * slice.outputs));
  for (size_t first = 0; first < rows; first += tokens) {
    const size_t count = std::min(tokens, rows - first);
    const auto matmul = std::find_if(
        slice.by_rows.begin(), slice.by_rows.end(), [&](const auto& m) {
          return m->rows() >= static_cast<int64_t>(count * parts);
        });
    PAGED_KV_CHECK(matmul != slice.by_rows.end());
    worker.onednn.resize(
        std::max(worker.onednn.size(), (*matmul)->scratch_bytes()));
    const std::byte* block =
        count == tokens ? x.blocks + first / tokens * block_rows * row_bytes
                        : x.last;
    (*matmul)->Run(block, slice.weights, worker.y.data(), worker.onednn.data());
    Finish(slice, worker.y.data(), count, y + first * outputs);
  }
}

void Linear::Run(absl::Span<const float> x, absl::Span<float> y,
                 LinearScratch& scratch,
                 attention::ParallelFor& parallel) const {
  const size_t rows = x.size() / impl_->inputs;
  PAGED_KV_CHECK(x.size() == rows * impl_->inputs);
  PAGED_KV_CHECK(y.size() == rows * impl_->outputs);
  scratch.workers.resize(
      std::max(scratch.workers.size(), parallel.num_workers()));
  const BlockedRows blocked = impl_->Block(x, rows, scratch, parallel);
  parallel.Run(impl_->slices.size(), [&](size_t slice, size_t worker) {
    impl_->RunSlice(impl_->slices[slice], blocked, rows, y.data(),
                    scratch.workers[worker]);
  });
}

}  // namespace paged_kv::llm

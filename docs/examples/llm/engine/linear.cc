// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/linear.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "docs/examples/llm/engine/few_rows_tasks.h"
#include "docs/examples/llm/engine/matmul_set.h"
#include "docs/examples/llm/engine/onednn_matmul.h"
#include "docs/examples/llm/engine/packed_memory.h"
#include "docs/examples/llm/engine/split_bf16.h"
#include "docs/examples/llm/engine/tile_groups.h"
#include "docs/examples/llm/engine/tile_rows.h"
#include "docs/examples/llm/engine/weight_slice.h"
#include "hwy/aligned_allocator.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// Rows up to which our products of tiles beat those of oneDNN, which read the
// weights more slowly and use what was read better.
constexpr uint32_t kMaxTileProductRows = 2 * kMaxTileRows;
// The same for products of f32 activations. On two cores of a Xeon with
// AVX-512, 100 rows take four fifths of the time of oneDNN's, 200 as long.
constexpr uint32_t kMaxFewProductRows = 4 * kMaxFewRows;

absl::Status CheckMatrices(absl::Span<const Matrix> matrices,
                           const std::vector<float>& bias,
                           const LinearOptions& options) {
  if (matrices.empty()) return absl::InvalidArgumentError("no matrix");
  if (options.activation_parts > kMaxParts) {
    return absl::InvalidArgumentError(absl::StrCat(
        "activation_parts is ", options.activation_parts, ", not 0 to 3"));
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

uint32_t DefaultActivationParts() { return CanMultiplyTileRows() ? 2 : 0; }

size_t LinearScratch::bytes() const {
  size_t sum =
      bf16.capacity() * sizeof(uint16_t) + f32.capacity() * sizeof(float);
  for (const Worker& worker : workers) {
    sum += worker.y.capacity() * sizeof(float) + worker.onednn.capacity() +
           worker.wide_bytes;
  }
  return sum;
}

std::byte* LinearScratch::Worker::Wide(size_t bytes) {
  if (bytes > wide_bytes) {
    wide = hwy::AllocateAligned<std::byte>(bytes);
    wide_bytes = bytes;
  }
  return wide.get();
}

// x as the products take it, in blocks of Impl::block_rows rows.
struct BlockedRows {
  const std::byte* blocks = nullptr;
  const std::byte* last = nullptr;  // the block that is not full, if any
};

struct Linear::Impl {
  uint32_t inputs = 0;
  uint32_t outputs = 0;
  Arithmetic arithmetic = Arithmetic::kF32;
  uint32_t parts = 1;                     // rows of a product per row of x
  uint32_t block_rows = kMaxProductRows;  // of a product at most
  std::vector<float> bias;
  std::shared_ptr<std::byte> packed;
  std::vector<WeightSlice> slices;  // over `packed`
  // All of them, or none where our own products would give other bits.
  std::vector<OutputBlock> output_blocks;
  size_t weight_bytes = 0;

  // Rows of x in one product.
  uint32_t BlockTokens() const { return block_rows / parts; }

  absl::Status Pack(absl::Span<const Matrix> matrices);
  BlockedRows Block(absl::Span<const float> x, size_t rows,
                    LinearScratch& scratch,
                    attention::ParallelFor& parallel) const;
  void RunSlice(const WeightSlice& slice, const BlockedRows& x, size_t rows,
                float* y, LinearScratch::Worker& worker) const;
  void Finish(uint32_t first, size_t count, const float* products,
              size_t stride, size_t rows, float* y) const;

  void AddBlocks(const WeightSlice& slice);
  bool AreFew(size_t rows) const {
    return !output_blocks.empty() && arithmetic != Arithmetic::kBf16 &&
           rows <= kMaxFewProductRows;
  }
  bool FitTiles(size_t rows) const {
    return !output_blocks.empty() && arithmetic == Arithmetic::kBf16 &&
           rows * parts <= kMaxTileProductRows;
  }
  const float* PadRows(absl::Span<const float> x, size_t rows,
                       LinearScratch& scratch) const;
  void RunFew(absl::Span<const float> x, size_t rows, float* y,
              LinearScratch& scratch, attention::ParallelFor& parallel) const;
  void RunTiles(absl::Span<const float> x, size_t rows, float* y,
                LinearScratch& scratch, attention::ParallelFor& parallel) const;
};

Linear::Linear(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

absl::Status Linear::Impl::Pack(absl::Span<const Matrix> matrices) {
  const WeightType type = StoredType(arithmetic);
  slices = CutOutputs(outputs, size_t{inputs} * outputs *
                                   WeightTypeBytes(ProductType(arithmetic)));
  output_blocks.clear();
  block_rows = kMaxProductRows;
  weight_bytes = 0;
  const OneDnnSingleThread single_thread;
  for (WeightSlice& slice : slices) {
    PAGED_KV_RETURN_IF_ERROR(FindProducts(arithmetic, inputs, &slice));
    weight_bytes += slice.PaddedBytes();
  }
  PAGED_KV_ASSIGN_OR_RETURN(packed, AllocatePacked(weight_bytes));
  std::byte* target = packed.get();
  for (WeightSlice& slice : slices) {
    const std::vector<std::byte> plain =
        CopyRows(matrices, slice.first, slice.outputs, type);
    PAGED_KV_ASSIGN_OR_RETURN(
        slice.weights, PackWeights(type, inputs, slice.outputs, plain.data(),
                                   slice.layout, target));
    target += slice.PaddedBytes();
    ChooseProducts(arithmetic, inputs, &slice);
    block_rows = std::min(block_rows,
                          static_cast<uint32_t>(slice.by_rows.back()->rows()));
    AddBlocks(slice);
  }
  const bool all_equal =
      std::all_of(slices.begin(), slices.end(), [&](const WeightSlice& slice) {
        return arithmetic == Arithmetic::kBf16 ? slice.tile_rows
                                               : slice.few_rows_chain > 0;
      });
  if (!all_equal) output_blocks.clear();
  // Weights would have to be widened anew for each decode step.
  if (!all_equal && arithmetic == Arithmetic::kWidened) {
    return absl::UnimplementedError("oneDNN's f32 sums are not known here");
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
  impl->bias = std::move(bias);
  if (matrices[0].type == WeightType::kBf16) {
    const bool split = options.activation_parts > 0;
    impl->arithmetic = split ? Arithmetic::kBf16 : Arithmetic::kWidened;
    impl->parts = std::max(options.activation_parts, 1u);
    const absl::Status packed = impl->Pack(matrices);
    if (packed.ok()) return Linear(std::move(impl));
    if (!absl::IsUnimplemented(packed)) return packed;
    impl->arithmetic = Arithmetic::kF32;
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
      [&](const WeightSlice& s) { return output < s.first + s.outputs; });
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
  if (arithmetic != Arithmetic::kBf16) {
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

// Adds up the parts and the bias of outputs [first, first + count).
// products: [parts, rows, stride].
void Linear::Impl::Finish(uint32_t first, size_t count, const float* products,
                          size_t stride, size_t rows, float* y) const {
  const float* const add = bias.empty() ? nullptr : bias.data() + first;
  for (size_t row = 0; row < rows; ++row) {
    JoinParts(products + row * stride, rows * stride, parts, add,
              absl::MakeSpan(y + row * outputs + first, count));
  }
}

void Linear::Impl::AddBlocks(const WeightSlice& slice) {
  const size_t block_bytes =
      OutputBlockBytes(StoredType(arithmetic), slice.layout);
  const auto* weights =
      static_cast<const std::byte*>(slice.weights.get_data_handle());
  for (uint32_t first = 0; first < slice.outputs; first += kOutputBlock) {
    output_blocks.push_back({slice.first + first,
                             std::min(kOutputBlock, slice.outputs - first),
                             slice.few_rows_chain, weights});
    weights += block_bytes;
  }
}

// [rows, PaddedInputs(inputs)]: x itself where it needs no padding, else valid
// until the next use of `scratch`.
const float* Linear::Impl::PadRows(absl::Span<const float> x, size_t rows,
                                   LinearScratch& scratch) const {
  const size_t stride = PaddedInputs(inputs);
  if (stride == inputs) return x.data();
  scratch.f32.assign(rows * stride, 0.0F);
  for (size_t row = 0; row < rows; ++row) {
    std::copy_n(x.data() + row * inputs, inputs,
                scratch.f32.data() + row * stride);
  }
  return scratch.f32.data();
}

void Linear::Impl::RunFew(absl::Span<const float> x, size_t rows, float* y,
                          LinearScratch& scratch,
                          attention::ParallelFor& parallel) const {
  const float* const padded = PadRows(x, rows, scratch);
  const size_t groups = (rows + kMaxFewRows - 1) / kMaxFewRows;
  const FewRowsTasks tasks(output_blocks, parallel.num_workers());
  parallel.Run(tasks.size(), [&](size_t i, size_t) {
    const FewRowsTask task = tasks[i];
    const OutputBlock& block = task.block;
    // Threads take tasks by turns.
    const size_t next = i + parallel.num_workers();
    const std::byte* const next_weights =
        next < tasks.size() ? tasks[next].block.weights : nullptr;
    alignas(64) float products[kMaxFewRows * kOutputBlock];
    for (size_t group = 0; group < groups; ++group) {
      const size_t first = group * rows / groups;
      const size_t count = (group + 1) * rows / groups - first;
      MultiplyFewRows(
          {StoredType(arithmetic), inputs, block.chain,
           static_cast<uint32_t>(count), padded + first * PaddedInputs(inputs)},
          block.weights, group + 1 < groups ? block.weights : next_weights,
          task.width, products);
      Finish(block.first, block.outputs, products, kOutputBlock, count,
             y + first * outputs);
    }
  });
}

// A block's weights stay in the second cache while all groups of rows pass by.
void Linear::Impl::RunTiles(absl::Span<const float> x, size_t rows, float* y,
                            LinearScratch& scratch,
                            attention::ParallelFor& parallel) const {
  const TileGroups groups = {rows, inputs, parts};
  scratch.bf16.resize(std::max(scratch.bf16.size(), groups.size()));
  SplitIntoGroups(groups, x, scratch.bf16.data(), parallel);
  const std::byte* const end = packed.get() + weight_bytes;
  parallel.Run(output_blocks.size(), [&](size_t i, size_t) {
    const OutputBlock& block = output_blocks[i];
    alignas(64) float products[kMaxTileRows * kOutputBlock];
    for (size_t group = 0; group < groups.groups(); ++group) {
      MultiplyTileRows(
          {groups.Layout(group), scratch.bf16.data() + groups.Offset(group)},
          block.weights, end, products);
      Finish(block.first, block.outputs, products, kOutputBlock,
             groups.Rows(group), y + groups.First(group) * outputs);
    }
  });
}

void Linear::Impl::RunSlice(const WeightSlice& slice, const BlockedRows& x,
                            size_t rows, float* y,
                            LinearScratch::Worker& worker) const {
  const OneDnnSingleThread single_thread;
  const size_t row_bytes = inputs * WeightTypeBytes(ProductType(arithmetic));
  const size_t tokens = BlockTokens();
  const dnnl::memory weights =
      ProductWeights(arithmetic, slice, worker.Wide(slice.WideBytes()));
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
    (*matmul)->Run(block, weights, worker.y.data(), worker.onednn.data());
    Finish(slice.first, slice.outputs, worker.y.data(), slice.outputs, count,
           y + first * outputs);
  }
}

void Linear::Run(absl::Span<const float> x, absl::Span<float> y,
                 LinearScratch& scratch,
                 attention::ParallelFor& parallel) const {
  const size_t rows = x.size() / impl_->inputs;
  PAGED_KV_CHECK(x.size() == rows * impl_->inputs);
  PAGED_KV_CHECK(y.size() == rows * impl_->outputs);
  if (rows == 0) return;
  if (impl_->FitTiles(rows)) {
    return impl_->RunTiles(x, rows, y.data(), scratch, parallel);
  }
  if (impl_->AreFew(rows)) {
    return impl_->RunFew(x, rows, y.data(), scratch, parallel);
  }
  scratch.workers.resize(
      std::max(scratch.workers.size(), parallel.num_workers()));
  const BlockedRows blocked = impl_->Block(x, rows, scratch, parallel);
  parallel.Run(impl_->slices.size(), [&](size_t slice, size_t worker) {
    impl_->RunSlice(impl_->slices[slice], blocked, rows, y.data(),
                    scratch.workers[worker]);
  });
}

}  // namespace paged_kv::llm

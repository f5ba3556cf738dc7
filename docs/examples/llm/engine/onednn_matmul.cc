// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/onednn_matmul.h"

#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "docs/examples/llm/engine/few_rows.h"
#include "paged_kv/check.h"

// Debian builds oneDNN with GCC's OpenMP. Declared here because Clang finds no
// omp.h of GCC's, though it links with the library.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace paged_kv::llm {
namespace {

using dnnl::memory;

const dnnl::engine& Cpu() {
  static const dnnl::engine* const engine =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// Streams are cheap to use and may be shared: ours run in order and at once.
dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Cpu());
  return stream;
}

memory::data_type TypeOf(WeightType type) {
  return type == WeightType::kF32 ? memory::data_type::f32
                                  : memory::data_type::bf16;
}

absl::Status Unavailable(const dnnl::error& error, const char* what) {
  return absl::UnimplementedError(
      absl::StrCat("oneDNN has no ", what, " here: ", error.what()));
}

}  // namespace

OneDnnSingleThread::OneDnnSingleThread()
    : threads_before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}

OneDnnSingleThread::~OneDnnSingleThread() {
  omp_set_num_threads(threads_before_);
}

absl::StatusOr<OneDnnMatmul> OneDnnMatmul::Create(WeightType type, int64_t rows,
                                                  int64_t k, int64_t n,
                                                  const memory::desc* layout) {
  const OneDnnSingleThread single_thread;
  OneDnnMatmul result;
  result.rows_ = rows;
  result.x_ = memory::desc({rows, k}, TypeOf(type), memory::format_tag::ab);
  result.y_ =
      memory::desc({rows, n}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc weights =
      layout != nullptr
          ? *layout
          : memory::desc({k, n}, TypeOf(type), memory::format_tag::any);
  try {
    dnnl::primitive_attr attributes;
    // Ours, one per thread: the library's own is shared between primitives.
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc primitive(
        dnnl::matmul::desc(result.x_, weights, result.y_), attributes, Cpu());
    result.weights_ = primitive.weights_desc();
    result.scratch_ = primitive.scratchpad_desc();
    result.matmul_ = dnnl::matmul(primitive);
  } catch (const dnnl::error& error) {
    return Unavailable(
        error, type == WeightType::kF32 ? "f32 product" : "bf16 product");
  }
  return result;
}

void OneDnnMatmul::Run(const void* x, const memory& weights, float* y,
                       void* scratch) const {
  // oneDNN reads x through a pointer that is not const.
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, memory(x_, Cpu(), const_cast<void*>(x))},
      {DNNL_ARG_WEIGHTS, weights},
      {DNNL_ARG_DST, memory(y_, Cpu(), y)}};
  if (scratch_bytes() > 0) {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, memory(scratch_, Cpu(), scratch));
  }
  matmul_.execute(Stream(), arguments);
}

memory::desc PairedLayout(int64_t k, int64_t n) {
  return {{k, n}, memory::data_type::bf16, memory::format_tag::BA16a64b2a};
}

memory OnCpu(const memory::desc& layout, void* data) {
  return {layout, Cpu(), data};
}

absl::StatusOr<memory> PackWeights(WeightType type, int64_t k, int64_t n,
                                   const void* rows, const memory::desc& layout,
                                   void* target) {
  const OneDnnSingleThread single_thread;
  try {
    memory packed = OnCpu(layout, target);
    memory plain({{k, n}, TypeOf(type), memory::format_tag::ba}, Cpu(),
                 const_cast<void*>(rows));
    dnnl::reorder(plain, packed).execute(Stream(), plain, packed);
    return packed;
  } catch (const dnnl::error& error) {
    return Unavailable(error, "reorder of weights");
  }
}

// Where an element lies: oneDNN's blocked layouts, as its documentation of
// dnnl_blocking_desc_t gives them.
int64_t ElementOffset(const dnnl_memory_desc_t& layout, int64_t row,
                      int64_t column) {
  const dnnl_blocking_desc_t& blocking = layout.format_desc.blocking;
  int64_t place[] = {row, column};
  int64_t offset = layout.offset0;
  int64_t stride = 1;
  for (int i = blocking.inner_nblks; i-- > 0;) {
    int64_t& index = place[blocking.inner_idxs[i]];
    offset += index % blocking.inner_blks[i] * stride;
    index /= blocking.inner_blks[i];
    stride *= blocking.inner_blks[i];
  }
  return offset + place[0] * blocking.strides[0] +
         place[1] * blocking.strides[1];
}

size_t OutputBlockBytes(WeightType type, const memory::desc& layout) {
  const dnnl_memory_desc_t& d = layout.data;
  if (d.format_kind != dnnl_blocked || d.ndims != 2 || d.offset0 != 0) return 0;
  // Blocks of 16 steps, each of all outputs; a step is one input or a pair.
  constexpr int64_t kSteps = 16;
  const bool pairs = type == WeightType::kBf16;
  const dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
  const auto is_inner = [&](int i, int64_t dimension, int64_t size) {
    return blocking.inner_idxs[i] == dimension &&
           blocking.inner_blks[i] == size;
  };
  const bool known =
      blocking.inner_nblks == (pairs ? 3 : 2) && is_inner(0, 0, kSteps) &&
      is_inner(1, 1, kOutputBlock) && (!pairs || is_inner(2, 0, 2)) &&
      blocking.strides[0] == kSteps * kOutputBlock * (pairs ? 2 : 1);
  if (!known) return 0;
  return static_cast<size_t>(blocking.strides[1]) * WeightTypeBytes(type);
}

void UnpackColumn(const memory& packed, int64_t column, float* values) {
  const dnnl_memory_desc_t& layout = packed.get_desc().data;
  PAGED_KV_CHECK(layout.format_kind == dnnl_blocked && layout.ndims == 2);
  const void* data = packed.get_data_handle();
  for (int64_t row = 0; row < layout.dims[0]; ++row) {
    const int64_t at = ElementOffset(layout, row, column);
    values[row] =
        layout.data_type == dnnl_f32
            ? static_cast<const float*>(data)[at]
            : attention::Bf16ToF32(static_cast<const uint16_t*>(data)[at]);
  }
}

}  // namespace paged_kv::llm

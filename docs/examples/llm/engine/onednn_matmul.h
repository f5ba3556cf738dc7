// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A matrix product of oneDNN on one thread. The only header that includes
// oneDNN; the engine's threads are the ParallelFor that attention uses too, so
// that two pools do not spin against each other.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ONEDNN_MATMUL_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ONEDNN_MATMUL_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "docs/examples/llm/model_file/model.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace paged_kv::llm {

// y [rows, n] = x [rows, k] W, for fixed sizes. x is of the weights' type, y is
// f32, both dense.
//
// Thread safety: const methods may run concurrently, each with its own arrays.
class OneDnnMatmul {
 public:
  // `layout`: that of weights which other kernels of the same k and n share, or
  // null to let oneDNN choose. Unimplemented where oneDNN has no kernel for
  // these types on this processor.
  static absl::StatusOr<OneDnnMatmul> Create(WeightType type, int64_t rows,
                                             int64_t k, int64_t n,
                                             const dnnl::memory::desc* layout);

  int64_t rows() const { return rows_; }
  const dnnl::memory::desc& weights_layout() const { return weights_; }
  size_t scratch_bytes() const { return scratch_.get_size(); }

  // `weights` has the layout weights_layout(); `scratch` has scratch_bytes().
  void Run(const void* x, const dnnl::memory& weights, float* y,
           void* scratch) const;

 private:
  int64_t rows_ = 0;
  dnnl::memory::desc x_, weights_, y_, scratch_;
  dnnl::matmul matmul_;
};

// The layout of bf16 weights [k, n] that MultiplyFewRows() (few_rows.h) reads.
dnnl::memory::desc PairedLayout(int64_t k, int64_t n);

// What lies at `data`, which stays the caller's, for OneDnnMatmul::Run().
dnnl::memory OnCpu(const dnnl::memory::desc& layout, void* data);

// Copies a row-major matrix [n, k] into weights of the given layout, at
// `target`, where layout.get_size() bytes are and stay.
absl::StatusOr<dnnl::memory> PackWeights(WeightType type, int64_t k, int64_t n,
                                         const void* rows,
                                         const dnnl::memory::desc& layout,
                                         void* target);

// Bytes from one block of kOutputBlock outputs to the next where the layout is
// the one that MultiplyFewRows() (few_rows.h) reads; 0 where it is another.
size_t OutputBlockBytes(WeightType type, const dnnl::memory::desc& layout);

// Column n of packed weights [k, n], as f32 [k].
void UnpackColumn(const dnnl::memory& packed, int64_t column, float* values);

// While it lives, oneDNN uses the calling thread alone.
class OneDnnSingleThread {
 public:
  OneDnnSingleThread();
  ~OneDnnSingleThread();
  OneDnnSingleThread(const OneDnnSingleThread&) = delete;
  OneDnnSingleThread& operator=(const OneDnnSingleThread&) = delete;

 private:
  int threads_before_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ONEDNN_MATMUL_H_

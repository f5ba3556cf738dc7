// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_ROOFS_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_ROOFS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/isa.h"
#include "attention/parallel_for.h"
#include "benchmarks/tool/kernels/kv_batch.h"
#include "benchmarks/tool/kernels/roof_kernels.h"

namespace paged_kv::tool {

// What bounds an attention step over some pages, measured with the same
// threads and instruction set over the same memory:
//   stream  all memory of the pages, read in order
//   gather  the K and V of every page, layer and KV head in the order in which
//           a kernel walks through the table, layer by layer, with the next
//           pages prefetched in lockstep and no other work
//   peak    each kind of multiply-add that the instruction set has for the
//           pages' type
//
// Thread safety: none.
class Roofs {
 public:
  // Borrows both. `isa` is resolved.
  Roofs(const KvBatch& batch, attention::Isa isa,
        attention::ParallelFor& parallel);

  // Tries all ways to read and keeps the best ones.
  void Calibrate();

  // One measurement's work, and how much that is.
  void Stream() const;
  void Gather() const;
  void Peak(size_t kind) const;
  double StreamBytes() const { return static_cast<double>(stream_bytes_); }
  double GatherBytes() const { return static_cast<double>(gather_bytes_); }
  double PeakFlops(size_t kind) const;
  size_t num_peaks() const { return peaks_.size(); }
  const char* peak_name(size_t kind) const { return peaks_[kind].kernel.name; }

  // How the best ways read.
  size_t streams() const { return stream_.streams; }
  size_t stream_ahead_bytes() const { return stream_.ahead_bytes; }
  size_t gather_ahead_bytes() const { return gather_ahead_ * piece_bytes_; }

 private:
  struct StreamWay {
    size_t streams = 1;
    size_t ahead_bytes = 0;
  };

  struct PeakWay {
    PeakKernel kernel;
    size_t iterations = 0;  // of one part
  };

  void SizeStream();
  void ListRuns();
  void CalibratePeaks();

  const KvBatch& batch_;
  attention::ParallelFor& parallel_;
  RoofKernels kernels_;
  std::vector<PeakWay> peaks_;

  std::vector<LineRun> runs_;  // of one layer
  size_t piece_bytes_ = 0;     // of a run, about
  uint64_t gather_bytes_ = 0;  // of all layers
  size_t stream_parts_ = 1;
  size_t stream_bytes_ = 0;
  StreamWay stream_;
  size_t gather_ahead_ = 0;  // runs
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_ROOFS_H_

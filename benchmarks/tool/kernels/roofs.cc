// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/roofs.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "benchmarks/tool/kernels/timing.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/page_table.h"

namespace paged_kv::tool {
namespace {

// A run is cut into pieces of at most this many lines; prefetch distances are
// whole pieces.
constexpr size_t kPieceLines = 64;
// Keys of one sequence and head that are read before the next head's: the
// least that the attention kernels split a sequence into.
constexpr int64_t kSplitTokens = 512;
// Threads share the work in this many parts each, so that they end together.
constexpr size_t kPartsPerThread = 4;
constexpr size_t kStreamStepBytes = 4 * 1024;
constexpr double kPeakSeconds = 0.008;
constexpr int kCalibrations = 2;

// Where checksums go.
std::atomic<uint64_t> sink{0};

size_t CeilDivide(size_t a, size_t b) { return (a + b - 1) / b; }

// The best of a few repetitions, in seconds.
template <typename Work>
double BestOf(int repetitions, const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repetitions; ++i) {
    best = std::min(best, TimeOf(work).wall_seconds);
  }
  return best;
}

}  // namespace

Roofs::Roofs(const KvBatch& batch, attention::Isa isa,
             attention::ParallelFor& parallel)
    : batch_(batch), parallel_(parallel), kernels_(RoofKernelsFor(isa)) {
  const BlockShape& shape = batch.pages().shape;
  SizeStream();
  ListRuns();
  const bool f32_only =
      shape.dtype == DType::kF32 || shape.dtype == DType::kF16;
  for (const PeakKernel& kernel : kernels_.peaks) {
    if (peaks_.empty() || !f32_only) peaks_.push_back({kernel});
  }
}

void Roofs::SizeStream() {
  // Equal parts of whole turns of up to four streams. The memory goes on
  // behind tiny pools.
  const attention::KvPages& pages = batch_.pages();
  const size_t steps = std::max<size_t>(
      1, PageBytes(pages.shape).value() * pages.num_pages / kStreamStepBytes);
  stream_parts_ = std::min(steps, parallel_.num_workers() * kPartsPerThread);
  stream_bytes_ = steps / stream_parts_ * stream_parts_ * kStreamStepBytes;
}

void Roofs::ListRuns() {
  // In our own arrangement K and V of a head are one run.
  const attention::KvPages& pages = batch_.pages();
  const PageTable table = batch_.table();
  const auto run_bytes = static_cast<size_t>(pages.layout.head_stride);
  const size_t lines = CeilDivide(run_bytes, kLineBytes);
  const size_t pieces = CeilDivide(lines, kPieceLines);
  piece_bytes_ = CeilDivide(lines, pieces) * kLineBytes;
  const int64_t split_pages =
      std::max<int64_t>(1, kSplitTokens / pages.shape.block_tokens);
  const int64_t shared = batch_.attention_case().SharedBlocks();

  size_t slices = 0;
  for (size_t i = 0; i < table.num_sequences(); ++i) {
    // Shared pages once.
    const int64_t begin = table.indptr[i] + (i == 0 ? 0 : shared);
    const int64_t end = table.indptr[i + 1];
    for (int64_t split = begin; split < end; split += split_pages) {
      for (uint32_t head = 0; head < pages.shape.kv_heads; ++head) {
        for (int64_t p = split; p < std::min(end, split + split_pages); ++p) {
          const int64_t slice = KSliceOffset(
              pages.layout, static_cast<uint32_t>(table.page_indices[p]), 0,
              head);
          ++slices;
          for (size_t piece = 0; piece < pieces; ++piece) {
            const size_t first = lines * piece / pieces;
            const size_t last = lines * (piece + 1) / pieces;
            runs_.push_back({slice + static_cast<int64_t>(first * kLineBytes),
                             static_cast<uint32_t>(last - first)});
          }
        }
      }
    }
  }
  gather_bytes_ = uint64_t{slices} * run_bytes * pages.shape.layers;
}

void Roofs::Stream() const {
  const size_t part_bytes = stream_bytes_ / stream_parts_;
  const uint8_t* data = batch_.memory().data();
  parallel_.Run(stream_parts_, [&](size_t part, size_t) {
    sink += kernels_.read_streams(data + part * part_bytes, part_bytes,
                                  stream_.streams, stream_.ahead_bytes);
  });
}

void Roofs::Gather() const {
  const attention::KvPages& pages = batch_.pages();
  // All threads read the same layer, each an equal part of it; more parts
  // where there are few layers.
  const size_t workers = parallel_.num_workers();
  const size_t parts = std::min(
      runs_.size(), std::max(workers, CeilDivide(workers * kPartsPerThread,
                                                 pages.shape.layers)));
  const auto* base = static_cast<const uint8_t*>(pages.layout.base);
  parallel_.Run(pages.shape.layers * parts, [&](size_t task, size_t) {
    const size_t layer = task / parts;
    const size_t part = task % parts;
    sink += kernels_.read_runs(
        base + static_cast<int64_t>(layer) * pages.layout.layer_stride, runs_,
        runs_.size() * part / parts, runs_.size() * (part + 1) / parts,
        gather_ahead_);
  });
}

void Roofs::Peak(size_t kind) const {
  const PeakWay& peak = peaks_[kind];
  const size_t parts = parallel_.num_workers() * kPartsPerThread;
  parallel_.Run(parts, [&](size_t, size_t) {
    sink += peak.kernel.run(peak.iterations) > 0 ? 1 : 0;
  });
}

double Roofs::PeakFlops(size_t kind) const {
  const PeakWay& peak = peaks_[kind];
  const size_t parts = parallel_.num_workers() * kPartsPerThread;
  return static_cast<double>(parts) *
         static_cast<double>(peak.iterations * peak.kernel.flops);
}

void Roofs::CalibratePeaks() {
  // Until a part takes its share of the time.
  const double part_seconds = kPeakSeconds / kPartsPerThread;
  for (PeakWay& peak : peaks_) {
    const auto part = [&peak] {
      sink += peak.kernel.run(peak.iterations) > 0 ? 1 : 0;
    };
    peak.iterations = 1000;
    while (BestOf(1, part) < part_seconds && peak.iterations < size_t{1}
                                                                   << 40) {
      peak.iterations *= 2;
    }
  }
}

void Roofs::Calibrate() {
  CalibratePeaks();

  double best = std::numeric_limits<double>::infinity();
  StreamWay best_stream;
  for (const size_t streams : {1, 4}) {
    for (const size_t ahead_bytes : {0, 2048}) {
      stream_ = {streams, ahead_bytes};
      const double seconds = BestOf(kCalibrations, [&] { Stream(); });
      if (seconds < best) {
        best = seconds;
        best_stream = stream_;
      }
    }
  }
  stream_ = best_stream;

  best = std::numeric_limits<double>::infinity();
  size_t best_ahead = 0;
  for (const size_t ahead : {0, 1, 2, 4, 8}) {
    gather_ahead_ = ahead;
    const double seconds = BestOf(kCalibrations, [&] { Gather(); });
    if (seconds < best) {
      best = seconds;
      best_ahead = ahead;
    }
  }
  gather_ahead_ = best_ahead;
}

}  // namespace paged_kv::tool

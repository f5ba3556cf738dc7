// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the Vitis HLS header of this name where the kernels are built
// for the host: hls::stream as a FIFO, in one of two ways.
//
// - By default stages run one after the other and FIFOs have no bound, like C
//   simulation in Vitis. That hides deadlocks.
// - With PAGED_KV_THREADED_STAGES every stage is a thread (stage_threads.h) and
//   a FIFO holds as many elements as the hardware's.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_HLS_STREAM_H_
#define PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_HLS_STREAM_H_

#define PAGED_KV_STAND_IN_STREAMS

#include <cstddef>
#include <vector>

#include "fpga_dma/kernels/stand_in/stream_faults.h"
#if defined(PAGED_KV_THREADED_STAGES)
#include "fpga_dma/kernels/stand_in/stage_threads.h"
#endif

namespace hls {
// Both builds may be linked into one program.
#if defined(PAGED_KV_THREADED_STAGES)
inline namespace threaded {
#else
inline namespace sequential {
#endif

template <typename T>
class stream {
 public:
  // `depth`: elements that fit.
  stream(const char* name, size_t depth)
#if defined(PAGED_KV_THREADED_STAGES)
      : name_(name),
        depth_(paged_kv::fpga_dma::LimitedDepth(depth)){}
#else
      : name_(name), depth_(depth) {
  }
#endif
        stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  // Elements that nobody read are a fault of the kernel.
  ~stream() {
    if (Size() != 0) paged_kv::fpga_dma::NoteLeftover(name_, Size());
  }

  void write(const T& element) {
#if defined(PAGED_KV_THREADED_STAGES)
    paged_kv::fpga_dma::WaitForStream([this] { return Size() < depth_; },
                                      name_);
#endif
    elements_.push_back(element);
  }

  T read() {
#if defined(PAGED_KV_THREADED_STAGES)
    paged_kv::fpga_dma::WaitForStream([this] { return Size() > 0; }, name_);
#endif
    if (Size() == 0) paged_kv::fpga_dma::ThrowEmptyRead(name_);
    const T element = elements_[next_++];
    if (next_ == elements_.size()) {
      elements_.clear();
      next_ = 0;
    } else if (next_ >= kCompactAt && 2 * next_ >= elements_.size()) {
      elements_.erase(elements_.begin(),
                      elements_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
    return element;
  }

 private:
  static constexpr size_t kCompactAt = 4096;

  size_t Size() const { return elements_.size() - next_; }

  const char* const name_;
  const size_t depth_;
  std::vector<T> elements_;  // those before next_ were read
  size_t next_ = 0;
};

}  // namespace
}  // namespace hls

#endif  // PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_HLS_STREAM_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be wrong with how the stages of a kernel use their streams. Each is
// a fault of the kernel itself, never of its input.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_STREAM_FAULTS_H_
#define PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_STREAM_FAULTS_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace paged_kv::fpga_dma {

// A stage read from a stream into which nobody will write any more, or every
// stage waits for another.
class StreamDeadlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void ThrowEmptyRead(const char* stream);

// Notes that a stream ended with unread elements, and how many such streams
// there have been in this process.
void NoteLeftover(const char* stream, size_t elements);
uint64_t LeftoverStreams();

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_STREAM_FAULTS_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_HUGE_BUFFER_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_HUGE_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace paged_kv::tool {

// Zeroed memory that starts on a 2 MiB boundary, with huge pages asked for:
// random pages of a large pool would otherwise measure the TLB.
class HugeBuffer {
 public:
  // ResourceExhausted, with the numbers, if the system does not give it.
  static absl::StatusOr<HugeBuffer> Create(size_t bytes);

  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;
  ~HugeBuffer();

  uint8_t* data() const { return data_; }
  size_t size() const { return bytes_; }

  // The share of the buffer that lies in huge pages, from 0 to 1; -1 if the
  // system does not tell.
  double HugeShare() const;

 private:
  HugeBuffer() = default;

  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_HUGE_BUFFER_H_

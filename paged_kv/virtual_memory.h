// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_VIRTUAL_MEMORY_H_
#define PAGED_KV_VIRTUAL_MEMORY_H_

#include <cstddef>

#include "absl/status/status.h"

namespace paged_kv::internal {

// Anonymous zeroed memory from the operating system, backed when touched,
// huge pages asked for where it is large. Owns the mapping.
class VirtualMemory {
 public:
  static constexpr size_t kHugePageBytes = size_t{2} << 20;

  VirtualMemory() = default;
  ~VirtualMemory();
  VirtualMemory(VirtualMemory&& other) noexcept;
  VirtualMemory& operator=(VirtualMemory&& other) noexcept;

  // Replaces what is mapped by `bytes` bytes, aligned to kHugePageBytes from
  // that size on. 0 bytes maps nothing. ResourceExhausted if refused.
  absl::Status Map(size_t bytes);

  // Asks for pages on `node` from now on; Unavailable where the system has no
  // such node. REQUIRES: mapped, not yet touched.
  absl::Status BindToNode(int node);

  void* data() { return data_; }
  const void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void Unmap();

  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_VIRTUAL_MEMORY_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/virtual_memory.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::internal {

VirtualMemory::~VirtualMemory() { Unmap(); }

VirtualMemory::VirtualMemory(VirtualMemory&& other) noexcept {
  *this = std::move(other);
}

VirtualMemory& VirtualMemory::operator=(VirtualMemory&& other) noexcept {
  if (this == &other) return *this;
  Unmap();
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void VirtualMemory::Unmap() {
  if (data_ == nullptr) return;
  PAGED_KV_CHECK(munmap(data_, bytes_) == 0);
  data_ = nullptr;
  bytes_ = 0;
}

absl::Status VirtualMemory::Map(size_t bytes) {
  Unmap();
  if (bytes == 0) return absl::OkStatus();
  const bool large = bytes >= kHugePageBytes;
  const size_t align =
      large ? kHugePageBytes : static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t slack = large ? align : 0;
  if (bytes > SIZE_MAX / 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes"));
  }
  const size_t rounded = (bytes + align - 1) / align * align;
  void* mapped = mmap(nullptr, rounded + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot map ", rounded + slack, " bytes: ", std::strerror(errno)));
  }
  // Give back what lies before the first aligned byte and after the last.
  char* const begin = static_cast<char*>(mapped);
  const size_t head =
      (align - reinterpret_cast<uintptr_t>(begin) % align) % align;
  if (head > 0) munmap(begin, head);
  if (slack > head) munmap(begin + head + rounded, slack - head);
  data_ = begin + head;
  bytes_ = rounded;
  // A hint; without huge pages everything works, slower.
  if (large) madvise(data_, bytes_, MADV_HUGEPAGE);
  return absl::OkStatus();
}

absl::Status VirtualMemory::BindToNode(int node) {
  constexpr int kMaxNodes = 1024;
  constexpr int kBitsPerWord = 8 * sizeof(unsigned long);
  if (node < 0 || node >= kMaxNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("NUMA node ", node, " is not in 0 to ", kMaxNodes - 1));
  }
  unsigned long mask[kMaxNodes / kBitsPerWord] = {};
  mask[node / kBitsPerWord] = 1ul << (node % kBitsPerWord);
  if (syscall(SYS_mbind, data_, bytes_, MPOL_PREFERRED, mask, kMaxNodes, 0) !=
      0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot place memory on NUMA node ", node, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal

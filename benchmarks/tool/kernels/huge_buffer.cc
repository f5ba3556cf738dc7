// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/huge_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace paged_kv::tool {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

absl::StatusOr<HugeBuffer> HugeBuffer::Create(size_t bytes) {
  HugeBuffer buffer;
  const size_t mapped = bytes + kHugePage;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", mapped, " bytes: ", std::strerror(errno)));
  }
  buffer.mapping_ = mapping;
  buffer.mapped_bytes_ = mapped;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  buffer.data_ = static_cast<uint8_t*>(mapping) +
                 (kHugePage - address % kHugePage) % kHugePage;
  buffer.bytes_ = bytes;
  // A wish: systems without huge pages refuse it, and all works as well.
  madvise(buffer.data_, bytes, MADV_HUGEPAGE);
  return buffer;
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HugeBuffer::~HugeBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

double HugeBuffer::HugeShare() const {
  // Areas of the address space, a line "first-last ..." and then its figures.
  std::ifstream file("/proc/self/smaps");
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t end = begin + bytes_;
  bool inside = false;
  bool found = false;
  uint64_t huge_kib = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    uintptr_t first = 0, last = 0;
    char dash = 0;
    if (words >> std::hex >> first >> dash >> last && dash == '-') {
      inside = first < end && last > begin;
      found = found || inside;
    } else if (inside && absl::StartsWith(line, "AnonHugePages:")) {
      std::istringstream value(line.substr(line.find(':') + 1));
      uint64_t kib = 0;
      value >> kib;
      huge_kib += kib;
    }
  }
  if (!found || bytes_ == 0) return -1;
  const double share =
      static_cast<double>(huge_kib) * 1024 / static_cast<double>(bytes_);
  return share > 1 ? 1 : share;
}

}  // namespace paged_kv::tool

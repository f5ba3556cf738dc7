// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/packed_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLineBytes = 64;
// Address space, of which only what is written to takes memory.
constexpr size_t kMappingBytes = size_t{256} << 20;

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Huge pages, given out from front to back.
class Mapping {
 public:
  static absl::StatusOr<std::shared_ptr<Mapping>> Create(size_t bytes) {
    const size_t mapped = bytes + kHugePage;
    void* const data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", bytes,
                       " bytes of weights: ", std::strerror(errno)));
    }
    std::shared_ptr<Mapping> mapping(new Mapping);
    mapping->data_ = static_cast<std::byte*>(data);
    mapping->mapped_ = mapped;
    const auto address = reinterpret_cast<uintptr_t>(data);
    mapping->used_ = RoundUp(address, kHugePage) - address;
    // A wish: systems without huge pages refuse it, and all works as well.
    madvise(mapping->data_ + mapping->used_, bytes, MADV_HUGEPAGE);
    return mapping;
  }

  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(data_, mapped_); }

  // Null if there is not so much left.
  std::byte* Take(size_t bytes) {
    if (mapped_ - used_ < bytes) return nullptr;
    std::byte* const piece = data_ + used_;
    used_ = std::min(mapped_, used_ + RoundUp(bytes, kLineBytes));
    return piece;
  }

 private:
  Mapping() = default;

  std::byte* data_ = nullptr;
  size_t mapped_ = 0;
  size_t used_ = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<std::byte>> AllocatePacked(size_t bytes) {
  static std::mutex mutex;
  // Of the newest mapping, which lives as long as its pieces.
  static auto* const newest = new std::weak_ptr<Mapping>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Mapping> mapping = newest->lock();
  std::byte* piece = mapping == nullptr ? nullptr : mapping->Take(bytes);
  if (piece == nullptr) {
    PAGED_KV_ASSIGN_OR_RETURN(mapping,
                              Mapping::Create(std::max(bytes, kMappingBytes)));
    *newest = mapping;
    piece = mapping->Take(bytes);
  }
  return std::shared_ptr<std::byte>(std::move(mapping), piece);
}

}  // namespace paged_kv::llm

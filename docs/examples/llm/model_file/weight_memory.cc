// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/weight_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paged_kv::llm {

absl::StatusOr<WeightMemory> WeightMemory::Allocate(size_t bytes) {
  WeightMemory memory;
  if (bytes == 0) return memory;
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no memory for ", bytes, " bytes of weights: ", std::strerror(errno)));
  }
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

WeightMemory::~WeightMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace paged_kv::llm

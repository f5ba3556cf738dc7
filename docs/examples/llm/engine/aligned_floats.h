// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ALIGNED_FLOATS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ALIGNED_FLOATS_H_

#include <cstddef>
#include <new>
#include <vector>

namespace paged_kv::llm {

// Memory that begins at a cache line.
template <typename T>
struct CacheLineAllocator {
  using value_type = T;

  CacheLineAllocator() = default;
  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), kAlignment));
  }
  void deallocate(T* data, size_t) { ::operator delete(data, kAlignment); }

  friend bool operator==(CacheLineAllocator, CacheLineAllocator) {
    return true;
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
};

// Activations and logits. Products of 16 rows took up to 7 % longer when their
// SIMD stores went across two lines.
using AlignedFloats = std::vector<float, CacheLineAllocator<float>>;

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ALIGNED_FLOATS_H_

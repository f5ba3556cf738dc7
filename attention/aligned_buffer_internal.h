// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_ALIGNED_BUFFER_INTERNAL_H_
#define PAGED_KV_ATTENTION_ALIGNED_BUFFER_INTERNAL_H_

#include <cstddef>
#include <memory>
#include <new>

namespace paged_kv::attention::internal {

// Uninitialised floats that start on a cache line and only ever grow.
class AlignedFloats {
 public:
  float* data() { return data_.get(); }

  // At least `size` floats; what they held is lost if they have to move.
  void Reserve(size_t size) {
    if (size <= size_) return;
    data_.reset();
    data_.reset(
        static_cast<float*>(::operator new(size * sizeof(float), kAlignment)));
    size_ = size;
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(float* data) const { ::operator delete(data, kAlignment); }
  };

  std::unique_ptr<float, Delete> data_;
  size_t size_ = 0;
};

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_ALIGNED_BUFFER_INTERNAL_H_

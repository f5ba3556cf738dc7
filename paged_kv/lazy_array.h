// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_LAZY_ARRAY_H_
#define PAGED_KV_LAZY_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/virtual_memory.h"

namespace paged_kv::internal {

// A fixed-size array of zeroes whose pages are backed by memory only once
// touched, so that a pool of 10^7 blocks is made in microseconds and costs
// what is used of it. Elements are plain data. Does not grow.
template <typename T>
class LazyArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LazyArray() = default;
  LazyArray(LazyArray&& other) noexcept { *this = std::move(other); }
  LazyArray& operator=(LazyArray&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  // ResourceExhausted if the address space cannot be had.
  absl::Status Create(size_t size) {
    absl::Status status = memory_.Map(size * sizeof(T));
    size_ = status.ok() ? size : 0;
    return status;
  }

  size_t size() const { return size_; }
  T* data() { return static_cast<T*>(memory_.data()); }
  const T* data() const { return static_cast<const T*>(memory_.data()); }

  T& operator[](size_t i) {
    PAGED_KV_DCHECK(i < size_);
    return data()[i];
  }
  const T& operator[](size_t i) const {
    PAGED_KV_DCHECK(i < size_);
    return data()[i];
  }

 private:
  VirtualMemory memory_;
  size_t size_ = 0;
};

// A LazyArray with an end that moves: push_back() without allocation.
template <typename T>
class LazyStack {
 public:
  absl::Status Create(size_t capacity) { return array_.Create(capacity); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() { size_ = 0; }
  void resize_down(size_t size) {
    PAGED_KV_DCHECK(size <= size_);
    size_ = size;
  }
  void push_back(const T& value) {
    PAGED_KV_CHECK(size_ < array_.size());
    array_[size_++] = value;
  }
  T& operator[](size_t i) {
    PAGED_KV_DCHECK(i < size_);
    return array_[i];
  }
  const T& operator[](size_t i) const {
    PAGED_KV_DCHECK(i < size_);
    return array_[i];
  }
  const T* data() const { return array_.data(); }

 private:
  LazyArray<T> array_;
  size_t size_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_LAZY_ARRAY_H_

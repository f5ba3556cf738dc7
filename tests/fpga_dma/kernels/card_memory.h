// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_CARD_MEMORY_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_CARD_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "absl/types/span.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/kernels/kernel_registry.h"

namespace paged_kv::fpga_dma {

// Memory of a card: exactly as many bytes as asked for, so that the address
// sanitizer sees every access beyond them. Starts as 0xA5.
class CardMemory {
 public:
  explicit CardMemory(size_t bytes)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(operator new (
            bytes, std::align_val_t{kKvAlignmentBytes}))) {
    std::memset(data_.get(), 0xA5, bytes);
  }
  CardMemory(const CardMemory& other) : CardMemory(other.bytes_) {
    std::memcpy(data_.get(), other.data_.get(), bytes_);
  }
  CardMemory& operator=(const CardMemory&) = delete;

  size_t size() const { return bytes_; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  absl::Span<std::byte> span() { return {data_.get(), bytes_}; }

  // The `index`-th T.
  template <typename T>
  T Get(size_t index) const {
    T value;
    std::memcpy(&value, data_.get() + index * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void Set(size_t index, const T& value) {
    std::memcpy(data_.get() + index * sizeof(T), &value, sizeof(T));
  }

  BoundArgument Bind() { return {span(), 0, 0}; }

  bool operator==(const CardMemory& other) const {
    return bytes_ == other.bytes_ &&
           std::memcmp(data_.get(), other.data_.get(), bytes_) == 0;
  }

 private:
  struct Delete {
    void operator()(std::byte* data) const {
      operator delete (data, std::align_val_t{kKvAlignmentBytes});
    }
  };

  size_t bytes_;
  std::unique_ptr<std::byte, Delete> data_;
};

// A work list as kernels read it.
template <typename Item>
CardMemory WorkList(KernelId kernel, const std::vector<Item>& items) {
  CardMemory work((1 + items.size()) * kBeatBytes);
  WorkListHeader header = {};
  header.magic = kWorkListMagic;
  header.kernel = kernel;
  header.num_items = static_cast<uint32_t>(items.size());
  work.Set(0, header);
  for (size_t i = 0; i < items.size(); ++i) work.Set(1 + i, items[i]);
  return work;
}

inline BoundArgument BindScalar(uint64_t value) { return {{}, 0, value}; }

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_CARD_MEMORY_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_ATTENTION_BENCHMARK_PAGES_H_
#define PAGED_KV_BENCHMARKS_ATTENTION_BENCHMARK_PAGES_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "attention/kv_pages.h"
#include "paged_kv/check.h"
#include "paged_kv/page_table.h"
#include "tests/support/attention_pages.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention::benchmarks {

// True in the smoke run, which checks that a benchmark works.
inline bool IsSmoke() { return std::getenv("PAGED_KV_SMOKE") != nullptr; }

// Memory on 2 MiB boundaries, huge pages asked for.
class HugeBuffer {
 public:
  explicit HugeBuffer(size_t bytes) : mapped_(bytes + kAlignment) {
    start_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PAGED_KV_CHECK(start_ != MAP_FAILED);
    const auto address = reinterpret_cast<uintptr_t>(start_);
    data_ = static_cast<uint8_t*>(start_) +
            (kAlignment - address % kAlignment) % kAlignment;
    madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~HugeBuffer() { munmap(start_, mapped_); }
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;

  uint8_t* data() const { return data_; }

 private:
  static constexpr size_t kAlignment = size_t{2} << 20;

  size_t mapped_;
  void* start_;
  uint8_t* data_;
};

// Pages of a batch of equally long sequences, filled with random numbers, and
// their shuffled page table. As many layers as it takes to exceed every cache:
// a benchmark that reads the same layer again measures the cache.
class BenchmarkPages {
 public:
  // `shape.layers` is set here.
  BenchmarkPages(BlockShape shape, uint32_t batch, uint32_t tokens,
                 bool rotate_layers)
      : pages_(MakePages(shape, batch, tokens, rotate_layers)),
        buffer_(PoolBytes()) {
    pages_.layout = OwnPageLayout(pages_.shape, buffer_.data());
    Fill();
    page_indices_.resize(pages_.num_pages);
    std::iota(page_indices_.begin(), page_indices_.end(), 0);
    testing::Random random(1);
    random.Shuffle(&page_indices_);
    const auto per_sequence = static_cast<int32_t>(pages_.num_pages / batch);
    for (uint32_t i = 0; i <= batch; ++i) {
      indptr_.push_back(static_cast<int32_t>(i) * per_sequence);
    }
    const uint32_t rest = tokens % shape.block_tokens;
    last_page_tokens_.assign(
        batch, static_cast<int32_t>(rest == 0 ? shape.block_tokens : rest));
    first_token_.assign(batch, 0);
  }

  const KvPages& pages() const { return pages_; }
  PageTable table() const {
    return {indptr_,
            page_indices_,
            last_page_tokens_,
            first_token_,
            static_cast<int32_t>(pages_.shape.block_tokens),
            0};
  }
  // K and V of one layer.
  size_t LayerBytes() const { return PoolBytes() / pages_.shape.layers; }

 private:
  static KvPages MakePages(BlockShape shape, uint32_t batch, uint32_t tokens,
                           bool rotate_layers) {
    constexpr size_t kRotated = size_t{1} << 30;
    KvPages pages;
    shape.layers = 1;
    pages.num_pages =
        batch * ((tokens + shape.block_tokens - 1) / shape.block_tokens);
    const size_t layer = PageBytes(shape).value() * pages.num_pages;
    if (rotate_layers && !IsSmoke()) {
      shape.layers =
          static_cast<uint32_t>(std::max<size_t>(2, kRotated / layer));
    }
    pages.shape = shape;
    return pages;
  }

  size_t PoolBytes() const {
    return PageBytes(pages_.shape).value() * pages_.num_pages;
  }

  void Fill() {
    // A pattern of odd length, repeated.
    const size_t element = ElementBytes(pages_.shape.dtype);
    std::vector<uint8_t> pattern(1'000'003 * element);
    testing::Random random(2);
    const float limit = HasScales(pages_.shape.dtype) ? 127.0f : 1.7f;
    for (size_t i = 0; i < pattern.size(); i += element) {
      const uint32_t bits =
          testing::ElementBits(random.Uniform(limit), pages_.shape.dtype);
      std::memcpy(pattern.data() + i, &bits, element);
    }
    for (size_t i = 0; i < PoolBytes(); i += pattern.size()) {
      std::memcpy(buffer_.data() + i, pattern.data(),
                  std::min(pattern.size(), PoolBytes() - i));
    }
    if (HasScales(pages_.shape.dtype)) FillScales();
  }

  // All the same: a new one for each token would not change the time.
  void FillScales() {
    const BlockShape& shape = pages_.shape;
    const std::vector<float> scales(shape.block_tokens, 0.01f);
    const size_t bytes = scales.size() * sizeof(float);
    for (uint32_t page = 0; page < pages_.num_pages; ++page) {
      for (uint32_t layer = 0; layer < shape.layers; ++layer) {
        for (uint32_t head = 0; head < shape.kv_heads; ++head) {
          uint8_t* k =
              buffer_.data() + KSliceOffset(pages_.layout, page, layer, head);
          uint8_t* v = k + pages_.layout.kv_stride;
          std::memcpy(k + KDataBytes(shape).value(), scales.data(), bytes);
          std::memcpy(v + VDataBytes(shape).value(), scales.data(), bytes);
        }
      }
    }
  }

  KvPages pages_;
  HugeBuffer buffer_;
  std::vector<int32_t> indptr_, page_indices_, last_page_tokens_, first_token_;
};

inline std::vector<float> RandomFloats(size_t size) {
  testing::Random random(3);
  std::vector<float> values(size);
  for (float& x : values) x = random.Uniform(1.7f);
  return values;
}

// Qwen2.5-7B: 28 query heads, 4 KV heads, head_dim 128.
inline constexpr uint32_t kQueryHeads = 28;
inline BlockShape QwenShape(DType dtype, uint32_t block_tokens) {
  BlockShape shape;
  shape.kv_heads = 4;
  shape.head_dim = 128;
  shape.block_tokens = block_tokens;
  shape.dtype = dtype;
  return shape;
}

}  // namespace paged_kv::attention::benchmarks

#endif  // PAGED_KV_BENCHMARKS_ATTENTION_BENCHMARK_PAGES_H_

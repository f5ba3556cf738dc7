// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Large pages behind a contiguous virtual range, as in vAttention (Prabhu et
// al., "vAttention: Dynamic Memory Management for Serving LLMs without
// PagedAttention", ASPLOS 2025): each request has one virtual tensor per layer
// for K and one for V, and physical pages are mapped behind each as it grows.
// Kernels stay simple; the granularity is one page in every tensor. With
// Qwen2.5-7B (28 layers, 4 KV heads of 128 dimensions, bf16) a token takes
// 1 KiB in each of 56 tensors, so a request grows by 56 pages at a time:
// 2,048 tokens with 2 MiB pages, 64 with 64 KiB.

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "benchmarks/tool/baselines/baseline_policy.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

constexpr uint64_t kTensors = 2 * 28;                   // K and V of each layer
constexpr uint64_t kTokenBytesPerTensor = 4 * 128 * 2;  // heads, dims, bf16
constexpr uint64_t kTokenBytes = kTensors * kTokenBytesPerTensor;

class LargePagesPolicy : public BaselinePolicy {
 public:
  LargePagesPolicy(const Trace& trace, uint64_t capacity_slots,
                   uint64_t page_bytes)
      : BaselinePolicy(trace, capacity_slots, Unused::kTail),
        name_(page_bytes == 64 * 1024 ? "large_pages_64k" : "large_pages"),
        page_tokens_(page_bytes / kTokenBytesPerTensor),
        pages_(capacity_slots * kTokenBytes / page_bytes),
        free_pages_(pages_) {
    PAGED_KV_CHECK(page_bytes % kTokenBytesPerTensor == 0);
  }

  absl::string_view name() const override { return name_; }

  absl::Status CheckFits(size_t request) const override {
    const uint64_t length = trace().requests[request].total_tokens();
    if (Pages(length) <= pages_) return absl::OkStatus();
    return NeverFits(request, Slots(Pages(length)), capacity_slots());
  }

  // Pages that would not make up a whole set for all tensors help nobody.
  uint64_t AvailableSlots() const override {
    return free_pages_ / kTensors * page_tokens_;
  }
  using BaselinePolicy::Slots;

 protected:
  absl::StatusOr<uint64_t> Hold(size_t request, uint32_t length,
                                uint64_t held) override {
    const uint64_t more = Pages(length) - Pages(held);
    if (more > free_pages_) {
      return NotNow(Slots(more), Slots(free_pages_), capacity_slots());
    }
    free_pages_ -= more;
    pages_of_[request] += more;
    return Slots(pages_of_[request]);
  }

  void LetGo(size_t request) override {
    const auto it = pages_of_.find(request);
    free_pages_ += it->second;
    pages_of_.erase(it);
  }

 private:
  uint64_t Pages(uint64_t length) const {
    return (length + page_tokens_ - 1) / page_tokens_ * kTensors;
  }
  uint64_t Slots(uint64_t pages) const {
    return pages * page_tokens_ / kTensors;
  }

  const absl::string_view name_;
  const uint64_t page_tokens_;
  const uint64_t pages_;
  uint64_t free_pages_;
  absl::flat_hash_map<size_t, uint64_t> pages_of_;
};

}  // namespace

std::unique_ptr<MemoryPolicy> MakeLargePagesPolicy(const Trace& trace,
                                                   uint64_t capacity_slots,
                                                   uint64_t page_bytes) {
  return std::make_unique<LargePagesPolicy>(trace, capacity_slots, page_bytes);
}

}  // namespace paged_kv::tool

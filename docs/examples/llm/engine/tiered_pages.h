// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TIERED_PAGES_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TIERED_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "attention/kv_pages.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/tier_transfer.h"

namespace paged_kv::llm {

// The pages of both tiers where the device is memory of the host, too: one
// array, host pages first, so that one kernel call can serve sequences of both.
// Thread safety: thread-compatible.
class TieredPages {
 public:
  // ResourceExhausted without the memory; errors of Validate(shape).
  static absl::StatusOr<std::unique_ptr<TieredPages>> Create(
      const BlockShape& shape, uint32_t host_pages, uint32_t device_pages);

  // All of them; those of the host are the first.
  const attention::KvPages& pages() const { return pages_; }
  // Index of the device's page 0 among them.
  uint32_t first_device_page() const { return first_device_page_; }

  // Index of a tier's page among them. REQUIRES: it exists.
  uint32_t IndexOf(Tier tier, uint32_t page) const;

  // Copies the bytes of the transfer's page. REQUIRES: its pages exist.
  void Move(const TierTransfer& transfer);

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  TieredPages(const BlockShape& shape, uint32_t host_pages,
              uint32_t device_pages, Memory memory);

  std::byte* PageOf(Tier tier, uint32_t page) {
    return memory_.get() + IndexOf(tier, page) * page_bytes_;
  }

  const uint64_t page_bytes_;
  const uint32_t first_device_page_;
  const Memory memory_;
  attention::KvPages pages_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TIERED_PAGES_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_CARD_ATTENTION_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_CARD_ATTENTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/engine/attention_backend.h"
#include "fpga_dma/device.h"

namespace paged_kv::tool {

// What a card did for an engine.
struct CardUse {
  uint64_t steps = 0;            // decode steps on the card
  uint64_t host_steps = 0;       // with prompts in them: on the host
  uint64_t pages_uploaded = 0;   // a page once, until it is written again
  uint64_t bytes_uploaded = 0;   // of K and V
  uint64_t kv_read_by_card = 0;  // bytes of pages, all layers and steps
  uint64_t failures = 0;         // layers that the host had to do after all
  absl::Duration attention;      // of decode steps, on the device's clock
};

// Attention of decode steps on a card: full pages are uploaded once, when the
// first step reads them and writes no more to them, and read there; the page
// that a step writes to is read by the host, and the parts are merged. Steps
// with prompts run on the host. Host memory keeps all K and V, so a layer that
// the card fails at is done by the host, and its pages are uploaded anew.
//
// Thread safety: thread-compatible.
class CardAttention : public llm::AttentionBackend {
 public:
  // `device`, `parallel` and `use` are borrowed; the card has a page for each
  // of `pages`. InvalidArgument for pages that the card's kernels do not take
  // (see fpga_dma::CardDecode::Create); FailedPrecondition for a card without
  // paged_decode; ResourceExhausted if the pages do not fit its memory.
  static absl::StatusOr<std::unique_ptr<CardAttention>> Create(
      fpga_dma::Device* device, const attention::KvPages& pages,
      uint32_t query_heads, attention::ParallelFor* parallel, CardUse* use);
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_CARD_ATTENTION_H_

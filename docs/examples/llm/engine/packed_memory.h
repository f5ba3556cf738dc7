// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_PACKED_MEMORY_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_PACKED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace paged_kv::llm {

// `bytes` of zeros for packed weights, aligned to a cache line. Pieces are cut
// one after the other from large mappings of huge pages: a step reads all
// weights, and with pages of 4 KiB it would miss the TLB at each of them, while
// a layer's matrices alone do not fill huge pages. A mapping goes back to the
// system with the last of its pieces. ResourceExhausted: the system has no
// more.
//
// Thread safety: may be called at the same time.
absl::StatusOr<std::shared_ptr<std::byte>> AllocatePacked(size_t bytes);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_PACKED_MEMORY_H_

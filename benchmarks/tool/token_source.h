// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_TOKEN_SOURCE_H_
#define PAGED_KV_BENCHMARKS_TOOL_TOKEN_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "benchmarks/tool/trace.h"
#include "paged_kv/types.h"

namespace paged_kv::tool {

// Gives every position of every request of a trace a token value such that
// two prompts are equal exactly where their trace says so:
//   - a token covered by a hash id is a function of (id, offset in the block);
//   - every other prompt token, and every output token, occurs only once.
//
// Thread safety: const methods may run concurrently.
class TokenSource {
 public:
  // `trace` is borrowed. InvalidArgument if it has more distinct tokens than
  // there are token values (2^31).
  static absl::StatusOr<TokenSource> Create(const Trace& trace);

  // tokens [any length]: the values of positions first, first + 1, ... of
  // prompt plus output. REQUIRES: they exist.
  void Fill(size_t request, uint32_t first, absl::Span<TokenId> tokens) const;

 private:
  TokenSource(const Trace& trace, std::vector<uint32_t> first_unique)
      : trace_(&trace), first_unique_(std::move(first_unique)) {}

  const Trace* trace_;
  std::vector<uint32_t> first_unique_;  // [requests]
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_TOKEN_SOURCE_H_

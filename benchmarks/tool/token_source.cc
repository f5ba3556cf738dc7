// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/token_source.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {

absl::StatusOr<TokenSource> TokenSource::Create(const Trace& trace) {
  // Values below this one belong to hash ids, one after the other.
  uint64_t next = uint64_t{trace.distinct_hash_ids} * trace.hash_block_tokens;
  std::vector<uint32_t> first_unique;
  first_unique.reserve(trace.requests.size());
  for (const Request& request : trace.requests) {
    first_unique.push_back(static_cast<uint32_t>(next));
    next += request.hash_ids.empty() ? request.total_tokens()
                                     : request.output_tokens;
    if (next > std::numeric_limits<TokenId>::max()) {
      return absl::InvalidArgumentError(absl::StrCat(
          trace.name, " has more than 2^31 distinct tokens by request ",
          first_unique.size(), "; replay fewer with --max_requests"));
    }
  }
  return TokenSource(trace, std::move(first_unique));
}

void TokenSource::Fill(size_t request, uint32_t first,
                       absl::Span<TokenId> tokens) const {
  const Request& r = trace_->requests[request];
  PAGED_KV_CHECK(first + tokens.size() <= r.total_tokens());
  const uint32_t block = trace_->hash_block_tokens;
  const uint32_t hashed = r.hash_ids.empty() ? 0 : r.prompt_tokens;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint32_t at = first + static_cast<uint32_t>(i);
    const uint32_t value = at < hashed
                               ? r.hash_ids[at / block] * block + at % block
                               : first_unique_[request] + (at - hashed);
    tokens[i] = static_cast<TokenId>(value);
  }
}

}  // namespace paged_kv::tool

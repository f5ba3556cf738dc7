// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_CONTENT_DIGEST_H_
#define PAGED_KV_CONTENT_DIGEST_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "paged_kv/cache_event.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// Computes the digest chain of cache_event.h. Allocates only when made.
// Thread safety: thread-compatible.
class DigestChain {
 public:
  DigestChain();
  ~DigestChain();

  // Where every chain starts.
  ContentDigest Root(absl::string_view domain);
  // `extras` in the canonical form of SerializeExtras.
  ContentDigest Extend(const ContentDigest& parent, absl::string_view extras,
                       absl::Span<const TokenId> tokens);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_CONTENT_DIGEST_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SHA256_H_
#define PAGED_KV_BENCHMARKS_TOOL_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace paged_kv::tool {

// The SHA-256 digest of `data` (FIPS 180-4) in lower-case hex, as sha256sum
// prints it, so that a report can be tied to the file it was made from.
std::string Sha256Hex(absl::string_view data);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SHA256_H_

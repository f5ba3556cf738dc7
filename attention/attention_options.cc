// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/attention_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace paged_kv::attention {

absl::Status Validate(const AttentionOptions& options) {
  if (!std::isfinite(options.scale)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "AttentionOptions::scale is ", options.scale, ", not finite"));
  }
  if (!std::isfinite(options.soft_cap) || options.soft_cap < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("AttentionOptions::soft_cap is ", options.soft_cap,
                     ", must be finite and not negative"));
  }
  return ResolveIsa(options.isa).status();
}

}  // namespace paged_kv::attention

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_options.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "paged_kv/kv_cache_options.h"
#include "paged_kv/status_macros.h"

namespace paged_kv {
namespace {

absl::Status CheckRange(const char* field, uint32_t value, uint32_t min,
                        uint32_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("BatchSchedulerOptions.%s is %u, not in [%u, %u]", field,
                      value, min, max));
}

}  // namespace

absl::Status Validate(const BatchSchedulerOptions& options,
                      const KvCacheOptions& cache_options) {
  PAGED_KV_RETURN_IF_ERROR(
      CheckRange("max_requests", options.max_requests, 1, 1u << 24));
  PAGED_KV_RETURN_IF_ERROR(
      CheckRange("max_batch_tokens", options.max_batch_tokens, 1, 1u << 30));
  PAGED_KV_RETURN_IF_ERROR(CheckRange("max_batch_sequences",
                                      options.max_batch_sequences, 1,
                                      cache_options.max_sequences));
  PAGED_KV_RETURN_IF_ERROR(CheckRange("max_batch_sequences",
                                      options.max_batch_sequences, 1,
                                      options.max_batch_tokens));
  PAGED_KV_RETURN_IF_ERROR(CheckRange("max_chunk_tokens",
                                      options.max_chunk_tokens, 0,
                                      options.max_batch_tokens));
  PAGED_KV_RETURN_IF_ERROR(CheckRange("max_steps_in_flight",
                                      options.max_steps_in_flight, 1,
                                      cache_options.max_steps_in_flight));
  PAGED_KV_RETURN_IF_ERROR(CheckRange("max_draft_tokens",
                                      options.max_draft_tokens, 0,
                                      options.max_batch_tokens - 1));
  if (options.decode_tier == Tier::kDevice &&
      cache_options.device.pages == BlockCount(0)) {
    return absl::InvalidArgumentError(
        "BatchSchedulerOptions.decode_tier is the device, but "
        "KvCacheOptions.device.pages is 0");
  }
  if (options.priority_head_start < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "BatchSchedulerOptions.priority_head_start is %s, less than 0",
        absl::FormatDuration(options.priority_head_start)));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv

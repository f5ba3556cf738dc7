// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/device_calls.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {

absl::StatusOr<fpga_dma::Completion> AwaitOperation(fpga_dma::Device& device,
                                                    fpga_dma::OpId op) {
  const absl::Duration limit = absl::Seconds(10);
  const absl::Time deadline = device.Now() + limit;
  fpga_dma::Completion done;
  while (device.Now() < deadline) {
    PAGED_KV_ASSIGN_OR_RETURN(const size_t count,
                              device.Poll(deadline, absl::MakeSpan(&done, 1)));
    if (count == 0 || done.op != op) continue;
    PAGED_KV_RETURN_IF_ERROR(done.status);
    return done;
  }
  return absl::DeadlineExceededError(
      absl::StrCat("operation ", op.value(), " has not ended after ",
                   absl::FormatDuration(limit), "; reset the card"));
}

}  // namespace paged_kv::tool

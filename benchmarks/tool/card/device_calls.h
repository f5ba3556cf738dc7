// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_DEVICE_CALLS_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_DEVICE_CALLS_H_

#include "absl/status/statusor.h"
#include "fpga_dma/device.h"

namespace paged_kv::tool {

// Waits for `op`, the only operation under way on `device`. Its error if it
// failed; DeadlineExceeded if it has not ended after ten seconds of the
// device's clock.
absl::StatusOr<fpga_dma::Completion> AwaitOperation(fpga_dma::Device& device,
                                                    fpga_dma::OpId op);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_DEVICE_CALLS_H_

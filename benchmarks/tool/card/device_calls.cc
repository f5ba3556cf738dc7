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

absl::StatusOr<OwnedSlab> OwnedSlab::Create(fpga_dma::Device* device,
                                            fpga_dma::BankId bank,
                                            uint64_t bytes,
                                            fpga_dma::SlabKind kind) {
  PAGED_KV_ASSIGN_OR_RETURN(const fpga_dma::SlabId id,
                            device->CreateSlab(bank, bytes, kind));
  return OwnedSlab(device, id);
}

OwnedSlab::~OwnedSlab() {
  // Only a device that is gone refuses, and with it went the slab.
  if (device_ != nullptr) device_->DestroySlab(id_).IgnoreError();
}

}  // namespace paged_kv::tool

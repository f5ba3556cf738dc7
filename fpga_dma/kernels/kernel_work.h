// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// KernelSpec::work of each kernel.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_KERNEL_WORK_H_
#define PAGED_KV_FPGA_DMA_KERNELS_KERNEL_WORK_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fpga_dma/kernels/kernel_registry.h"

namespace paged_kv::fpga_dma {

absl::StatusOr<KernelWork> PagedDecodeWork(
    absl::Span<const BoundArgument> arguments);
absl::StatusOr<KernelWork> KvAppendWork(
    absl::Span<const BoundArgument> arguments);
absl::StatusOr<KernelWork> KvCopyWork(
    absl::Span<const BoundArgument> arguments);
absl::StatusOr<KernelWork> KvScatterWork(
    absl::Span<const BoundArgument> arguments);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_KERNEL_WORK_H_

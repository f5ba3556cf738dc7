// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The builds of the kernels that tests compare.

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_KERNEL_BUILDS_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_KERNEL_BUILDS_H_

#include "fpga_dma/kernels/kernel_entry_points.h"

extern "C" {
PagedDecodeFunction paged_decode_threaded;
KvAppendFunction kv_append_threaded;
KvCopyFunction kv_copy_threaded;
KvScatterFunction kv_scatter_threaded;
}

namespace paged_kv::fpga_dma {

// Stage after stage.
inline constexpr KernelEntryPoints kSequentialKernels = {
    paged_decode, kv_append, kv_copy, kv_scatter};
// A thread per stage; see stand_in/stage_threads.h.
inline constexpr KernelEntryPoints kThreadedKernels = {
    paged_decode_threaded, kv_append_threaded, kv_copy_threaded,
    kv_scatter_threaded};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_KERNEL_BUILDS_H_

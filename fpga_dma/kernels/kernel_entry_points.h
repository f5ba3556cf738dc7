// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels as functions of the host. kernel_arguments.h describes what they
// take. They check items against their scalars, and trust the scalars: call
// them through a KernelSpec, which checks those against the memory.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ENTRY_POINTS_H_
#define PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ENTRY_POINTS_H_

#include <ap_int.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "fpga_dma/kernels/kernel_registry.h"

using PagedDecodeFunction =
    void(const ap_uint<512>* kv, const ap_uint<512>* work,
         const uint32_t* table, const ap_uint<512>* queries, ap_uint<512>* out,
         ap_uint<512>* status, uint32_t max_items, uint32_t table_entries,
         uint32_t query_beats, uint32_t out_beats, uint32_t num_pages,
         uint32_t page_stride_beats, uint32_t element, uint32_t head_dim,
         uint32_t group_heads, uint32_t block_tokens);
using KvAppendFunction = void(const ap_uint<512>* kv_in, ap_uint<512>* kv_out,
                              const ap_uint<512>* work,
                              const ap_uint<512>* rows, ap_uint<512>* status,
                              uint32_t max_items, uint32_t source_beats,
                              uint32_t num_pages, uint32_t page_stride_beats,
                              uint32_t element, uint32_t head_dim,
                              uint32_t block_tokens);
using KvCopyFunction = void(const ap_uint<512>* source, ap_uint<512>* target,
                            const ap_uint<512>* work, ap_uint<512>* status,
                            uint32_t max_items, uint32_t source_pages,
                            uint32_t source_page_stride_beats,
                            uint32_t target_pages,
                            uint32_t target_page_stride_beats, uint32_t element,
                            uint32_t head_dim, uint32_t block_tokens);
using KvScatterFunction = void(const ap_uint<512>* slab, ap_uint<512>* kv,
                               const ap_uint<512>* work, ap_uint<512>* status,
                               uint32_t max_items, uint32_t source_beats,
                               uint32_t num_pages, uint32_t page_stride_beats);

extern "C" {
PagedDecodeFunction paged_decode;
KvAppendFunction kv_append;
KvCopyFunction kv_copy;
KvScatterFunction kv_scatter;
}

namespace paged_kv::fpga_dma {

// One build of the kernels.
struct KernelEntryPoints {
  PagedDecodeFunction* paged_decode;
  KvAppendFunction* kv_append;
  KvCopyFunction* kv_copy;
  KvScatterFunction* kv_scatter;
};

// KernelSpec::run for another build than the registry's.
absl::Status RunKernel(const KernelEntryPoints& entry_points, KernelId kernel,
                       absl::Span<const BoundArgument> arguments);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ENTRY_POINTS_H_

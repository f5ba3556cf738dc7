// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// kv_store in both builds. A translation unit can have the streams of one
// build only, so tests hand over plain beats.

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_RUN_KV_STORE_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_RUN_KV_STORE_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "tests/fpga_dma/kernels/card_memory.h"

namespace paged_kv::fpga_dma {

struct StreamedBeat {
  std::array<uint32_t, 16> words;
  bool full = true;  // TKEEP is all ones, otherwise 0
  bool last = false;
};

// One launch with a stream that holds these beats and ends. `slab` and `status`
// are the kernel's, as is `slab_beats`. Throws StreamDeadlock if the kernel
// reads on behind the last beat; what it does not read counts as left over
// (stand_in/stream_faults.h).
void RunKvStore(absl::Span<const StreamedBeat> in, CardMemory* slab,
                CardMemory* status, uint32_t slab_beats);
void RunKvStoreThreaded(absl::Span<const StreamedBeat> in, CardMemory* slab,
                        CardMemory* status, uint32_t slab_beats);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_RUN_KV_STORE_H_

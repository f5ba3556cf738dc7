// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The launches of kv_scatter that empty and fill a staging slab. Its runs are
// packed from its start; a slab of lists, in the bank where the kernel looks
// for them, says where they belong:
//
//   0            KernelStatus of the scatter list, zeros
//   64           KernelStatus of the gather list, zeros
//   128          WorkListHeader and ScatterItems: slab to pages
//   behind them  WorkListHeader and ScatterItems: pages to slab
//
// The kernel copies runs of beats from one memory to another, so with its two
// sides exchanged it gathers.

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_SCATTER_LIST_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_SCATTER_LIST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "fpga_dma/device_types.h"
#include "fpga_dma/kernels/kernel_abi.h"

namespace paged_kv::fpga_dma {

inline constexpr char kScatterKernel[] = "kv_scatter";

// The pages of one slab of a pool, as the kernel takes them.
struct ScatterPool {
  SlabId slab;
  uint64_t num_pages = 0;
  uint64_t page_beats = 0;
};

// A run of beats of a page. In the slab, runs lie one after the other.
struct ScatterRun {
  uint32_t page = 0;
  uint32_t page_beat = 0;
  uint32_t num_beats = 0;
};

// Where they are packed, and where their lists are.
struct StagingSlabs {
  SlabId data;
  SlabId lists;
};

class ScatterList {
 public:
  static constexpr uint64_t Bytes(uint64_t runs) {
    return kBeatBytes * (4 + 2 * runs);
  }
  // What is written below is verified before a kernel reads it: a flipped bit
  // of a page index would write to a stranger's page.
  static constexpr uint64_t kListsOffset = 2 * kBeatBytes;

  // Writes both lists and empty status words to `lists` [Bytes(runs)]. `tag` is
  // echoed in the status words. REQUIRES: offsets in the pool of less than 2^32
  // beats.
  static void Write(absl::Span<const ScatterRun> runs, const ScatterPool& pool,
                    uint32_t tag, absl::Span<std::byte> lists);

  // The arguments of the launch that copies the staging slab to the pages, and
  // of the one that copies them back.
  static std::vector<KernelArgument> ScatterArguments(
      const StagingSlabs& staging, uint64_t runs, uint64_t beats,
      const ScatterPool& pool);
  static std::vector<KernelArgument> GatherArguments(
      const StagingSlabs& staging, uint64_t runs, uint64_t beats,
      const ScatterPool& pool);

  // OK if the status word in `lists` is that of one whole run of that list.
  // Internal if the kernel reports an error or anything else.
  static absl::Status CheckScatter(absl::Span<const std::byte> lists,
                                   uint64_t runs, uint32_t tag);
  static absl::Status CheckGather(absl::Span<const std::byte> lists,
                                  uint64_t runs, uint32_t tag);
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_SCATTER_LIST_H_

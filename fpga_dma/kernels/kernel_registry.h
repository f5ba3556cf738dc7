// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels as a card without hardware runs them: what arguments each takes,
// the kernel itself on bounded memory, and what a launch moves and computes.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_KERNEL_REGISTRY_H_
#define PAGED_KV_FPGA_DMA_KERNELS_KERNEL_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "fpga_dma/kernels/kernel_abi.h"

namespace paged_kv::fpga_dma {

struct KernelArgumentSpec {
  absl::string_view name;  // as in the kernel's source
  bool is_address = false;
  uint32_t width_bytes = 0;      // of the register: 8 for addresses, else 4
  uint32_t alignment_bytes = 0;  // of addresses
  bool read = false;             // through an address
  bool written = false;
  // What an address has to have behind it:
  //   (extra_units + value of `count` * value of `stride`) * unit_bytes,
  // where these are indices of scalar arguments; kNone: 1 instead of a value.
  static constexpr uint32_t kNone = ~0u;
  uint32_t count = kNone;
  uint32_t stride = kNone;
  uint32_t unit_bytes = 0;
  uint32_t extra_units = 0;
};

// One argument of a launch.
struct BoundArgument {
  // Of an address: host memory that stands for what lies from there to the end
  // of its slab or bank; not owned. The kernel touches nothing outside.
  absl::Span<std::byte> memory;
  uint64_t device_address = 0;  // of an address, for its alignment
  uint64_t value = 0;           // of a scalar; its low 32 bits count
};

// What a launch does, for a timing model.
struct ArgumentTraffic {
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint32_t burst_bytes = 0;  // typical length of a burst; 0: no traffic
};
struct KernelWork {
  std::vector<ArgumentTraffic> arguments;  // in the order of the arguments
  uint64_t flops = 0;                      // a multiply and an add are two
  uint64_t num_items = 0;                  // of the work list
};

// Thread safety: constant; `run` and `work` may be called from any thread, as
// long as no two launches at a time write the same memory.
struct KernelSpec {
  KernelId id;
  absl::string_view name;  // "paged_decode"
  absl::Span<const KernelArgumentSpec> arguments;
  // Floating-point operations that a compute unit does per clock cycle when
  // nothing starves it; 0 for those that only move bytes.
  uint32_t flops_per_cycle = 0;

  // Runs the kernel to its end. OK means that it ended: what it found wrong
  // with its items is in the status word, as on a card. On a card the launches
  // refused here would have been wild accesses, so nothing is touched:
  // InvalidArgument for a wrong number of arguments or a misaligned address,
  // OutOfRange for memory that is smaller than the scalars say, with both
  // sizes.
  absl::Status (*run)(absl::Span<const BoundArgument> arguments);

  // What that run moves and computes if its items are good (a bad one ends it
  // early). Reads the work
  // list, changes nothing. Same errors.
  absl::StatusOr<KernelWork> (*work)(absl::Span<const BoundArgument> arguments);
};

// All kernels, and the one of that name, nullptr if there is none.
absl::Span<const KernelSpec> Kernels();
const KernelSpec* FindKernel(absl::string_view name);

// The status word as a status: OK, or InvalidArgument with the kernel's error,
// the item and the value, e.g. "paged_decode item 3: page index 900 is not
// below the number of pages".
absl::Status ToStatus(absl::string_view kernel, const KernelStatus& status);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_KERNEL_REGISTRY_H_

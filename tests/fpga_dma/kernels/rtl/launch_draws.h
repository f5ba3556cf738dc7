// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of any launch share: how arguments are drawn and ports behave.

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_LAUNCH_DRAWS_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_LAUNCH_DRAWS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "fpga_dma/kernels/kernel_abi.h"
#include "tests/fpga_dma/kernels/rtl/axi_memory.h"

namespace paged_kv::fpga_dma {

inline constexpr uint32_t kMostStrideBeats = 1u << 24;

// What a kernel has to say of arguments.
struct Verdict {
  KernelError code = KernelError::kOk;
  uint64_t detail = 0;
};

class LaunchDraws {
 public:
  explicit LaunchDraws(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t n) { return random_() % n; }
  // Of any number of bits, up to `bits`.
  uint64_t Any(uint64_t bits) { return random_() >> (64 - 1 - Below(bits)); }

  // Of the memory: latency, and now and then a burst that fails.
  PortBehaviour DrawPort() {
    PortBehaviour port;
    port.latency_cycles = 1 + uint32_t(Below(100));
    if (Below(8) == 0) {
      port.bus_error_burst = 1 + Below(3);
      port.error_response = 2 + uint32_t(Below(2));
    }
    return port;
  }

 protected:
  template <typename Arguments>
  void DrawLimits(Arguments* arguments) {
    if (Below(2) == 0) arguments->burst_beats = uint32_t(Below(65));
    if (Below(2) == 0) arguments->max_outstanding = uint32_t(Below(33));
  }
  // In every second launch one of these becomes any number at all.
  void Spoil(const std::vector<uint64_t*>& addresses,
             const std::vector<uint32_t*>& words) {
    const size_t chosen = Below(2 * (addresses.size() + words.size()));
    if (chosen < addresses.size()) {
      *addresses[chosen] = random_();
    } else if (chosen < addresses.size() + words.size()) {
      *words[chosen - addresses.size()] = uint32_t(Any(32));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_LAUNCH_DRAWS_H_

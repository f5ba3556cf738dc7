// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_RTL_ENGINE_PORT_MEMORY_H_
#define PAGED_KV_FPGA_DMA_RTL_ENGINE_PORT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/types/span.h"

namespace paged_kv::fpga_dma {

// How fast the memory behind a port is, in cycles of the kernel's clock.
struct PortTiming {
  // From a request to its first beat. The default, with the published peak,
  // reproduces the bandwidths that Xilinx measured on a U200
  // (docs/fpga_kernels.md).
  uint32_t latency_cycles = 72;
  double peak = 1;        // share of cycles that can carry a beat
  double gap_cycles = 0;  // that a burst costs besides its beats
};

// Of memory whose bursts of n bytes reach peak * n / (n + gap_bytes) of what a
// port of a beat per cycle can carry (BurstEfficiency of a board).
constexpr PortTiming ToPortTiming(double peak, double gap_bytes) {
  PortTiming timing;
  timing.peak = peak;
  timing.gap_cycles = gap_bytes / 64 / peak;
  return timing;
}

// Memory that answers an AXI4 read port, burst after burst. What lies outside
// answers DECERR and zeros.
//
// Thread safety: thread-compatible.
class PortMemory {
 public:
  // `memory`, not owned, is at `base`, both multiples of 64 bytes.
  PortMemory(uint64_t base, absl::Span<const std::byte> memory,
             const PortTiming& timing)
      : base_(base), memory_(memory), timing_(timing) {}

  // What the port's inputs are in this cycle; `beat` has 64 bytes.
  struct Answer {
    bool valid = false;
    bool last = false;
    uint32_t response = 0;
    const std::byte* beat = nullptr;
  };
  Answer Answered() const;

  // The clock edge. A request of `beats` that the port took (ARREADY is always
  // high), 0 if there is none; `ready` is RREADY.
  void Clock(uint64_t address, uint32_t beats, bool ready);

 private:
  struct Burst {
    uint64_t address;
    uint32_t left;
    uint64_t ready_cycle;
  };

  const uint64_t base_;
  const absl::Span<const std::byte> memory_;
  const PortTiming timing_;
  std::deque<Burst> bursts_;
  uint64_t cycle_ = 0;
  double free_at_ = 0;  // when the bus can carry the next beat
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_RTL_ENGINE_PORT_MEMORY_H_

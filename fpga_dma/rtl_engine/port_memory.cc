// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/rtl_engine/port_memory.h"

#include <algorithm>

#include "fpga_dma/kernels/kernel_abi.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr std::byte kZeros[kBeatBytes] = {};
constexpr uint32_t kDecodeError = 3;  // AXI4's DECERR

}  // namespace

PortMemory::Answer PortMemory::Answered() const {
  if (bursts_.empty() || bursts_.front().ready_cycle > cycle_ ||
      free_at_ >= static_cast<double>(cycle_) + 1) {
    return {};
  }
  const Burst& burst = bursts_.front();
  Answer answer = {true, burst.left == 1, kDecodeError, kZeros};
  const uint64_t offset = burst.address - base_;
  if (burst.address >= base_ && offset < memory_.size() &&
      memory_.size() - offset >= kBeatBytes) {
    answer.response = 0;
    answer.beat = memory_.data() + offset;
  }
  return answer;
}

void PortMemory::Clock(uint64_t address, uint32_t beats, bool ready) {
  const bool moves = ready && Answered().valid;
  if (beats > 0) {
    bursts_.push_back({address, beats, cycle_ + timing_.latency_cycles});
  }
  if (moves) {
    // The bus catches up on fractions of a cycle, not on time it was idle.
    free_at_ =
        std::max(free_at_, static_cast<double>(cycle_)) + 1 / timing_.peak;
    Burst& burst = bursts_.front();
    burst.address += kBeatBytes;
    if (--burst.left == 0) {
      bursts_.pop_front();
      free_at_ += timing_.gap_cycles;
    }
  }
  ++cycle_;
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fpga_dma/kernels/rtl/axi_memory.h"

#include <algorithm>
#include <cmath>

namespace paged_kv::fpga_dma {
namespace {

constexpr uint64_t kBytes = 64;
constexpr uint64_t kBoundary = 4096;

// splitmix64's finaliser (Steele, Lea & Flood 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

Beat BeatMemory::Read(uint64_t address) const {
  const auto found = written_.find(address / kBytes);
  if (found != written_.end()) return found->second;
  Beat beat;
  for (size_t i = 0; i < beat.size(); ++i) {
    beat[i] = static_cast<uint32_t>(Mix(address / kBytes * 16 + i));
  }
  return beat;
}

void BeatMemory::Write(uint64_t address, const Beat& beat) {
  written_[address / kBytes] = beat;
}

void AxiPort::Start(const PortBehaviour& behaviour, AddressRange allowed,
                    uint32_t burst_limit, uint32_t outstanding_limit) {
  behaviour_ = behaviour;
  allowed_ = allowed;
  burst_limit_ = burst_limit;
  outstanding_limit_ = outstanding_limit;
  most_outstanding_ = 0;
  longest_burst_ = 0;
  bursts_at_start_ = bursts_;
}

void AxiPort::Fail(const std::string& what) {
  if (errors_.size() < 20) errors_.push_back(name_ + ": " + what);
}

bool AxiPort::Chance(double share) {
  return share > 0 && std::uniform_real_distribution<>(0, 1)(random_) < share;
}

void AxiPort::CheckRequest(const AxiRequest& request, bool ready,
                           size_t outstanding) {
  if (waiting_.valid &&
      (!request.valid || request.address != waiting_.address ||
       request.length != waiting_.length)) {
    Fail("a request changed while it waited");
  }
  waiting_ = request;
  waiting_.valid = request.valid && !ready;
  if (!request.valid || !ready) return;
  ++bursts_;
  const uint32_t beats = request.length + 1;
  const uint64_t end = request.address + beats * kBytes;
  longest_burst_ = std::max(longest_burst_, beats);
  const auto now = static_cast<uint32_t>(outstanding + 1);
  most_outstanding_ = std::max(most_outstanding_, now);
  if (request.address % kBytes != 0) Fail("address between beats");
  if (beats > burst_limit_) {
    Fail("burst of " + std::to_string(beats) + " beats");
  }
  if (request.address / kBoundary != (end - 1) / kBoundary) {
    Fail("burst crosses 4 KiB at " + std::to_string(request.address));
  }
  if (request.address < allowed_.begin || end > allowed_.end) {
    Fail("address outside its memory: " + std::to_string(request.address));
  }
  if (now > outstanding_limit_) {
    Fail(std::to_string(now) + " bursts outstanding");
  }
  if (request.size != 6 || request.burst != 1) {
    Fail("not an incrementing burst of 64 bytes per beat");
  }
}

const AxiReadPort::Inputs& AxiReadPort::Drive() {
  inputs_.ar_ready = !Chance(behaviour_.refuse);
  if (inputs_.valid) return inputs_;  // waits for RREADY
  const auto now = static_cast<double>(cycle_);
  if (queue_.empty() || queue_.front().ready_cycle > cycle_ ||
      free_at_ >= now + 1 || Chance(behaviour_.pause)) {
    return inputs_;
  }
  const Burst& burst = queue_.front();
  inputs_.valid = true;
  inputs_.data = memory_->Read(burst.address);
  inputs_.last = burst.left == 1;
  inputs_.response = burst.fails ? behaviour_.error_response : 0;
  return inputs_;
}

void AxiReadPort::Sample(const AxiRequest& request, bool r_ready) {
  CheckRequest(request, inputs_.ar_ready, queue_.size());
  if (request.valid && inputs_.ar_ready) {
    uint64_t ready = cycle_ + behaviour_.latency_cycles;
    if (behaviour_.jitter_cycles > 0) {
      ready += random_() % (behaviour_.jitter_cycles + 1);
    }
    queue_.push_back(
        {request.address, request.length + 1, ready,
         bursts_ - bursts_at_start_ == behaviour_.bus_error_burst});
  }
  if (inputs_.valid && r_ready) {
    inputs_.valid = false;
    // The bus catches up on fractions of a cycle, not on time it was idle.
    free_at_ =
        std::max(free_at_, static_cast<double>(cycle_)) + 1 / behaviour_.peak;
    Burst& burst = queue_.front();
    burst.address += kBytes;
    if (--burst.left == 0) {
      queue_.pop_front();
      free_at_ += behaviour_.gap_cycles;
    }
  }
  ++cycle_;
}

void AxiReadPort::Reset() {
  waiting_ = AxiRequest();
  queue_.clear();
  inputs_ = {};
}

const AxiWritePort::Inputs& AxiWritePort::Drive() {
  inputs_.aw_ready = !Chance(behaviour_.refuse);
  inputs_.w_ready = !Chance(behaviour_.pause);
  if (inputs_.b_valid) return inputs_;  // waits for BREADY
  if (!responses_.empty() && responses_.front().ready_cycle <= cycle_ &&
      !Chance(behaviour_.pause)) {
    inputs_.b_valid = true;
    inputs_.response = responses_.front().fails ? behaviour_.error_response : 0;
  }
  return inputs_;
}

void AxiWritePort::Sample(const AxiRequest& request, const Data& data,
                          bool b_ready) {
  CheckRequest(request, inputs_.aw_ready,
               addresses_.size() + responses_.size());
  if (request.valid && inputs_.aw_ready) {
    addresses_.push_back({request.address, request.length + 1});
  }
  if (waiting_data_.valid && (!data.valid || data.beat != waiting_data_.beat ||
                              data.last != waiting_data_.last)) {
    Fail("data changed while it waited");
  }
  waiting_data_ = data;
  waiting_data_.valid = data.valid && !inputs_.w_ready;
  if (data.valid && inputs_.w_ready) {
    if (data.strobes != ~uint64_t{0}) Fail("strobes are not all set");
    arriving_.push_back(data.beat);
    if (arriving_.size() > 64) {
      Fail("WLAST is missing");
      arriving_.clear();
    }
    if (data.last) {
      data_.push_back(arriving_);
      arriving_.clear();
    }
  }
  if (inputs_.b_valid && b_ready) {
    inputs_.b_valid = false;
    responses_.pop_front();
  }
  FinishBursts();
  ++cycle_;
}

void AxiWritePort::FinishBursts() {
  while (!addresses_.empty() && !data_.empty()) {
    const Burst burst = addresses_.front();
    if (data_.front().size() != burst.beats) {
      Fail("WLAST after " + std::to_string(data_.front().size()) + " of " +
           std::to_string(burst.beats) + " beats");
    }
    for (size_t i = 0; i < data_.front().size(); ++i) {
      memory_->Write(burst.address + i * kBytes, data_.front()[i]);
    }
    addresses_.pop_front();
    data_.pop_front();
    uint64_t ready = cycle_ + behaviour_.latency_cycles;
    if (behaviour_.jitter_cycles > 0) {
      ready += random_() % (behaviour_.jitter_cycles + 1);
    }
    responses_.push_back(
        {ready, bursts_ - bursts_at_start_ == behaviour_.bus_error_burst});
  }
}

void AxiWritePort::Reset() {
  waiting_ = AxiRequest();
  waiting_data_ = {};
  addresses_.clear();
  data_.clear();
  arriving_.clear();
  responses_.clear();
  inputs_ = {};
}

bool AxiWritePort::idle() const {
  return addresses_.empty() && data_.empty() && arriving_.empty() &&
         responses_.empty();
}

}  // namespace paged_kv::fpga_dma

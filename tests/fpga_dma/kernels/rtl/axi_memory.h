// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory behind AXI4 ports, with a checker of what arrives at them. Latency,
// gaps and refusals are drawn from a seed.

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_AXI_MEMORY_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_AXI_MEMORY_H_

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace paged_kv::fpga_dma {

using Beat = std::array<uint32_t, 16>;

// 2^64 bytes, in beats. What was never written holds a hash of its address, so
// that no two places look alike.
class BeatMemory {
 public:
  Beat Read(uint64_t address) const;
  void Write(uint64_t address, const Beat& beat);
  const std::unordered_map<uint64_t, Beat>& written() const {
    return written_;  // by number of beat
  }

 private:
  std::unordered_map<uint64_t, Beat> written_;
};

// Where a port may go: [begin, end).
struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct PortBehaviour {
  uint32_t latency_cycles = 1;   // from a request to its first beat
  uint32_t jitter_cycles = 0;    // drawn from 0 .. this, added to the latency
  double refuse = 0;             // share of cycles without READY
  double pause = 0;              // share of cycles without a beat or response
  double gap_cycles = 0;         // between bursts
  double peak = 1;               // share of cycles that can carry a beat
  uint64_t bus_error_burst = 0;  // the burst that fails, from 1; 0: none
  uint32_t error_response = 2;   // 2: SLVERR, 3: DECERR
};

// What the kernel asks for on AR or AW.
struct AxiRequest {
  bool valid = false;
  uint64_t address = 0;
  uint32_t length = 0;  // beats - 1
  uint32_t size = 6;    // AxSIZE
  uint32_t burst = 1;   // AxBURST
};

// What both kinds of port have. Errors are sentences; a correct kernel leaves
// none.
class AxiPort {
 public:
  AxiPort(std::string name, uint64_t seed) : name_(name), random_(seed) {}
  virtual ~AxiPort() = default;

  void Start(const PortBehaviour& behaviour, AddressRange allowed,
             uint32_t burst_limit, uint32_t outstanding_limit);
  const std::vector<std::string>& errors() const { return errors_; }
  virtual bool idle() const = 0;               // nothing is in flight
  uint64_t bursts() const { return bursts_; }  // since construction
  uint32_t most_outstanding() const { return most_outstanding_; }
  uint32_t longest_burst() const { return longest_burst_; }

 protected:
  void Fail(const std::string& what);
  bool Chance(double share);
  // Checks a request, and that one that waits stays as it is.
  void CheckRequest(const AxiRequest& request, bool ready, size_t outstanding);

  std::string name_;
  PortBehaviour behaviour_;
  std::mt19937_64 random_;
  AddressRange allowed_;
  uint32_t burst_limit_ = 64;
  uint32_t outstanding_limit_ = 32;
  AxiRequest waiting_;
  std::vector<std::string> errors_;
  uint64_t bursts_ = 0, bursts_at_start_ = 0;
  uint32_t most_outstanding_ = 0, longest_burst_ = 0;
};

// Every cycle: Drive() gives the port's inputs, then the kernel's outputs go to
// Sample(), which is the clock edge.
class AxiReadPort : public AxiPort {
 public:
  AxiReadPort(std::string name, const BeatMemory* memory, uint64_t seed)
      : AxiPort(name, seed), memory_(memory) {}

  struct Inputs {
    bool ar_ready, valid, last;
    uint32_t response;
    Beat data;
  };
  const Inputs& Drive();
  void Sample(const AxiRequest& request, bool r_ready);
  bool idle() const override { return queue_.empty(); }
  void Reset();  // along with the kernel's: forgets what is in flight

 private:
  struct Burst {
    uint64_t address;
    uint32_t left;
    uint64_t ready_cycle;
    bool fails;
  };
  const BeatMemory* memory_;
  Inputs inputs_ = {};
  std::deque<Burst> queue_;
  uint64_t cycle_ = 0;
  double free_at_ = 0;  // when the bus can carry the next beat, in cycles
};

class AxiWritePort : public AxiPort {
 public:
  AxiWritePort(std::string name, BeatMemory* memory, uint64_t seed)
      : AxiPort(name, seed), memory_(memory) {}

  struct Inputs {
    bool aw_ready, w_ready, b_valid;
    uint32_t response;
  };
  struct Data {
    bool valid, last;
    uint64_t strobes;
    Beat beat;
  };
  const Inputs& Drive();
  void Sample(const AxiRequest& request, const Data& data, bool b_ready);
  bool idle() const override;
  void Reset();  // along with the kernel's: forgets what is in flight

 private:
  struct Burst {
    uint64_t address;
    uint32_t beats;
  };
  struct Response {
    uint64_t ready_cycle;
    bool fails;
  };
  void FinishBursts();

  BeatMemory* memory_;
  Inputs inputs_ = {};
  std::deque<Burst> addresses_;
  std::deque<std::vector<Beat>> data_;  // whole bursts, by WLAST
  std::vector<Beat> arriving_;
  std::deque<Response> responses_;
  Data waiting_data_ = {};
  uint64_t cycle_ = 0;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_AXI_MEMORY_H_

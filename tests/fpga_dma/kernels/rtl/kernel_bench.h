// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A Verilated kernel on a bench: its clock, its registers, and the memory at
// its ports.

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_KERNEL_BENCH_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_KERNEL_BENCH_H_

#include <verilated.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fpga_dma/kernels/kernel_abi.h"
#include "tests/fpga_dma/kernels/rtl/axi_memory.h"

namespace paged_kv::fpga_dma {

inline constexpr uint32_t kControl = 0x00;
inline constexpr uint32_t kGlobalInterrupt = 0x04;
inline constexpr uint32_t kInterruptEnable = 0x08;
inline constexpr uint32_t kInterruptStatus = 0x0C;
inline constexpr uint32_t kArguments = 0x10;
inline constexpr uint32_t kStatus = 0x80;
// Bits of the control register.
inline constexpr uint32_t kApStart = 1, kApDone = 2, kApIdle = 4, kApReady = 8,
                          kApContinue = 16;

struct RtlStatus {
  KernelError code;
  uint32_t item;
  uint64_t detail;
  uint32_t items_done;
  uint32_t bad_items;
  uint32_t launches;
  uint32_t cycles;
};

// Of a Verilated model: copies a 512-bit signal.
template <typename Wide>
Beat BeatOf(const Wide& wide) {
  Beat beat;
  for (size_t i = 0; i < beat.size(); ++i) beat[i] = wide[i];
  return beat;
}
template <typename Wide>
void SetBeat(const Beat& beat, Wide* wide) {
  for (size_t i = 0; i < beat.size(); ++i) (*wide)[i] = beat[i];
}

// Arguments that limit bursts say 0 for the most there is.
inline uint32_t LimitOf(uint32_t argument, uint32_t most) {
  return argument == 0 || argument > most ? most : argument;
}
inline uint32_t LowWord(uint64_t value) { return static_cast<uint32_t>(value); }
inline uint32_t HighWord(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}

// A bench clocks a kernel through Cycle(); everything else is built on it.
class KernelBench {
 public:
  // Nothing takes longer; a job that does hangs.
  static constexpr uint64_t kHang = 400'000;

  virtual ~KernelBench() = default;
  // One clock cycle of the kernel and all its ports.
  virtual void Cycle() = 0;
  // The ports forget what is in flight.
  virtual void ResetPorts() = 0;
  virtual std::vector<const AxiPort*> Ports() const = 0;
  // Sentences on what broke a protocol; a correct kernel leaves none.
  virtual std::vector<std::string> ProtocolErrors() const;
  bool PortsIdle() const;

  void WriteRegister(uint32_t offset, uint32_t value, uint32_t strobes = 15);
  uint32_t ReadRegister(uint32_t offset);
  void WriteArguments(const std::vector<uint32_t>& words);
  RtlStatus ReadStatus();
  void ClearStatus() { WriteRegister(kStatus, 0); }
  // Starts the kernel, waits for it and continues it. False if it hangs.
  bool Launch();
  bool WaitUntilDone();
  // Reads the control register at most so many times.
  bool WaitUntilDone(int most_polls);
  // The kernel and its ports, at any time.
  void Reset();
  // How long the host takes to accept the response to an access.
  void SetResponseDelay(uint32_t cycles) { response_delay_ = cycles; }
  bool interrupt() const { return pins_.interrupt; }
  uint64_t cycles() const { return cycles_; }

 protected:
  // The AXI4-Lite port and the reset, which a bench copies to its kernel's pins
  // before the clock edge and from them.
  struct Pins {
    bool reset_n = true;
    bool aw_valid = false, w_valid = false, b_ready = true;
    bool ar_valid = false, r_ready = true;
    uint32_t aw_address = 0, w_data = 0, w_strobes = 15, ar_address = 0;
    bool aw_ready = false, b_valid = false, ar_ready = false, r_valid = false;
    uint32_t r_data = 0;
    bool interrupt = false;
  };
  template <typename Kernel>
  void DrivePins(Kernel* kernel) {
    kernel->ap_rst_n = pins_.reset_n;
    kernel->s_axi_control_awvalid = pins_.aw_valid;
    kernel->s_axi_control_awaddr = static_cast<uint8_t>(pins_.aw_address);
    kernel->s_axi_control_wvalid = pins_.w_valid;
    kernel->s_axi_control_wdata = pins_.w_data;
    kernel->s_axi_control_wstrb = pins_.w_strobes & 15;
    kernel->s_axi_control_bready = pins_.b_ready;
    kernel->s_axi_control_arvalid = pins_.ar_valid;
    kernel->s_axi_control_araddr = static_cast<uint8_t>(pins_.ar_address);
    kernel->s_axi_control_rready = pins_.r_ready;
  }
  template <typename Kernel>
  void SamplePins(const Kernel& kernel) {
    pins_.aw_ready =
        kernel.s_axi_control_awready && kernel.s_axi_control_wready;
    pins_.b_valid = kernel.s_axi_control_bvalid;
    pins_.ar_ready = kernel.s_axi_control_arready;
    pins_.r_valid = kernel.s_axi_control_rvalid;
    pins_.r_data = kernel.s_axi_control_rdata;
    // Verilator's name for a signal whose own name some C++ header takes.
    pins_.interrupt = kernel.__SYM__interrupt;
    ++cycles_;
  }

  // Where the kernel was built with Verilator's coverage and the variable
  // PAGED_KV_RTL_COVERAGE names a folder: writes what this bench's kernel
  // reached to a file of its own there. For destructors of benches: the kernel
  // still has to be there.
  void WriteCoverage();

  VerilatedContext context_;  // of this bench's kernel alone
  Pins pins_;
  uint32_t response_delay_ = 0;
  uint64_t cycles_ = 0;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_KERNEL_BENCH_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fpga_dma/kernels/rtl/kernel_bench.h"

#if defined(VM_COVERAGE) && VM_COVERAGE
#include <verilated_cov.h>

#include <cstdlib>
#endif

namespace paged_kv::fpga_dma {

void KernelBench::WriteRegister(uint32_t offset, uint32_t value,
                                uint32_t strobes) {
  pins_.aw_address = offset;
  pins_.w_data = value;
  pins_.w_strobes = strobes;
  pins_.aw_valid = pins_.w_valid = true;
  do {
    Cycle();
  } while (!pins_.aw_ready);
  pins_.aw_valid = pins_.w_valid = false;
  pins_.b_ready = false;
  for (uint32_t i = 0; i < response_delay_; ++i) Cycle();
  pins_.b_ready = true;
  do {
    Cycle();
  } while (!pins_.b_valid);
}

uint32_t KernelBench::ReadRegister(uint32_t offset) {
  pins_.ar_address = offset;
  pins_.ar_valid = true;
  do {
    Cycle();
  } while (!pins_.ar_ready);
  pins_.ar_valid = false;
  pins_.r_ready = false;
  for (uint32_t i = 0; i < response_delay_; ++i) Cycle();
  pins_.r_ready = true;
  do {
    Cycle();
  } while (!pins_.r_valid);
  return pins_.r_data;
}

void KernelBench::WriteArguments(const std::vector<uint32_t>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    WriteRegister(kArguments + 4 * static_cast<uint32_t>(i), words[i]);
  }
}

RtlStatus KernelBench::ReadStatus() {
  uint32_t words[8];
  for (uint32_t i = 0; i < 8; ++i) words[i] = ReadRegister(kStatus + 4 * i);
  return {static_cast<KernelError>(words[0]),
          words[1],
          words[2] | uint64_t{words[3]} << 32,
          words[4],
          words[5],
          words[6],
          words[7]};
}

bool KernelBench::WaitUntilDone() {
  const uint64_t start = cycles_;
  while ((ReadRegister(kControl) & kApDone) == 0) {
    if (cycles_ - start > kHang) return false;
  }
  return true;
}

bool KernelBench::WaitUntilDone(int most_polls) {
  for (int i = 0; i < most_polls; ++i) {
    if ((ReadRegister(kControl) & kApDone) != 0) return true;
  }
  return false;
}

std::vector<std::string> KernelBench::ProtocolErrors() const {
  std::vector<std::string> errors;
  for (const AxiPort* port : Ports()) {
    errors.insert(errors.end(), port->errors().begin(), port->errors().end());
  }
  return errors;
}

bool KernelBench::PortsIdle() const {
  for (const AxiPort* port : Ports()) {
    if (!port->idle()) return false;
  }
  return true;
}

bool KernelBench::Launch() {
  WriteRegister(kControl, kApStart);
  if (!WaitUntilDone()) return false;
  WriteRegister(kControl, kApContinue);
  return true;
}

void KernelBench::Reset() {
  pins_.reset_n = false;
  for (int i = 0; i < 4; ++i) {
    ResetPorts();
    Cycle();
  }
  ResetPorts();
  pins_.reset_n = true;
  Cycle();
}

void KernelBench::WriteCoverage() {
#if defined(VM_COVERAGE) && VM_COVERAGE
  static int number = 0;
  const char* folder = std::getenv("PAGED_KV_RTL_COVERAGE");
  if (folder == nullptr) return;
  const std::string path =
      std::string(folder) + "/" + std::to_string(number++) + ".dat";
  context_.coveragep()->write(path.c_str());
#endif
}

}  // namespace paged_kv::fpga_dma

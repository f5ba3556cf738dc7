// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the project's kernels on the memory of a modelled card, as the compute
// units of a board.

#ifndef PAGED_KV_FPGA_DMA_CARD_MODEL_KERNEL_RUNNER_H_
#define PAGED_KV_FPGA_DMA_CARD_MODEL_KERNEL_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fpga_dma/card_model/bank_memory.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/card_model/timing_model.h"
#include "fpga_dma/device_types.h"
#include "fpga_dma/kernels/kernel_registry.h"

namespace paged_kv::fpga_dma {

// What is in an argument's register.
struct LaunchArgument {
  uint64_t value = 0;  // a device address or a scalar
  // Of an address: how much memory there belongs to the argument. 0: all to
  // the end of its bank, as far as a card would let the kernel go.
  uint64_t memory_bytes = 0;
};

// A kernel run with its arguments bound to memory.
struct KernelLaunch {
  uint32_t unit = 0;
  std::vector<BoundArgument> arguments;
};

// Thread safety: constant after Create(). Launches beside each other follow
// the rule of KernelSpec.
class KernelRunner {
 public:
  // `kernels` outlive the runner. NotFound: the board has a compute unit of
  // another kernel. InvalidArgument: an address argument of a unit is
  // connected to no bank, or a port of the board is no address argument.
  static absl::StatusOr<KernelRunner> Create(
      const Board& board, absl::Span<const KernelSpec> kernels);

  // `unit` is an index in Board::compute_units.
  size_t units() const { return units_.size(); }
  const KernelSpec& spec(uint32_t unit) const { return *units_[unit].spec; }
  // kNoBank for scalars. [arguments]
  const std::vector<BankId>& argument_banks(uint32_t unit) const {
    return units_[unit].argument_banks;
  }

  // InvalidArgument: no such unit, a wrong number of arguments, an address
  // that is misaligned or in a bank that its port does not reach. OutOfRange:
  // an address in no bank, or memory beyond it.
  absl::StatusOr<KernelLaunch> Bind(uint32_t unit,
                                    absl::Span<const LaunchArgument> arguments,
                                    const BankMemory& memory) const;

  // What the launch moves and computes, for TimingModel::Kernel; reads its
  // work list. Errors as KernelSpec::work.
  absl::StatusOr<KernelLoad> Load(const KernelLaunch& launch) const;
  // Runs it to its end. Errors as KernelSpec::run; what the kernel itself
  // found wrong is in its status word.
  absl::Status Run(const KernelLaunch& launch) const;

 private:
  struct Unit {
    const KernelSpec* spec = nullptr;
    std::string instance;
    std::vector<BankId> argument_banks;
  };

  std::vector<Unit> units_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_CARD_MODEL_KERNEL_RUNNER_H_

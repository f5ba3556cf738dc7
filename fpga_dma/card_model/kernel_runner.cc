// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/kernel_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

const KernelSpec* Find(absl::Span<const KernelSpec> kernels,
                       absl::string_view name) {
  for (const KernelSpec& kernel : kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

BankId PortBank(const BoardComputeUnit& unit, absl::string_view argument) {
  for (const auto& [name, bank] : unit.ports) {
    if (name == argument) return bank;
  }
  return kNoBank;
}

}  // namespace

absl::StatusOr<KernelRunner> KernelRunner::Create(
    const Board& board, absl::Span<const KernelSpec> kernels) {
  KernelRunner runner;
  for (const BoardComputeUnit& unit : board.compute_units) {
    const KernelSpec* spec = Find(kernels, unit.kernel);
    if (spec == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("board ", board.name, " has a compute unit ",
                       unit.instance, " of a kernel that is not known"));
    }
    Unit bound{spec, unit.instance, {}};
    size_t connected = 0;
    for (const KernelArgumentSpec& argument : spec->arguments) {
      const BankId bank = PortBank(unit, argument.name);
      if (argument.is_address != (bank != kNoBank)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "board ", board.name, ": argument ", argument.name, " of ",
            unit.instance,
            argument.is_address ? " is connected to no bank"
                                : " is a scalar and connected to a bank"));
      }
      if (argument.is_address) ++connected;
      bound.argument_banks.push_back(bank);
    }
    if (connected != unit.ports.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "board ", board.name, " connects ", unit.ports.size(), " ports of ",
          unit.instance, ", kernel ", spec->name, " has ", connected,
          " address arguments of these names"));
    }
    runner.units_.push_back(std::move(bound));
  }
  return runner;
}

absl::StatusOr<KernelLaunch> KernelRunner::Bind(
    uint32_t unit_index, absl::Span<const LaunchArgument> arguments,
    const BankMemory& memory) const {
  if (unit_index >= units_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no compute unit ", unit_index, "; there are ", units_.size()));
  }
  const Unit& unit = units_[unit_index];
  if (arguments.size() != unit.spec->arguments.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(unit.instance, " takes ", unit.spec->arguments.size(),
                     " arguments, got ", arguments.size()));
  }
  KernelLaunch launch{unit_index, {}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgumentSpec& spec = unit.spec->arguments[i];
    const uint64_t value = arguments[i].value;
    BoundArgument bound;
    bound.value = value;
    if (spec.is_address) {
      bound.value = 0;
      bound.device_address = value;
      const std::string name = absl::StrCat(unit.instance, ".", spec.name);
      const BankId bank = memory.BankOf(value);
      if (bank == kNoBank) {
        return absl::OutOfRangeError(absl::StrCat(
            name, ": device address 0x", absl::Hex(value), " is in no bank"));
      }
      if (bank != unit.argument_banks[i]) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": address 0x", absl::Hex(value), " is in bank ",
                         bank.value(), ", the port reaches bank ",
                         unit.argument_banks[i].value()));
      }
      if (spec.alignment_bytes > 1 && value % spec.alignment_bytes != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": address 0x", absl::Hex(value),
                         " is no multiple of ", spec.alignment_bytes));
      }
      const uint64_t to_end = memory.BytesToEnd(value);
      PAGED_KV_ASSIGN_OR_RETURN(
          bound.memory,
          memory.Translate(value, arguments[i].memory_bytes == 0
                                      ? to_end
                                      : arguments[i].memory_bytes));
    }
    launch.arguments.push_back(bound);
  }
  return launch;
}

absl::StatusOr<KernelLoad> KernelRunner::Load(
    const KernelLaunch& launch) const {
  const Unit& unit = units_.at(launch.unit);
  absl::StatusOr<KernelWork> work = unit.spec->work(launch.arguments);
  if (!work.ok()) return work.status();
  KernelLoad load;
  load.flops = work->flops;
  for (size_t i = 0; i < work->arguments.size(); ++i) {
    const ArgumentTraffic& traffic = work->arguments[i];
    if (traffic.bytes_read + traffic.bytes_written == 0) continue;
    load.ports.push_back({unit.argument_banks.at(i), traffic.bytes_read,
                          traffic.bytes_written, traffic.burst_bytes});
  }
  return load;
}

absl::Status KernelRunner::Run(const KernelLaunch& launch) const {
  return units_.at(launch.unit).spec->run(launch.arguments);
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/kernels/kernel_checks.h"

#include "absl/strings/str_cat.h"

namespace paged_kv::fpga_dma {
namespace {

uint64_t ScalarOr1(absl::Span<const BoundArgument> arguments, uint32_t index) {
  return index == KernelArgumentSpec::kNone ? 1 : Scalar(arguments, index);
}

absl::Status CheckAddress(const KernelSpec& kernel, size_t index,
                          absl::Span<const BoundArgument> arguments) {
  const KernelArgumentSpec& spec = kernel.arguments[index];
  const BoundArgument& argument = arguments[index];
  const uintptr_t host = reinterpret_cast<uintptr_t>(argument.memory.data());
  if (argument.device_address % spec.alignment_bytes != 0 ||
      host % kBeatBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        kernel.name, ": ", spec.name, " at device address ",
        argument.device_address, " is not a multiple of ", spec.alignment_bytes,
        " bytes (host memory of ", kBeatBytes, ")"));
  }
  // Two 32-bit factors; compared in units, since the bytes may not fit 64 bits.
  const uint64_t units =
      ScalarOr1(arguments, spec.count) * ScalarOr1(arguments, spec.stride);
  const uint64_t have_units = argument.memory.size() / spec.unit_bytes;
  if (have_units < spec.extra_units || have_units - spec.extra_units < units) {
    return absl::OutOfRangeError(absl::StrCat(
        kernel.name, ": ", spec.name, " needs ", spec.extra_units, " + ", units,
        " x ", spec.unit_bytes, " bytes, has ", argument.memory.size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckArguments(const KernelSpec& kernel,
                            absl::Span<const BoundArgument> arguments) {
  if (arguments.size() != kernel.arguments.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kernel.name, " takes ", kernel.arguments.size(),
                     " arguments, not ", arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!kernel.arguments[i].is_address) continue;
    const absl::Status status = CheckAddress(kernel, i, arguments);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::fpga_dma

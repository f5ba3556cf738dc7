// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What callers of SimulatedDevice do wrong, in its own words.

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "fpga_dma/simulated_device.h"

namespace paged_kv::fpga_dma {

std::vector<SimulatedDevice::Access> SimulatedDevice::AccessesOf(
    const Operation& operation) {
  const SlabRange& target = operation.target;
  switch (operation.kind) {
    case CardOperation::kUpload:
      return {{true, target, true}, {false, target, false}};
    case CardOperation::kDownload:
      return {{true, target, false}, {false, target, true}};
    case CardOperation::kCopy:
      return {{true, target, true}, {true, operation.source, false}};
    default:
      return operation.accesses;  // kernels have said already
  }
}

std::vector<SimulatedDevice::Access> SimulatedDevice::AccessesOf(
    const KernelSpec& kernel, absl::Span<const KernelArgument> arguments) {
  std::vector<Access> accesses;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgumentSpec& spec = kernel.arguments[i];
    // Of pools, rings and tables a run uses a part that only it knows.
    const bool one_unit = spec.count == KernelArgumentSpec::kNone;
    const bool work_list = spec.extra_units > 0;
    if (!spec.is_address || !(one_unit || work_list)) continue;
    const uint64_t units =
        one_unit ? 1 : arguments[spec.count].value & 0xFFFFFFFFu;
    const uint64_t bytes = (spec.extra_units + units) * spec.unit_bytes;
    if (bytes == 0) continue;
    accesses.push_back(
        {true, {arguments[i].slab, arguments[i].value, bytes}, spec.written});
  }
  return accesses;
}

bool SimulatedDevice::Conflict(const Access& a, const Access& b) {
  return a.on_device == b.on_device && (a.writes || b.writes) &&
         a.range.slab == b.range.slab &&
         a.range.offset < b.range.offset + b.range.bytes &&
         b.range.offset < a.range.offset + a.range.bytes;
}

void SimulatedDevice::NoteMisuseAtStart(OpId id, Operation& operation) {
  operation.accesses = AccessesOf(operation);
  for (const auto& [other_id, other] : operations_) {
    // One queue is worked off in order.
    if (other.queue == operation.queue || other.silent) continue;
    for (const Access& a : operation.accesses) {
      for (const Access& b : other.accesses) {
        if (!Conflict(a, b)) continue;
        misuses_.push_back(absl::StrCat(
            CardOperationName(operation.kind), " ", id.value(), " and pending ",
            CardOperationName(other.kind), " ", other_id.value(),
            ", which nothing orders, use the same bytes of ",
            a.on_device ? "device memory" : "an image", ": ", a.range.bytes,
            " at ", a.range.offset, " of slab ", a.range.slab.value()));
      }
    }
  }
  if (operation.kind == CardOperation::kUpload) {
    const std::byte* image = Image(operation.target);
    operation.image_copy.assign(image, image + operation.target.bytes);
  }
}

void SimulatedDevice::NoteMisuseAtFinish(OpId id, const Operation& operation) {
  bool changed = false;
  const size_t bytes = static_cast<size_t>(operation.target.bytes);
  if (operation.kind == CardOperation::kUpload) {
    changed = std::memcmp(Image(operation.target), operation.image_copy.data(),
                          bytes) != 0;
  } else if (operation.kind == CardOperation::kDownload) {
    const std::byte* image = Image(operation.target);
    changed = std::any_of(image, image + bytes, [](std::byte each) {
      return each != BankMemory::kPoison;
    });
  }
  if (!changed) return;
  misuses_.push_back(absl::StrCat(
      "the image was changed during ", CardOperationName(operation.kind), " ",
      id.value(), ": ", bytes, " bytes at ", operation.target.offset,
      " of slab ", operation.target.slab.value()));
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The words in which one talks to a Device.

#ifndef PAGED_KV_FPGA_DMA_DEVICE_TYPES_H_
#define PAGED_KV_FPGA_DMA_DEVICE_TYPES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "paged_kv/types.h"

namespace paged_kv::fpga_dma {

// Index in DeviceInfo::banks.
using BankId = StrongId<struct BankIdTag, uint32_t>;
inline constexpr BankId kNoBank{0xFFFFFFFFu};

// A slab of one device; never reused.
using SlabId = StrongId<struct SlabIdTag, uint64_t>;

// An operation of one device; never reused, larger is later.
using OpId = StrongId<struct OpIdTag, uint64_t>;

enum class SlabKind : uint8_t { kDeviceOnly, kHostVisible };

// Bytes [offset, offset + bytes) of a slab.
struct SlabRange {
  SlabId slab;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// An argument of a kernel: an address in a slab, or a scalar whose low bits
// are passed (a float by its bits).
struct KernelArgument {
  enum class Kind : uint8_t { kAddress, kScalar };
  Kind kind = Kind::kScalar;
  SlabId slab;         // kAddress
  uint64_t value = 0;  // kAddress: offset in the slab; kScalar: the value
};

inline KernelArgument AddressArgument(SlabId slab, uint64_t offset = 0) {
  return {KernelArgument::Kind::kAddress, slab, offset};
}
inline KernelArgument ScalarArgument(uint64_t value) {
  return {KernelArgument::Kind::kScalar, SlabId(), value};
}

enum class OpState : uint8_t { kPending, kFinished, kUnknown };

// How an operation ended. Times are of Device::Now().
struct Completion {
  OpId op;
  absl::Status status;
  absl::Time started;  // when the channel or unit took it up
  absl::Time finished;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_DEVICE_TYPES_H_

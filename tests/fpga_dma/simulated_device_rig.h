// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What tests of the simulated device share: a small board with one kernel that
// is easy to predict, and short ways to do things.

#ifndef PAGED_KV_TESTS_FPGA_DMA_SIMULATED_DEVICE_RIG_H_
#define PAGED_KV_TESTS_FPGA_DMA_SIMULATED_DEVICE_RIG_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/card_model/fault_plan.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/simulated_device.h"
#include "gtest/gtest.h"

namespace paged_kv::fpga_dma::simulated_device_rig {

// "add": out[i] = in[i] + value, for bytes [0, count). Says of itself that it
// uses 64 bytes at both addresses.
inline constexpr KernelArgumentSpec kAddArguments[] = {
    {"in", true, 8, 64, true, false, KernelArgumentSpec::kNone,
     KernelArgumentSpec::kNone, 64},
    {"out", true, 8, 64, false, true, KernelArgumentSpec::kNone,
     KernelArgumentSpec::kNone, 64},
    {"count", false, 4, 0, false, false},
    {"value", false, 4, 0, false, false},
};
inline absl::Status CheckAdd(absl::Span<const BoundArgument> arguments) {
  const uint64_t count = arguments[2].value;
  return arguments[0].memory.size() < count ||
                 arguments[1].memory.size() < count
             ? absl::OutOfRangeError("add: too short")
             : absl::OkStatus();
}
inline absl::Status RunAdd(absl::Span<const BoundArgument> arguments) {
  if (absl::Status status = CheckAdd(arguments); !status.ok()) return status;
  for (size_t i = 0; i < arguments[2].value; ++i) {
    arguments[1].memory[i] = static_cast<std::byte>(
        std::to_integer<uint64_t>(arguments[0].memory[i]) + arguments[3].value);
  }
  return absl::OkStatus();
}
inline absl::StatusOr<KernelWork> AddWork(
    absl::Span<const BoundArgument> arguments) {
  if (absl::Status status = CheckAdd(arguments); !status.ok()) return status;
  KernelWork work;
  work.arguments.resize(4);
  work.arguments[0] = {arguments[2].value, 0, 4096};
  work.arguments[1] = {0, arguments[2].value, 4096};
  return work;
}
inline const KernelSpec kAdd[] = {
    {KernelId::kPagedDecode, "add", kAddArguments, 0, RunAdd, AddWork}};

// Two banks, two channels, a unit of "add" per bank; 10 us + 1 us per 1,000
// bytes on the link, 20 us and 50 us for copies and launches.
inline Board RigBoard() {
  Board board;
  board.name = "rig";
  for (uint64_t i : {0, 1}) {
    BoardBank bank;
    bank.name = i == 0 ? "A" : "B";
    bank.base_address = 0x10000 + (i << 32);
    bank.bytes = uint64_t{1} << 26;
    bank.bytes_per_second = 1e12;
    board.banks.push_back(bank);
    BoardComputeUnit unit;
    unit.kernel = "add";
    unit.instance = i == 0 ? "add_1" : "add_2";
    const BankId id(static_cast<uint32_t>(i));
    unit.ports = {{"in", id}, {"out", id}};
    board.compute_units.push_back(unit);
  }
  board.dma = {2, absl::Microseconds(10), 1e9};
  board.copy = {absl::Microseconds(20), 1e12};
  board.launch = absl::Microseconds(50);
  board.clock_hz = 1e12;
  board.dsps = 1;
  board.dsp_budget = 1;
  return board;
}

inline std::unique_ptr<SimulatedDevice> MakeDevice(
    absl::string_view faults = "", SimulatedDeviceOptions options = {}) {
  options.board = RigBoard();
  options.kernels = kAdd;
  options.faults = ParseFaultPlan(faults).value();
  auto device = SimulatedDevice::Create(std::move(options));
  EXPECT_TRUE(device.ok()) << device.status();
  return std::move(device).value();
}

inline SlabId MakeSlab(SimulatedDevice& device, uint64_t bytes,
                       uint32_t bank = 0,
                       SlabKind kind = SlabKind::kHostVisible) {
  return device.CreateSlab(BankId(bank), bytes, kind).value();
}

// Values that depend on `seed` and on the place.
inline std::vector<std::byte> Content(size_t bytes, uint64_t seed) {
  std::vector<std::byte> content(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    content[i] = static_cast<std::byte>((seed * 40503u + i * 2654435761u) >> 9);
  }
  return content;
}

inline void Set(absl::Span<std::byte> target,
                const std::vector<std::byte>& content) {
  ASSERT_EQ(target.size(), content.size());
  std::memcpy(target.data(), content.data(), content.size());
}

inline std::vector<std::byte> Get(absl::Span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}
inline std::vector<std::byte> Image(SimulatedDevice& device, SlabId slab) {
  return Get(device.HostImage(slab).value());
}
inline std::vector<std::byte> Memory(SimulatedDevice& device, SlabRange range) {
  return Get(device.DeviceMemory(range).value());
}

// The next completion; waits as long as it takes.
inline Completion Next(SimulatedDevice& device) {
  Completion completion;
  const auto count =
      device.Poll(absl::InfiniteFuture(), absl::MakeSpan(&completion, 1));
  EXPECT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count.value_or(0), 1u);
  return completion;
}

inline absl::Time At(double microseconds) {
  return absl::UnixEpoch() + absl::Microseconds(microseconds);
}

}  // namespace paged_kv::fpga_dma::simulated_device_rig

#endif  // PAGED_KV_TESTS_FPGA_DMA_SIMULATED_DEVICE_RIG_H_

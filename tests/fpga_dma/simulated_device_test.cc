// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/simulated_device.h"

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr BankId kBank0{0};

std::unique_ptr<SimulatedDevice> Device(SimulatedDeviceOptions options = {},
                                        const char* board = "u250") {
  options.board = BuiltinBoard(board).value();
  auto device = SimulatedDevice::Create(std::move(options));
  EXPECT_TRUE(device.ok()) << device.status();
  return std::move(device).value();
}

// Fills a range with values that depend on `seed` and on the place.
void Fill(absl::Span<std::byte> bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((seed * 2654435761u + i * 40503u) >> 7);
  }
}

std::vector<std::byte> Filled(size_t bytes, uint32_t seed) {
  std::vector<std::byte> filled(bytes);
  Fill(absl::MakeSpan(filled), seed);
  return filled;
}

std::vector<std::byte> Copy(absl::Span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

// Waits for one operation and returns how it ended.
Completion Next(SimulatedDevice& device) {
  Completion completion;
  const auto count = device.Poll(absl::InfiniteFuture(), {&completion, 1});
  EXPECT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count.value_or(0), 1u);
  return completion;
}

SlabId Slab(SimulatedDevice& device, uint64_t bytes, BankId bank = kBank0,
            SlabKind kind = SlabKind::kHostVisible) {
  return device.CreateSlab(bank, bytes, kind).value();
}

TEST(SimulatedDeviceTest, DataGoesUpAcrossAndDown) {
  auto device = Device();
  const SlabId a = Slab(*device, 1 << 20);
  const SlabId b = Slab(*device, 1 << 20, BankId(3));
  Fill(device->HostImage(a).value(), 1);
  Fill(device->HostImage(b).value(), 2);
  ASSERT_TRUE(device->StartUpload({a, 0, 1 << 20}, 0).ok());
  EXPECT_TRUE(Next(*device).status.ok());
  ASSERT_TRUE(device->StartCopy({b, 4096, 8192}, {a, 64, 8192}).ok());
  EXPECT_TRUE(Next(*device).status.ok());
  ASSERT_TRUE(device->StartDownload({b, 4096, 8192}, 1).ok());
  EXPECT_TRUE(Next(*device).status.ok());
  auto expected = Filled(1 << 20, 2);
  const auto source = Filled(1 << 20, 1);
  std::memcpy(expected.data() + 4096, source.data() + 64, 8192);
  EXPECT_EQ(Copy(device->HostImage(b).value()), expected);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Slabs, transfers and copies on an emulated card, through the unmodified XRT.

#include <algorithm>
#include <cstring>

#include "tests/fpga_dma/xrt/emulated_card_fixture.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

using XrtTransfersTest = EmulatedCardTest;

std::vector<std::byte> Copy(absl::Span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST_F(XrtTransfersTest, DescribesTheBoard) {
  for (const std::string& name : BuiltinBoardNames()) {
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(Open(name));
    const DeviceInfo& info = device_->info();
    EXPECT_EQ(info.name, "pagedkv_emulated_" + name);
    EXPECT_TRUE(info.modelled);
    EXPECT_EQ(info.channels, board_.dma.channels);
    ASSERT_EQ(info.banks.size(), board_.banks.size());
    for (size_t i = 0; i < info.banks.size(); ++i) {
      EXPECT_EQ(info.banks[i].name, board_.banks[i].name);
      EXPECT_EQ(info.banks[i].bytes, board_.banks[i].bytes);
    }
    ASSERT_EQ(info.compute_units.size(), board_.compute_units.size());
    for (size_t i = 0; i < info.compute_units.size(); ++i) {
      const BoardComputeUnit& wanted = board_.compute_units[i];
      const ComputeUnitInfo& unit = info.compute_units[i];
      EXPECT_EQ(unit.kernel, wanted.kernel);
      EXPECT_EQ(unit.instance, wanted.instance);
      const KernelSpec* spec = FindKernel(wanted.kernel);
      ASSERT_NE(spec, nullptr);
      ASSERT_EQ(unit.argument_banks.size(), spec->arguments.size());
      for (size_t a = 0; a < spec->arguments.size(); ++a) {
        const auto port = std::find_if(
            wanted.ports.begin(), wanted.ports.end(), [&](const auto& each) {
              return each.first == spec->arguments[a].name;
            });
        EXPECT_EQ(unit.argument_banks[a],
                  port == wanted.ports.end() ? kNoBank : port->second);
      }
    }
  }
}

TEST_F(XrtTransfersTest, EveryBankKeepsWhatItIsGiven) {
  const uint64_t seed = TestSeed(1);
  constexpr uint64_t kBytes = 3 * 4096 + 64;
  ASSERT_NO_FATAL_FAILURE(Open("u280"));
  const size_t banks = device_->info().banks.size();
  std::vector<SlabId> slabs;
  std::vector<std::vector<std::byte>> wanted;
  for (uint32_t bank = 0; bank < banks; ++bank) {
    slabs.push_back(MakeSlab(BankId(bank), kBytes, SlabKind::kHostVisible));
    FillRandom(seed + bank, Image(slabs[bank]));
    wanted.push_back(Copy(Image(slabs[bank])));
    ASSERT_TRUE(device_->StartUpload({slabs[bank], 0, kBytes}, bank % 2).ok());
  }
  for (const Completion& each : FinishAll(banks)) EXPECT_TRUE(each.status.ok());
  for (uint32_t bank = 0; bank < banks; ++bank) {
    const absl::Span<std::byte> image = Image(slabs[bank]);
    std::fill(image.begin(), image.end(), std::byte{0});
    EXPECT_TRUE(Finish(device_->StartDownload({slabs[bank], 0, kBytes}, 1))
                    .status.ok());
    EXPECT_EQ(Copy(image), wanted[bank]) << "bank " << bank;
    EXPECT_TRUE(device_->DestroySlab(slabs[bank]).ok());
  }
}

TEST_F(XrtTransfersTest, MovesARangeAndNothingBesideIt) {
  constexpr uint64_t kBytes = 8192;
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  const SlabId slab = MakeSlab(BankId(2), kBytes, SlabKind::kHostVisible);
  const absl::Span<std::byte> image = Image(slab);
  std::fill(image.begin(), image.end(), std::byte{1});
  ASSERT_TRUE(Finish(device_->StartUpload({slab, 0, kBytes}, 0)).status.ok());
  std::fill(image.begin(), image.end(), std::byte{2});
  ASSERT_TRUE(Finish(device_->StartUpload({slab, 192, 128}, 1)).status.ok());
  std::fill(image.begin(), image.end(), std::byte{3});
  ASSERT_TRUE(Finish(device_->StartDownload({slab, 64, 320}, 0)).status.ok());
  for (uint64_t i = 0; i < kBytes; ++i) {
    const bool downloaded = i >= 64 && i < 64 + 320;
    const bool uploaded = i >= 192 && i < 192 + 128;
    const int wanted = !downloaded ? 3 : uploaded ? 2 : 1;
    ASSERT_EQ(std::to_integer<int>(image[i]), wanted) << i;
  }
}

TEST_F(XrtTransfersTest, CopiesOnTheCardAlsoBetweenBanks) {
  constexpr uint64_t kBytes = 4096;
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  const SlabId source = MakeSlab(BankId(0), kBytes, SlabKind::kHostVisible);
  const SlabId middle = MakeSlab(BankId(3), kBytes, SlabKind::kDeviceOnly);
  const SlabId target = MakeSlab(BankId(1), kBytes, SlabKind::kHostVisible);
  FillRandom(TestSeed(2), Image(source));
  const auto wanted = Copy(Image(source));
  ASSERT_TRUE(Finish(device_->StartUpload({source, 0, kBytes}, 0)).status.ok());
  ASSERT_TRUE(
      Finish(device_->StartCopy({middle, 1024, 3072}, {source, 0, 3072}))
          .status.ok());
  ASSERT_TRUE(
      Finish(device_->StartCopy({target, 0, 2048}, {middle, 2048, 2048}))
          .status.ok());
  ASSERT_TRUE(Finish(device_->StartDownload({target, 0, 2048}, 0)).status.ok());
  EXPECT_TRUE(std::equal(wanted.begin() + 1024, wanted.begin() + 3072,
                         Image(target).begin()));
}

TEST_F(XrtTransfersTest, AFullBankIsAStatusAndLeavesRoomForLess) {
  ASSERT_NO_FATAL_FAILURE(Open("u280"));
  const uint64_t bank_bytes = device_->info().banks[0].bytes;
  const SlabId most =
      MakeSlab(BankId(0), bank_bytes - 8192, SlabKind::kDeviceOnly);
  const auto more =
      device_->CreateSlab(BankId(0), 12288, SlabKind::kDeviceOnly);
  EXPECT_EQ(more.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(device_->CreateSlab(BankId(0), 8192, SlabKind::kDeviceOnly).ok());
  EXPECT_TRUE(
      device_->CreateSlab(BankId(1), 12288, SlabKind::kDeviceOnly).ok());
  EXPECT_EQ(
      device_->CreateSlab(BankId(0), bank_bytes + 64, SlabKind::kDeviceOnly)
          .status()
          .code(),
      absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(device_->DestroySlab(most).ok());
  EXPECT_TRUE(
      device_->CreateSlab(BankId(0), 12288, SlabKind::kDeviceOnly).ok());
}

TEST_F(XrtTransfersTest, RefusesWhatCannotBe) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  const SlabId slab = MakeSlab(BankId(0), 4096, SlabKind::kHostVisible);
  const SlabId device_only = MakeSlab(BankId(0), 4096, SlabKind::kDeviceOnly);
  const auto code = [](const auto& result) { return result.status().code(); };
  using absl::StatusCode;
  EXPECT_EQ(code(device_->CreateSlab(BankId(4), 64, SlabKind::kDeviceOnly)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->CreateSlab(BankId(0), 0, SlabKind::kDeviceOnly)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->CreateSlab(BankId(0), 100, SlabKind::kDeviceOnly)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartUpload({SlabId(99), 0, 64}, 0)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartUpload({slab, 0, 0}, 0)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartUpload({slab, 32, 64}, 0)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartUpload({slab, 0, 100}, 0)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartUpload({slab, 0, 64}, 2)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartDownload({slab, 4096, 64}, 0)),
            StatusCode::kOutOfRange);
  EXPECT_EQ(code(device_->StartDownload({slab, ~uint64_t{63}, 128}, 0)),
            StatusCode::kOutOfRange);
  EXPECT_EQ(code(device_->StartUpload({device_only, 0, 64}, 0)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->HostImage(device_only)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartCopy({slab, 0, 128}, {slab, 64, 128})),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartCopy({slab, 0, 128}, {device_only, 0, 64})),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartKernel(999, {})), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(device_->StartKernel(0, {})), StatusCode::kInvalidArgument);
  EXPECT_EQ(device_->DestroySlab(SlabId(99)).code(),
            StatusCode::kInvalidArgument);
  // Nothing of it was started.
  Completion none;
  EXPECT_EQ(code(device_->Poll(absl::InfiniteFuture(), {&none, 1})),
            StatusCode::kFailedPrecondition);
}

TEST_F(XrtTransfersTest, ASlabStaysUntilItsOperationsAreReported) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  const SlabId slab = MakeSlab(BankId(0), 4096, SlabKind::kHostVisible);
  const auto upload = device_->StartUpload({slab, 0, 4096}, 0);
  EXPECT_EQ(device_->DestroySlab(slab).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Finish(upload).status.ok());
  EXPECT_TRUE(device_->DestroySlab(slab).ok());
}

}  // namespace
}  // namespace paged_kv::fpga_dma

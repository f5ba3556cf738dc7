// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/kernel_runner.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/simulated_device_rig.h"

namespace paged_kv::fpga_dma {
namespace {

using namespace simulated_device_rig;  // NOLINT(build/namespaces)
using absl::StatusCode;

// A runner of "add" on the rig's board.
struct AddRig {
  AddRig()
      : board(RigBoard()),
        memory(BankMemory::Create(board.banks).value()),
        runner(KernelRunner::Create(board, kAdd).value()) {
    a = memory->Allocate(BankId(0), 4096).value();
    b = memory->Allocate(BankId(1), 4096).value();
  }
  StatusCode BindCode(uint32_t unit,
                      const std::vector<LaunchArgument>& arguments) const {
    return runner.Bind(unit, arguments, *memory).status().code();
  }
  Board board;
  std::unique_ptr<BankMemory> memory;
  KernelRunner runner;
  uint64_t a = 0;
  uint64_t b = 0;
};

TEST(KernelRunnerTest, KnowsWhichBankEachArgumentReaches) {
  const AddRig rig;
  ASSERT_EQ(rig.runner.units(), 2u);
  EXPECT_EQ(rig.runner.spec(1).name, "add");
  EXPECT_EQ(rig.runner.argument_banks(1),
            (std::vector<BankId>{BankId(1), BankId(1), kNoBank, kNoBank}));
}

TEST(KernelRunnerTest, RejectsBoardsThatDoNotFitTheKernels) {
  const auto code = [](const Board& board) {
    return KernelRunner::Create(board, kAdd).status().code();
  };
  Board board = RigBoard();
  board.compute_units[1].kernel = "subtract";
  EXPECT_EQ(code(board), StatusCode::kNotFound);
  board = RigBoard();
  board.compute_units[1].ports[0].first = "input";
  EXPECT_EQ(code(board), StatusCode::kInvalidArgument);
  board = RigBoard();
  board.compute_units[1].ports.emplace_back("spare", BankId(0));
  EXPECT_EQ(code(board), StatusCode::kInvalidArgument);
  board = RigBoard();
  board.compute_units[1].ports.emplace_back("count", BankId(0));
  EXPECT_EQ(code(board), StatusCode::kInvalidArgument);
}

TEST(KernelRunnerTest, BindsAddressesToMemoryInTheirBank) {
  const AddRig rig;
  const auto launch = rig.runner.Bind(
      0, {{rig.a, 128}, {rig.a + 64, 0}, {7, 0}, {8, 0}}, *rig.memory);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->arguments[0].memory.size(), 128u);
  EXPECT_EQ(launch->arguments[0].device_address, rig.a);
  EXPECT_EQ(launch->arguments[0].memory.data() + 64,
            launch->arguments[1].memory.data());
  EXPECT_EQ(launch->arguments[1].memory.size(),
            rig.memory->BytesToEnd(rig.a + 64));
  EXPECT_EQ(launch->arguments[2].value, 7u);
  EXPECT_TRUE(launch->arguments[2].memory.empty());

  using Arguments = std::vector<LaunchArgument>;
  const LaunchArgument a{rig.a, 0};
  const LaunchArgument one{1, 0};
  EXPECT_EQ(rig.BindCode(2, {a, a, one, one}), StatusCode::kInvalidArgument);
  EXPECT_EQ(rig.BindCode(0, {a, a, one}), StatusCode::kInvalidArgument);
  EXPECT_EQ(rig.BindCode(0, Arguments{}), StatusCode::kInvalidArgument);
  EXPECT_EQ(rig.BindCode(1, {a, a, one, one}), StatusCode::kInvalidArgument);
  EXPECT_EQ(rig.BindCode(0, {{rig.a + 8, 0}, a, one, one}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(rig.BindCode(0, {{0, 0}, a, one, one}), StatusCode::kOutOfRange);
  EXPECT_EQ(rig.BindCode(0, {{rig.a, uint64_t{1} << 40}, a, one, one}),
            StatusCode::kOutOfRange);
}

TEST(KernelRunnerTest, RunsAndSaysWhatItTakes) {
  const AddRig rig;
  const auto content = Content(1000, 4);
  Set(rig.memory->Translate(rig.b, 1000).value(), content);
  const auto launch = rig.runner.Bind(
      1, {{rig.b, 0}, {rig.b + 2048, 0}, {1000, 0}, {9, 0}}, *rig.memory);
  ASSERT_TRUE(launch.ok()) << launch.status();
  const auto load = rig.runner.Load(*launch);
  ASSERT_TRUE(load.ok()) << load.status();
  ASSERT_EQ(load->ports.size(), 2u);
  EXPECT_EQ(load->ports[0].bank, BankId(1));
  EXPECT_EQ(load->ports[0].read_bytes, 1000u);
  EXPECT_EQ(load->ports[1].write_bytes, 1000u);
  EXPECT_EQ(load->ports[1].burst_bytes, 4096u);
  ASSERT_TRUE(rig.runner.Run(*launch).ok());
  const auto out = rig.memory->Translate(rig.b + 2048, 1000).value();
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(out[i],
              static_cast<std::byte>(std::to_integer<int>(content[i]) + 9));
  }
  const auto wild = rig.runner.Bind(
      1, {{rig.b, 64}, {rig.b, 64}, {65, 0}, {9, 0}}, *rig.memory);
  ASSERT_TRUE(wild.ok());
  EXPECT_EQ(rig.runner.Load(*wild).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(rig.runner.Run(*wild).code(), StatusCode::kOutOfRange);
}

// ---- The project's kernels on the project's boards ----

// Packed runs that kv_scatter spreads over the pages of a stripe.
struct ScatterCase {
  uint32_t pages = 0;
  uint32_t page_beats = 0;
  std::vector<ScatterItem> items;
  uint32_t slab_beats = 0;
};

ScatterCase RandomScatter(uint64_t seed) {
  std::mt19937_64 random(seed);
  ScatterCase scatter;
  scatter.pages = static_cast<uint32_t>(5 + random() % 30);
  scatter.page_beats = static_cast<uint32_t>(64 * (1 + random() % 4));
  std::vector<uint32_t> order(scatter.pages);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  for (uint32_t page : order) {
    ScatterItem item = {};
    item.source_beat = scatter.slab_beats;
    item.page = page;
    item.page_beat = static_cast<uint32_t>(random() % scatter.page_beats);
    item.num_beats = static_cast<uint32_t>(
        1 + random() % (scatter.page_beats - item.page_beat));
    scatter.slab_beats += item.num_beats;
    scatter.items.push_back(item);
  }
  return scatter;
}

uint32_t UnitInBank(const DeviceInfo& info, absl::string_view kernel,
                    size_t argument, BankId bank) {
  for (uint32_t i = 0; i < info.compute_units.size(); ++i) {
    if (info.compute_units[i].kernel == kernel &&
        info.compute_units[i].argument_banks[argument] == bank) {
      return i;
    }
  }
  ADD_FAILURE() << "no unit of " << kernel << " in bank " << bank;
  return 0;
}

// Uploads the packed runs and their list, scatters them, reads the pool back.
void ScatterOnBoard(const std::string& board, uint32_t stripe, uint64_t seed) {
  SimulatedDeviceOptions options;
  options.board = BuiltinBoard(board).value();
  options.kernels = Kernels();
  auto device = SimulatedDevice::Create(std::move(options)).value();
  const ScatterCase scatter = RandomScatter(seed);
  using A = KvScatterArgument;
  const uint32_t unit = UnitInBank(device->info(), "kv_scatter",
                                   static_cast<size_t>(A::kKv), BankId(stripe));
  const BankId common = device->info()
                            .compute_units[unit]
                            .argument_banks[static_cast<size_t>(A::kWork)];
  const uint64_t pool_bytes =
      uint64_t{scatter.pages} * scatter.page_beats * kBeatBytes;
  const SlabId pool = MakeSlab(*device, pool_bytes, stripe);
  const SlabId slab =
      MakeSlab(*device, uint64_t{scatter.slab_beats} * kBeatBytes, stripe);
  const SlabId work = MakeSlab(*device, (2 + scatter.items.size()) * kBeatBytes,
                               common.value());
  // Status, header, items.
  const auto list = device->HostImage(work).value();
  WorkListHeader header = {};
  header.magic = kWorkListMagic;
  header.kernel = KernelId::kKvScatter;
  header.num_items = static_cast<uint32_t>(scatter.items.size());
  std::memcpy(list.data() + kBeatBytes, &header, kBeatBytes);
  std::memcpy(list.data() + 2 * kBeatBytes, scatter.items.data(),
              scatter.items.size() * kBeatBytes);
  const auto packed = Content(scatter.slab_beats * size_t{kBeatBytes}, seed);
  Set(device->HostImage(slab).value(), packed);
  auto expected = Content(pool_bytes, seed + 1);
  Set(device->DeviceMemory({pool, 0, pool_bytes}).value(), expected);
  ASSERT_TRUE(device->StartUpload({slab, 0, packed.size()}, 0).ok());
  ASSERT_TRUE(device->StartUpload({work, 0, list.size()}, 1).ok());
  EXPECT_TRUE(Next(*device).status.ok());
  EXPECT_TRUE(Next(*device).status.ok());
  const KernelArgument arguments[] = {AddressArgument(slab),
                                      AddressArgument(pool),
                                      AddressArgument(work, kBeatBytes),
                                      AddressArgument(work),
                                      ScalarArgument(header.num_items),
                                      ScalarArgument(scatter.slab_beats),
                                      ScalarArgument(scatter.pages),
                                      ScalarArgument(scatter.page_beats)};
  const auto started = device->StartKernel(unit, arguments);
  ASSERT_TRUE(started.ok()) << started.status();
  const Completion completion = Next(*device);
  EXPECT_TRUE(completion.status.ok()) << completion.status;
  for (const ScatterItem& item : scatter.items) {
    const size_t target =
        (size_t{item.page} * scatter.page_beats + item.page_beat) * kBeatBytes;
    std::memcpy(expected.data() + target,
                packed.data() + size_t{item.source_beat} * kBeatBytes,
                size_t{item.num_beats} * kBeatBytes);
  }
  EXPECT_EQ(Memory(*device, {pool, 0, pool_bytes}), expected);
  KernelStatus status;
  std::memcpy(&status, Memory(*device, {work, 0, kBeatBytes}).data(),
              sizeof(status));
  EXPECT_TRUE(ToStatus("kv_scatter", status).ok());
  EXPECT_EQ(status.items_done, scatter.items.size());
  // A launch, and at least the time of its bytes in the stripe's bank, where
  // they are read and written.
  const BoardBank bank = BuiltinBoard(board)->banks[stripe];
  const double least = 2.0 * static_cast<double>(packed.size()) /
                       (bank.bytes_per_second * bank.burst.peak);
  const absl::Duration took = completion.finished - completion.started;
  EXPECT_GE(took, absl::Microseconds(50) + absl::Seconds(least));
  EXPECT_LE(took, absl::Microseconds(52) + absl::Seconds(4 * least));
}

TEST(KernelRunnerTest, KernelsRunOnEveryStripeOfEveryBoard) {
  for (const std::string& name : BuiltinBoardNames()) {
    for (uint32_t stripe : {0u, 3u}) {
      SCOPED_TRACE(absl::StrCat(name, " stripe ", stripe));
      ScatterOnBoard(name, stripe, 10 + stripe);
    }
  }
}

TEST(KernelRunnerTest, AKernelsOwnErrorIsInItsStatusWord) {
  SimulatedDeviceOptions options;
  options.board = BuiltinBoard("u250").value();
  options.kernels = Kernels();
  auto device = SimulatedDevice::Create(std::move(options)).value();
  const SlabId slab = MakeSlab(*device, 8192);
  const auto memory = device->DeviceMemory({slab, 0, 8192}).value();
  std::fill(memory.begin(), memory.end(), std::byte{0});
  WorkListHeader header = {};
  header.magic = kWorkListMagic;
  header.kernel = KernelId::kKvScatter;
  header.num_items = 1;
  ScatterItem item = {};
  item.page = 900;
  item.num_beats = 1;
  std::memcpy(memory.data() + 64, &header, kBeatBytes);
  std::memcpy(memory.data() + 128, &item, kBeatBytes);
  const uint32_t unit = UnitInBank(device->info(), "kv_scatter", 1, BankId(0));
  const KernelArgument arguments[] = {
      AddressArgument(slab),     AddressArgument(slab, 4096),
      AddressArgument(slab, 64), AddressArgument(slab),
      ScalarArgument(1),         ScalarArgument(1),
      ScalarArgument(1),         ScalarArgument(64)};
  ASSERT_TRUE(device->StartKernel(unit, arguments).ok());
  EXPECT_TRUE(Next(*device).status.ok());
  KernelStatus status;
  std::memcpy(&status, memory.data(), sizeof(status));
  EXPECT_EQ(status.code, KernelError::kPageIndex);
  EXPECT_EQ(status.detail, 900u);
  // A pool that is larger than its slab would be a wild access.
  const KernelArgument wild[] = {
      AddressArgument(slab),     AddressArgument(slab, 4096),
      AddressArgument(slab, 64), AddressArgument(slab),
      ScalarArgument(1),         ScalarArgument(1),
      ScalarArgument(2),         ScalarArgument(64)};
  ASSERT_TRUE(device->StartKernel(unit, wild).ok());
  EXPECT_EQ(Next(*device).status.code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

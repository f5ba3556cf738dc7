// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernel runs on an emulated card through the unmodified XRT: results, errors,
// times, hangs, and units that work side by side.

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/simulated_device.h"
#include "tests/fpga_dma/xrt/emulated_card_fixture.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

using absl::StatusCode;

constexpr uint32_t kPages = 9;
constexpr uint32_t kPageBeats = 128;
constexpr uint32_t kItems = 7;
constexpr uint64_t kPoolBytes = uint64_t{kPages} * kPageBeats * kBeatBytes;
constexpr uint64_t kSourceBeats = uint64_t{kItems} * kPageBeats;

// One unit of kv_scatter with its memory: a packed slab whose runs go to pages
// of a pool.
class Scatter {
 public:
  Scatter(Device* device, uint32_t which, uint64_t seed)
      : device_(device), random_(seed) {
    const auto& units = device->info().compute_units;
    for (uint32_t i = 0; i < units.size(); ++i) {
      if (units[i].kernel == "kv_scatter" && which-- == 0) unit_ = i;
    }
    const auto& banks = units[unit_].argument_banks;
    source_ = Make(banks[0], kSourceBeats * kBeatBytes);
    pool_ = Make(banks[1], kPoolBytes);
    work_ = Make(banks[2], (1 + kItems) * kBeatBytes);
    status_ = Make(banks[3], kBeatBytes);
    Fill();
  }

  uint32_t unit() const { return unit_; }
  SlabId source() const { return source_; }
  WorkListHeader* header() {
    return reinterpret_cast<WorkListHeader*>(Image(work_).data());
  }
  ScatterItem* items() { return reinterpret_cast<ScatterItem*>(header() + 1); }

  std::vector<KernelArgument> Arguments() const {
    return {AddressArgument(source_), AddressArgument(pool_),
            AddressArgument(work_),   AddressArgument(status_),
            ScalarArgument(kItems),   ScalarArgument(kSourceBeats),
            ScalarArgument(kPages),   ScalarArgument(kPageBeats)};
  }
  // What the pool holds after a run, computed here.
  std::vector<std::byte> Expected() {
    const auto image = Image(pool_);
    std::vector<std::byte> pool(image.begin(), image.end());
    for (uint32_t i = 0; i < kItems; ++i) {
      const ScatterItem& item = items()[i];
      const uint64_t to =
          uint64_t{item.page} * kPageBeats + uint64_t{item.page_beat};
      std::memcpy(pool.data() + to * kBeatBytes,
                  Image(source_).data() + item.source_beat * kBeatBytes,
                  item.num_beats * kBeatBytes);
    }
    return pool;
  }

  void Upload() {
    for (const SlabId slab : {source_, pool_, work_, status_}) {
      Wait(device_->StartUpload({slab, 0, Image(slab).size()}, 0));
    }
  }
  std::vector<std::byte> DownloadPool() {
    Wait(device_->StartDownload({pool_, 0, kPoolBytes}, 0));
    return {Image(pool_).begin(), Image(pool_).end()};
  }
  KernelStatus DownloadStatus() {
    Wait(device_->StartDownload({status_, 0, kBeatBytes}, 0));
    KernelStatus status;
    std::memcpy(&status, Image(status_).data(), sizeof(status));
    return status;
  }
  absl::StatusOr<OpId> Start() {
    return device_->StartKernel(unit_, Arguments());
  }
  Completion Wait(const absl::StatusOr<OpId>& op) {
    EXPECT_TRUE(op.ok()) << op.status();
    Completion completion;
    const auto count = device_->Poll(absl::InfiniteFuture(), {&completion, 1});
    EXPECT_TRUE(count.ok()) << count.status();
    return completion;
  }

 private:
  SlabId Make(BankId bank, uint64_t bytes) {
    const auto slab = device_->CreateSlab(bank, bytes, SlabKind::kHostVisible);
    EXPECT_TRUE(slab.ok()) << slab.status();
    return *slab;
  }
  absl::Span<std::byte> Image(SlabId slab) { return *device_->HostImage(slab); }

  void Fill() {
    for (const SlabId slab : {source_, pool_}) {
      for (std::byte& each : Image(slab)) {
        each = static_cast<std::byte>(random_());
      }
    }
    std::memset(Image(work_).data(), 0, Image(work_).size());
    std::memset(Image(status_).data(), 0, Image(status_).size());
    *header() = {kWorkListMagic, KernelId::kKvScatter, kItems, 42, {}};
    for (uint32_t i = 0; i < kItems; ++i) {
      const auto beats = static_cast<uint32_t>(1 + random_() % kPageBeats);
      const auto beat =
          static_cast<uint32_t>(random_() % (kPageBeats - beats + 1));
      // Pages in another order than the runs.
      items()[i] = {i * kPageBeats, (i * 4 + 2) % kPages, beat, beats, {}};
    }
  }

  Device* const device_;
  std::mt19937_64 random_;
  uint32_t unit_ = 0;
  SlabId source_;
  SlabId pool_;
  SlabId work_;
  SlabId status_;
};

class XrtKernelsTest : public EmulatedCardTest {};

TEST_F(XrtKernelsTest, ComputesAndTakesTheTimesOfTheSimulatedDevice) {
  const uint64_t seed = TestSeed(21);
  for (const std::string board : {"u250", "u280"}) {
    SCOPED_TRACE(board);
    ASSERT_NO_FATAL_FAILURE(Open(board));
    SimulatedDeviceOptions options;
    options.board = board_;
    options.kernels = Kernels();
    auto simulated = SimulatedDevice::Create(options);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    std::vector<Completion> runs;
    for (Device* device :
         {device_.get(), static_cast<Device*>(simulated->get())}) {
      Scatter scatter(device, 1, seed);
      const auto expected = scatter.Expected();
      scatter.Upload();
      for (int run = 0; run < 2; ++run) {
        runs.push_back(scatter.Wait(scatter.Start()));
        EXPECT_TRUE(runs.back().status.ok()) << runs.back().status;
      }
      EXPECT_EQ(scatter.DownloadPool(), expected);
      const KernelStatus status = scatter.DownloadStatus();
      EXPECT_EQ(status.code, KernelError::kOk);
      EXPECT_EQ(status.items_done, kItems);
      EXPECT_EQ(status.tag, 42u);
      EXPECT_EQ(status.launches, 2u);
    }
    for (int run = 0; run < 2; ++run) {
      EXPECT_EQ(runs[run].started, runs[run + 2].started);
      EXPECT_EQ(runs[run].finished, runs[run + 2].finished);
      EXPECT_GT(runs[run].finished - runs[run].started, board_.launch);
    }
  }
}

TEST_F(XrtKernelsTest, UnitsWorkSideBySideAndOneUnitInOrder) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  Scatter first(device_.get(), 0, 1);
  Scatter second(device_.get(), 1, 2);
  const auto expected_first = first.Expected();
  const auto expected_second = second.Expected();
  first.Upload();
  second.Upload();
  const absl::Time start = device_->Now();
  const auto a = first.Start();
  const auto b = first.Start();
  const auto c = second.Start();
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  auto done = FinishAll(3);
  ASSERT_EQ(done.size(), 3u);
  std::sort(done.begin(), done.end(),
            [](const auto& x, const auto& y) { return x.op < y.op; });
  for (const Completion& each : done) EXPECT_TRUE(each.status.ok());
  EXPECT_EQ(done[0].started, start);
  EXPECT_EQ(done[1].started, done[0].finished);
  EXPECT_EQ(done[2].started, start);
  EXPECT_EQ(first.DownloadPool(), expected_first);
  EXPECT_EQ(second.DownloadPool(), expected_second);
}

TEST_F(XrtKernelsTest, AnErrorOfTheKernelIsInItsStatusWord) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  Scatter scatter(device_.get(), 0, 3);
  scatter.items()[4].page = kPages;
  scatter.Upload();
  EXPECT_TRUE(scatter.Wait(scatter.Start()).status.ok());
  const KernelStatus status = scatter.DownloadStatus();
  EXPECT_EQ(status.code, KernelError::kPageIndex);
  EXPECT_EQ(status.item, 4u);
  EXPECT_EQ(status.detail, kPages);
  EXPECT_EQ(ToStatus("kv_scatter", status).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(XrtKernelsTest, ALaunchBeyondItsMemoryIsAnErrorOfTheRun) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  Scatter scatter(device_.get(), 0, 4);
  scatter.Upload();
  auto arguments = scatter.Arguments();
  arguments[6] = ScalarArgument(kPages + 1);  // one page more than there is
  const Completion run =
      scatter.Wait(device_->StartKernel(scatter.unit(), arguments));
  EXPECT_EQ(run.status.code(), StatusCode::kInternal) << run.status;
  EXPECT_TRUE(scatter.Wait(scatter.Start()).status.ok());
}

TEST_F(XrtKernelsTest, AnAddressMayLieWithinASlab) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  Scatter scatter(device_.get(), 0, 5);
  scatter.header()->num_items = 1;
  scatter.items()[0] = {0, 2, 0, 3, {}};
  scatter.Upload();
  // The packed slab as of its sixth beat.
  auto arguments = scatter.Arguments();
  arguments[0] = AddressArgument(scatter.source(), 6 * kBeatBytes);
  arguments[5] = ScalarArgument(kSourceBeats - 6);
  ASSERT_TRUE(scatter.Wait(device_->StartKernel(scatter.unit(), arguments))
                  .status.ok());
  const auto pool = scatter.DownloadPool();
  const auto source = Image(scatter.source());
  EXPECT_TRUE(std::equal(source.begin() + 6 * kBeatBytes,
                         source.begin() + 9 * kBeatBytes,
                         pool.begin() + 2 * kPageBeats * kBeatBytes));
}

TEST_F(XrtKernelsTest, RefusesArgumentsThatDoNotFit) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  Scatter scatter(device_.get(), 0, 6);
  const auto code = [&](size_t index, const KernelArgument& argument) {
    auto arguments = scatter.Arguments();
    arguments[index] = argument;
    return device_->StartKernel(scatter.unit(), arguments).status().code();
  };
  const auto& banks =
      device_->info().compute_units[scatter.unit()].argument_banks;
  const BankId other((banks[1].value() + 1) % 4);
  const SlabId elsewhere = MakeSlab(other, kPoolBytes, SlabKind::kDeviceOnly);
  EXPECT_EQ(code(1, AddressArgument(elsewhere)), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(1, AddressArgument(SlabId(99))), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(1, AddressArgument(scatter.source(), uint64_t{1} << 40)),
            StatusCode::kOutOfRange);
  EXPECT_EQ(code(1, ScalarArgument(0)), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(4, AddressArgument(scatter.source())),
            StatusCode::kInvalidArgument);
}

TEST_F(XrtKernelsTest, FaultsOfRunsAreStatuses) {
  ASSERT_NO_FATAL_FAILURE(
      Open("u250", {{"PAGEDKV_CARD_FAULTS", "kernel:fail@1 kernel:hang@3"}}));
  Scatter scatter(device_.get(), 0, 7);
  const auto expected = scatter.Expected();
  scatter.Upload();
  EXPECT_EQ(scatter.Wait(scatter.Start()).status.code(), StatusCode::kInternal);
  EXPECT_TRUE(scatter.Wait(scatter.Start()).status.ok());
  const auto hung = scatter.Start();
  ASSERT_TRUE(hung.ok());
  const absl::Time deadline = device_->Now() + absl::Seconds(1);
  EXPECT_TRUE(FinishAll(1, deadline).empty());
  EXPECT_EQ(device_->Now(), deadline);
  EXPECT_EQ(device_->State(*hung), OpState::kPending);
  ASSERT_TRUE(device_->Reset().ok());
  const auto given_up = FinishAll(1);
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_EQ(given_up[0].op, *hung);
  EXPECT_EQ(given_up[0].status.code(), StatusCode::kDataLoss);
  scatter.Upload();
  EXPECT_TRUE(scatter.Wait(scatter.Start()).status.ok());
  EXPECT_EQ(scatter.DownloadPool(), expected);
}

// With real time XRT's own waiting is what reports the end.
TEST_F(XrtKernelsTest, ACardThatTakesRealTimeDoes) {
  ASSERT_NO_FATAL_FAILURE(
      Open("u250", {{"PAGEDKV_CARD_CLOCK", "real"},
                    {"PAGEDKV_CARD_FAULTS", "kernel:hang@2"}}));
  EXPECT_FALSE(device_->info().modelled);
  Scatter scatter(device_.get(), 0, 8);
  const auto expected = scatter.Expected();
  scatter.Upload();
  const Completion run = scatter.Wait(scatter.Start());
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_GE(run.finished - run.started, board_.launch);
  EXPECT_EQ(scatter.DownloadPool(), expected);
  const auto hung = scatter.Start();
  ASSERT_TRUE(hung.ok());
  EXPECT_TRUE(FinishAll(1, device_->Now() + absl::Milliseconds(150)).empty());
  EXPECT_EQ(device_->State(*hung), OpState::kPending);
  ASSERT_TRUE(device_->Reset().ok());
  const auto given_up = FinishAll(1);
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_EQ(given_up[0].status.code(), StatusCode::kDataLoss);
  scatter.Upload();
  EXPECT_TRUE(scatter.Wait(scatter.Start()).status.ok());
}

}  // namespace
}  // namespace paged_kv::fpga_dma

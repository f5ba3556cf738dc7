// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Virtual times of an emulated card through XRT: the formulas of the timing
// model, and the same times as the device that is simulated in this process.

#include <algorithm>

#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/simulated_device.h"
#include "tests/fpga_dma/xrt/emulated_card_fixture.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

class XrtClockTest : public EmulatedCardTest {
 protected:
  absl::Duration TransferTime(uint64_t bytes) const {
    return board_.dma.setup + absl::Seconds(static_cast<double>(bytes) /
                                            board_.dma.bytes_per_second);
  }
  static void ExpectNear(absl::Time got, absl::Time wanted) {
    EXPECT_LE(absl::AbsDuration(got - wanted), absl::Nanoseconds(5))
        << got << " against " << wanted;
  }
};

TEST_F(XrtClockTest, ATransferTakesSetupAndBytes) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  EXPECT_EQ(board_.dma.setup, absl::Microseconds(13));
  EXPECT_EQ(board_.dma.bytes_per_second, 12e9);
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  const SlabId slab = MakeSlab(BankId(0), kMebibyte, SlabKind::kHostVisible);
  absl::Time now = device_->Now();
  EXPECT_EQ(now, absl::UnixEpoch());
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{4096}, kMebibyte}) {
    const Completion up = Finish(device_->StartUpload({slab, 0, bytes}, 0));
    EXPECT_EQ(up.started, now);
    ExpectNear(up.finished, now + TransferTime(bytes));
    EXPECT_EQ(device_->Now(), up.finished);
    now = up.finished;
    device_->HostWorks(absl::Microseconds(3));
    now += absl::Microseconds(3);
    const Completion down = Finish(device_->StartDownload({slab, 0, bytes}, 1));
    EXPECT_EQ(down.started, now);
    ExpectNear(down.finished, now + TransferTime(bytes));
    now = down.finished;
  }
}

TEST_F(XrtClockTest, OneChannelQueuesAndDirectionsOverlap) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  constexpr uint64_t kBytes = uint64_t{1} << 20;
  const SlabId a = MakeSlab(BankId(0), kBytes, SlabKind::kHostVisible);
  const SlabId b = MakeSlab(BankId(1), kBytes, SlabKind::kHostVisible);
  const SlabId c = MakeSlab(BankId(2), kBytes, SlabKind::kHostVisible);
  const auto first = device_->StartUpload({a, 0, kBytes}, 0);
  const auto second = device_->StartUpload({b, 0, kBytes}, 0);
  const auto down = device_->StartDownload({c, 0, kBytes}, 0);
  auto done = FinishAll(3);
  ASSERT_EQ(done.size(), 3u);
  std::sort(done.begin(), done.end(),
            [](const auto& x, const auto& y) { return x.op < y.op; });
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(done[0].op, *first);
  EXPECT_EQ(done[1].op, *second);
  EXPECT_EQ(done[2].op, *down);
  ExpectNear(done[0].finished, start + TransferTime(kBytes));
  EXPECT_EQ(done[1].started, done[0].finished);
  ExpectNear(done[1].finished, start + 2 * TransferTime(kBytes));
  ExpectNear(done[2].finished, start + TransferTime(kBytes));
}

TEST_F(XrtClockTest, ADeadlineMovesTheClockAndAStateIsOfThatTime) {
  ASSERT_NO_FATAL_FAILURE(Open("u250"));
  const SlabId slab = MakeSlab(BankId(0), 4096, SlabKind::kHostVisible);
  const auto upload = device_->StartUpload({slab, 0, 4096}, 0);
  ASSERT_TRUE(upload.ok());
  Completion completion;
  const absl::Time early = absl::UnixEpoch() + absl::Microseconds(5);
  auto count = device_->Poll(early, {&completion, 1});
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 0u);
  EXPECT_EQ(device_->Now(), early);
  EXPECT_EQ(device_->State(*upload), OpState::kPending);
  device_->HostWorks(absl::Microseconds(20));
  EXPECT_EQ(device_->State(*upload), OpState::kFinished);
  count = device_->Poll(early, {&completion, 1});
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 1u);
  ExpectNear(completion.finished, absl::UnixEpoch() + TransferTime(4096));
  EXPECT_EQ(device_->Now(), absl::UnixEpoch() + absl::Microseconds(25));
  EXPECT_EQ(device_->State(*upload), OpState::kUnknown);
}

// Drives a device with random traffic and notes every completion.
class RandomTraffic {
 public:
  RandomTraffic(Device* device, uint64_t seed)
      : device_(device), random_(seed) {}

  std::vector<std::string> Run() {
    for (uint32_t i = 0; i < 6; ++i) {
      const auto slab = device_->CreateSlab(BankId(i % 4), kSlabBytes,
                                            SlabKind::kHostVisible);
      EXPECT_TRUE(slab.ok()) << slab.status();
      slabs_.push_back(*slab);
    }
    for (int step = 0; step < 300; ++step) Step();
    Drain();
    return log_;
  }

 private:
  static constexpr uint64_t kSlabBytes = uint64_t{1} << 18;

  uint64_t Pick(uint64_t n) { return random_() % n; }

  void Step() {
    const uint64_t what = Pick(10);
    if (what < 4 && pending_ < 20) {
      Note("upload", device_->StartUpload(Range(), Channel()));
    } else if (what < 7 && pending_ < 20) {
      Note("download", device_->StartDownload(Range(), Channel()));
    } else if (what == 7 && pending_ < 20) {
      SlabRange to = Range();
      SlabRange from = Range();
      if (to.slab == from.slab) return;
      to.bytes = from.bytes = std::min(to.bytes, from.bytes);
      Note("copy", device_->StartCopy(to, from));
    } else if (what == 8) {
      device_->HostWorks(absl::Nanoseconds(static_cast<int64_t>(Pick(30000))));
    } else {
      Poll(device_->Now() +
           absl::Nanoseconds(static_cast<int64_t>(Pick(60000))));
    }
  }

  SlabRange Range() {
    const uint64_t offset = Pick(kSlabBytes / 64) * 64;
    const uint64_t blocks = (kSlabBytes - offset) / 64;
    return {slabs_[Pick(slabs_.size())], offset, (1 + Pick(blocks)) * 64};
  }
  uint32_t Channel() {
    return static_cast<uint32_t>(Pick(device_->info().channels));
  }

  void Note(const char* what, const absl::StatusOr<OpId>& op) {
    ASSERT_TRUE(op.ok()) << what << ": " << op.status();
    ++pending_;
  }

  void Poll(absl::Time deadline) {
    Completion batch[2];
    const auto count = device_->Poll(deadline, absl::MakeSpan(batch));
    ASSERT_TRUE(count.ok()) << count.status();
    for (const Completion& each : absl::MakeSpan(batch).first(*count)) {
      --pending_;
      log_.push_back(absl::StrCat(each.op.value(), " ",
                                  absl::ToUnixNanos(each.started), " ",
                                  absl::ToUnixNanos(each.finished), " ",
                                  static_cast<int>(each.status.code())));
    }
  }
  void Drain() {
    while (pending_ > 0 && !::testing::Test::HasFailure()) {
      Poll(absl::InfiniteFuture());
    }
  }

  Device* const device_;
  std::mt19937_64 random_;
  std::vector<SlabId> slabs_;
  size_t pending_ = 0;
  std::vector<std::string> log_;
};

TEST_F(XrtClockTest, AgreesWithTheSimulatedDeviceAndWithItself) {
  const uint64_t seed = TestSeed(11);
  for (uint64_t i = 0; i < 10; ++i) {
    SCOPED_TRACE(seed + i);
    // Sometimes with transfers that are slower than they should be or fail.
    const std::string faults = "upload:fail%0.05 download:delay=40us%0.1";
    const std::string slowdown = i % 2 == 0 ? "1" : "1.7";
    std::vector<std::string> logs[2];
    for (auto& log : logs) {
      ASSERT_NO_FATAL_FAILURE(
          Open("u250", {{"PAGEDKV_CARD_FAULTS", faults},
                        {"PAGEDKV_CARD_SEED", absl::StrCat(seed + i)},
                        {"PAGEDKV_CARD_SLOWDOWN", slowdown}}));
      log = RandomTraffic(device_.get(), seed + i).Run();
    }
    EXPECT_EQ(logs[0], logs[1]);

    SimulatedDeviceOptions options;
    options.board = board_;
    options.kernels = Kernels();
    options.seed = seed + i;
    options.max_slowdown = i % 2 == 0 ? 1 : 1.7;
    auto plan = ParseFaultPlan(absl::StrCat("seed=", seed + i, " ", faults));
    ASSERT_TRUE(plan.ok());
    options.faults = *plan;
    auto simulated = SimulatedDevice::Create(options);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    EXPECT_EQ(RandomTraffic(simulated->get(), seed + i).Run(), logs[0]);
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma

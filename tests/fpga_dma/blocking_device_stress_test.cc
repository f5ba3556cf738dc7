// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A device over a card whose calls block: order per lane, waits by the real
// clock, hangs that a reset ends. The card is a fake of this file, so that the
// thread sanitizer sees everything.

#include "fpga_dma/blocking_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

using absl::StatusCode;

// Two banks, two channels, two units of a kernel (address, scalar). An upload
// whose first byte is kHangs blocks until Interrupt().
class FakeCard : public BlockingCard {
 public:
  static constexpr std::byte kHangs{0xEE};

  FakeCard() {
    info_.name = "fake";
    info_.channels = 2;
    info_.banks = {{"DDR[0]", 1 << 20}, {"DDR[1]", 1 << 20}};
    for (uint32_t i = 0; i < 2; ++i) {
      info_.compute_units.push_back({"add", "add", {BankId(i), kNoBank}});
    }
  }

  const DeviceInfo& info() const override { return info_; }
  bool Reaches(uint32_t unit, size_t argument, BankId bank) const override {
    return info_.compute_units[unit].argument_banks[argument] == bank;
  }
  absl::Status CreateSlab(SlabId slab, BankId /*bank*/, uint64_t bytes,
                          absl::Span<std::byte> image) override {
    slabs_[slab] =
        std::make_shared<Memory>(Memory{std::vector<std::byte>(bytes), image});
    return absl::OkStatus();
  }
  void DestroySlab(SlabId slab) override { slabs_.erase(slab); }

  Call Upload(SlabRange range) override {
    return [this, memory = slabs_.at(range.slab), range] {
      if (memory->image[range.offset] == kHangs) {
        std::unique_lock<std::mutex> lock(mutex_);
        interrupted_.wait(lock, [&] { return interrupts_ > 0; });
        return absl::InternalError("interrupted");
      }
      for (uint64_t i = range.offset; i < range.offset + range.bytes; ++i) {
        memory->device[i] = memory->image[i];
      }
      return absl::OkStatus();
    };
  }
  Call Download(SlabRange range) override {
    return [memory = slabs_.at(range.slab), range] {
      for (uint64_t i = range.offset; i < range.offset + range.bytes; ++i) {
        memory->image[i] = memory->device[i];
      }
      return absl::OkStatus();
    };
  }
  Call Copy(SlabRange to, SlabRange from) override {
    return
        [target = slabs_.at(to.slab), source = slabs_.at(from.slab), to, from] {
          for (uint64_t i = 0; i < to.bytes; ++i) {
            target->device[to.offset + i] = source->device[from.offset + i];
          }
          return absl::OkStatus();
        };
  }
  // Adds the scalar to every byte; twice would show, and so would an order.
  Call Run(uint32_t /*unit*/,
           absl::Span<const KernelArgument> arguments) override {
    return [memory = slabs_.at(arguments[0].slab), value = arguments[1].value] {
      if (value == 999) return absl::UnavailableError("gone");
      for (std::byte& each : memory->device) {
        each =
            static_cast<std::byte>(std::to_integer<uint64_t>(each) * 3 + value);
      }
      return absl::OkStatus();
    };
  }

  void Interrupt() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++interrupts_;
    }
    interrupted_.notify_all();
  }
  absl::Status Restore() override {
    std::lock_guard<std::mutex> lock(mutex_);
    interrupts_ = 0;
    return absl::OkStatus();
  }
  ModelledTimes* modelled_times() override { return nullptr; }

 private:
  struct Memory {
    std::vector<std::byte> device;
    absl::Span<std::byte> image;
  };

  DeviceInfo info_;
  std::map<SlabId, std::shared_ptr<Memory>> slabs_;
  std::mutex mutex_;
  std::condition_variable interrupted_;
  int interrupts_ = 0;
};

class BlockingDeviceTest : public ::testing::Test {
 protected:
  SlabId Make(uint32_t bank, uint64_t bytes = 4096) {
    return *device_.CreateSlab(BankId(bank), bytes, SlabKind::kHostVisible);
  }
  absl::Span<std::byte> Image(SlabId slab) { return *device_.HostImage(slab); }
  std::vector<Completion> Finish(size_t expected) {
    std::vector<Completion> all;
    while (all.size() < expected) {
      Completion batch[4];
      const auto count =
          device_.Poll(absl::InfiniteFuture(), absl::MakeSpan(batch));
      EXPECT_TRUE(count.ok()) << count.status();
      if (!count.ok()) break;
      for (size_t i = 0; i < *count; ++i) {
        EXPECT_LE(batch[i].started, batch[i].finished);
        all.push_back(batch[i]);
      }
    }
    return all;
  }

  BlockingDevice device_{std::make_unique<FakeCard>(),
                         std::chrono::seconds(60)};
};

TEST_F(BlockingDeviceTest, EachUnitRunsInOrderWhileAllWork) {
  const uint64_t seed = TestSeed(1);
  std::mt19937_64 random(seed);
  const SlabId slabs[] = {Make(0), Make(1)};
  uint8_t expected[] = {0, 0};
  size_t pending = 0;
  for (uint32_t i = 0; i < 2; ++i) {
    std::fill(Image(slabs[i]).begin(), Image(slabs[i]).end(), std::byte{0});
    ASSERT_TRUE(device_.StartUpload({slabs[i], 0, 4096}, i).ok());
  }
  Finish(2);
  for (int step = 0; step < 2000; ++step) {
    const auto unit = static_cast<uint32_t>(random() % 2);
    const uint64_t value = random() % 256;
    const KernelArgument arguments[] = {AddressArgument(slabs[unit]),
                                        ScalarArgument(value)};
    ASSERT_TRUE(device_.StartKernel(unit, arguments).ok());
    expected[unit] = static_cast<uint8_t>(expected[unit] * 3 + value);
    if (++pending == 16) {
      pending -= Finish(1 + random() % 16).size();
    }
  }
  Finish(pending);
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(device_.StartDownload({slabs[i], 0, 4096}, i).ok());
  }
  Finish(2);
  for (uint32_t i = 0; i < 2; ++i) {
    for (const std::byte each : Image(slabs[i])) {
      ASSERT_EQ(std::to_integer<int>(each), expected[i]) << "unit " << i;
    }
  }
}

TEST_F(BlockingDeviceTest, ADeadlineEndsAPollOfAHangAndAResetTheHang) {
  const SlabId slab = Make(0);
  Image(slab)[0] = FakeCard::kHangs;
  const auto hung = device_.StartUpload({slab, 0, 4096}, 0);
  const auto behind = device_.StartDownload({slab, 64, 64}, 1);
  ASSERT_TRUE(hung.ok() && behind.ok());
  const auto done = Finish(1);
  EXPECT_EQ(done[0].op, *behind);
  Completion none;
  const absl::Time deadline = device_.Now() + absl::Milliseconds(20);
  const auto count = device_.Poll(deadline, {&none, 1});
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 0u);
  EXPECT_GE(device_.Now(), deadline);
  EXPECT_EQ(device_.State(*hung), OpState::kPending);
  EXPECT_EQ(device_.DestroySlab(slab).code(), StatusCode::kFailedPrecondition);

  ASSERT_TRUE(device_.Reset().ok());
  EXPECT_EQ(device_.State(*hung), OpState::kFinished);
  const auto given_up = Finish(1);
  EXPECT_EQ(given_up[0].op, *hung);
  EXPECT_EQ(given_up[0].status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(device_.State(*hung), OpState::kUnknown);
  Image(slab)[0] = std::byte{1};
  ASSERT_TRUE(device_.StartUpload({slab, 0, 4096}, 0).ok());
  EXPECT_TRUE(Finish(1)[0].status.ok());
  EXPECT_TRUE(device_.DestroySlab(slab).ok());
}

TEST_F(BlockingDeviceTest, ACardThatIsGoneIsUnavailableUntilAReset) {
  const SlabId slab = Make(0);
  const KernelArgument arguments[] = {AddressArgument(slab),
                                      ScalarArgument(999)};
  ASSERT_TRUE(device_.StartKernel(0, arguments).ok());
  EXPECT_EQ(Finish(1)[0].status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(device_.StartKernel(0, arguments).status().code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(device_.StartUpload({slab, 0, 64}, 0).status().code(),
            StatusCode::kUnavailable);
  Completion none;
  EXPECT_EQ(device_.Poll(absl::InfiniteFuture(), {&none, 1}).status().code(),
            StatusCode::kUnavailable);
  ASSERT_TRUE(device_.Reset().ok());
  ASSERT_TRUE(device_.StartUpload({slab, 0, 64}, 0).ok());
  EXPECT_TRUE(Finish(1)[0].status.ok());
}

TEST_F(BlockingDeviceTest, ADeviceThatHangsCanBeDestroyed) {
  const SlabId slab = Make(0);
  Image(slab)[0] = FakeCard::kHangs;
  ASSERT_TRUE(device_.StartUpload({slab, 0, 4096}, 0).ok());
  ASSERT_TRUE(device_.StartUpload({slab, 0, 4096}, 0).ok());
}

TEST_F(BlockingDeviceTest, APollWithoutAnythingPendingDoesNotWaitForEver) {
  Completion none;
  EXPECT_EQ(device_.Poll(absl::InfiniteFuture(), {&none, 1}).status().code(),
            StatusCode::kFailedPrecondition);
  const auto count =
      device_.Poll(device_.Now() + absl::Milliseconds(1), {&none, 1});
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 0u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

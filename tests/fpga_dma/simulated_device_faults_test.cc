// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Each kind of fault, what it leaves behind, and that a seed repeats it all.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fpga_dma/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/simulated_device_rig.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

using namespace simulated_device_rig;  // NOLINT(build/namespaces)
using absl::StatusCode;

bool AllPoison(const std::vector<std::byte>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte each) {
    return each == BankMemory::kPoison;
  });
}

size_t DifferentBits(const std::vector<std::byte>& a,
                     const std::vector<std::byte>& b) {
  EXPECT_EQ(a.size(), b.size());
  size_t bits = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto difference = std::to_integer<unsigned>(a[i] ^ b[i]);
    bits += static_cast<size_t>(__builtin_popcount(difference));
  }
  return bits;
}

// How many first bytes of `got` are those of `next`.
size_t PrefixBytes(const std::vector<std::byte>& got,
                   const std::vector<std::byte>& next) {
  const auto split = std::mismatch(got.begin(), got.end(), next.begin());
  return static_cast<size_t>(split.first - got.begin());
}

// Whether `got` is a first part of `next` over the rest of `before`.
bool IsPrefixOver(const std::vector<std::byte>& got,
                  const std::vector<std::byte>& next,
                  const std::vector<std::byte>& before) {
  const auto split = static_cast<ptrdiff_t>(PrefixBytes(got, next));
  return std::equal(got.begin() + split, got.end(), before.begin() + split);
}

// A device with a slab `a` in bank 0 whose image and memory differ, and a slab
// `b` there for copies.
struct Rig {
  explicit Rig(absl::string_view faults, SimulatedDeviceOptions options = {})
      : device(MakeDevice(faults, std::move(options))) {
    a = MakeSlab(*device, 4096);
    b = MakeSlab(*device, 4096);
    Set(device->HostImage(a).value(), image);
    Set(device->DeviceMemory({a, 0, 4096}).value(), memory);
    Set(device->DeviceMemory({b, 0, 4096}).value(), other);
  }
  // Any operation that can fail: what it writes, before and after it.
  OpId Start(CardOperation kind, uint32_t channel = 0) {
    const KernelArgument arguments[] = {AddressArgument(a), AddressArgument(b),
                                        ScalarArgument(4096),
                                        ScalarArgument(1)};
    switch (kind) {
      case CardOperation::kUpload:
        return device->StartUpload({a, 0, 4096}, channel).value();
      case CardOperation::kDownload:
        return device->StartDownload({a, 0, 4096}, channel).value();
      case CardOperation::kCopy:
        return device->StartCopy({b, 0, 4096}, {a, 0, 4096}).value();
      default:
        return device->StartKernel(0, arguments).value();
    }
  }
  std::vector<std::byte> Written(CardOperation kind) {
    switch (kind) {
      case CardOperation::kUpload:
        return Memory(*device, {a, 0, 4096});
      case CardOperation::kDownload:
        return Image(*device, a);
      default:
        return Memory(*device, {b, 0, 4096});
    }
  }
  std::vector<std::byte> Before(CardOperation kind) const {
    switch (kind) {
      case CardOperation::kUpload:
        return memory;
      case CardOperation::kDownload:
        return std::vector<std::byte>(4096, BankMemory::kPoison);
      default:
        return other;
    }
  }
  std::vector<std::byte> After(CardOperation kind) const {
    if (kind == CardOperation::kUpload) return image;
    std::vector<std::byte> after = memory;
    if (kind == CardOperation::kKernel) {
      for (std::byte& each : after) {
        each = static_cast<std::byte>(std::to_integer<int>(each) + 1);
      }
    }
    return after;
  }

  const std::vector<std::byte> image = Content(4096, 1);
  const std::vector<std::byte> memory = Content(4096, 2);
  const std::vector<std::byte> other = Content(4096, 3);
  std::unique_ptr<SimulatedDevice> device;
  SlabId a;
  SlabId b;
};

constexpr CardOperation kStarted[] = {
    CardOperation::kUpload, CardOperation::kDownload, CardOperation::kCopy,
    CardOperation::kKernel};

std::string Text(CardOperation operation, absl::string_view fault) {
  return absl::StrCat(CardOperationName(operation), ":", fault);
}

TEST(SimulatedDeviceFaultsTest, AFailureIsReportedAndLeavesAPart) {
  for (CardOperation kind : kStarted) {
    SCOPED_TRACE(CardOperationName(kind));
    std::set<size_t> left;  // how much was written
    for (int seed = 0; seed < 20; ++seed) {
      Rig rig(absl::StrCat("seed=", seed, " ", Text(kind, "fail@2")));
      const OpId before =
          rig.Start(kind == CardOperation::kUpload ? CardOperation::kDownload
                                                   : CardOperation::kUpload,
                    1);
      EXPECT_EQ(Next(*rig.device).op, before);
      // Undo what that did.
      Set(rig.device->DeviceMemory({rig.a, 0, 4096}).value(), rig.memory);
      Set(rig.device->HostImage(rig.a).value(), rig.image);
      ASSERT_EQ(rig.Start(kind).value(), before.value() + 1);
      EXPECT_TRUE(Next(*rig.device).status.ok());
      Set(rig.device->DeviceMemory({rig.a, 0, 4096}).value(), rig.memory);
      Set(rig.device->HostImage(rig.a).value(), rig.image);
      Set(rig.device->DeviceMemory({rig.b, 0, 4096}).value(), rig.other);
      const OpId op = rig.Start(kind);
      const Completion completion = Next(*rig.device);
      EXPECT_EQ(completion.op, op);
      EXPECT_EQ(completion.status.code(), StatusCode::kInternal);
      EXPECT_TRUE(absl::StrContains(completion.status.message(), "injected"));
      const auto written = rig.Written(kind);
      EXPECT_TRUE(IsPrefixOver(written, rig.After(kind), rig.Before(kind)));
      EXPECT_NE(written, rig.After(kind));
      left.insert(PrefixBytes(written, rig.After(kind)));
      // A retry succeeds.
      rig.Start(kind);
      EXPECT_TRUE(Next(*rig.device).status.ok());
      EXPECT_EQ(rig.Written(kind), rig.After(kind));
    }
    if (kind != CardOperation::kKernel) {
      EXPECT_GT(left.size(), 10u);
    }
  }
}

TEST(SimulatedDeviceFaultsTest, AFlippedBitIsOneBitAndNoError) {
  for (CardOperation kind : kStarted) {
    SCOPED_TRACE(CardOperationName(kind));
    Rig rig(Text(kind, "flip@1"));
    rig.Start(kind);
    EXPECT_TRUE(Next(*rig.device).status.ok());
    EXPECT_EQ(DifferentBits(rig.Written(kind), rig.After(kind)), 1u);
    // The source is as it was.
    if (kind == CardOperation::kUpload) {
      EXPECT_EQ(Image(*rig.device, rig.a), rig.image);
    } else {
      EXPECT_EQ(Memory(*rig.device, {rig.a, 0, 4096}), rig.memory);
    }
  }
}

TEST(SimulatedDeviceFaultsTest, AHangHoldsItsQueueUntilAReset) {
  for (CardOperation kind : kStarted) {
    SCOPED_TRACE(CardOperationName(kind));
    Rig rig(Text(kind, "hang@1"));
    const OpId stuck = rig.Start(kind);
    const OpId behind = rig.Start(kind);
    Completion completion;
    const auto poll = [&](double microseconds) {
      return rig.device->Poll(At(microseconds), absl::MakeSpan(&completion, 1))
          .value();
    };
    EXPECT_EQ(poll(1e6), 0u);
    EXPECT_EQ(rig.device->Now(), At(1e6));
    EXPECT_EQ(rig.device->State(stuck), OpState::kPending);
    EXPECT_EQ(rig.device->State(behind), OpState::kPending);
    EXPECT_EQ(rig.device->DestroySlab(rig.a).code(),
              StatusCode::kFailedPrecondition);
    EXPECT_TRUE(
        IsPrefixOver(rig.Written(kind), rig.After(kind), rig.Before(kind)));
    // Others go on.
    const OpId beside =
        rig.Start(kind == CardOperation::kUpload ? CardOperation::kDownload
                                                 : CardOperation::kUpload);
    EXPECT_EQ(poll(2e6), 1u);
    EXPECT_EQ(completion.op, beside);
    ASSERT_TRUE(rig.device->Reset().ok());
    for (OpId op : {stuck, behind}) {
      EXPECT_EQ(rig.device->State(op), OpState::kFinished);
      const Completion ended = Next(*rig.device);
      EXPECT_EQ(ended.op, op);
      EXPECT_EQ(ended.status.code(), StatusCode::kDataLoss);
      EXPECT_LE(ended.started, ended.finished);
      EXPECT_EQ(ended.finished, rig.device->Now());
    }
    Set(rig.device->DeviceMemory({rig.a, 0, 4096}).value(), rig.memory);
    Set(rig.device->HostImage(rig.a).value(), rig.image);
    rig.Start(kind);
    EXPECT_TRUE(Next(*rig.device).status.ok());
    EXPECT_EQ(rig.Written(kind), rig.After(kind));
  }
}

TEST(SimulatedDeviceFaultsTest, ADelayedOperationStillDoesItsWork) {
  for (CardOperation kind : kStarted) {
    SCOPED_TRACE(CardOperationName(kind));
    Rig rig(Text(kind, "delay=3ms@1"));
    rig.Start(kind);
    Completion completion;
    EXPECT_EQ(
        rig.device->Poll(At(2999), absl::MakeSpan(&completion, 1)).value(), 0u);
    EXPECT_EQ(rig.Written(kind), rig.Before(kind));
    EXPECT_TRUE(Next(*rig.device).status.ok());
    EXPECT_GT(rig.device->Now(), At(3000));
    EXPECT_EQ(rig.Written(kind), rig.After(kind));
  }
}

TEST(SimulatedDeviceFaultsTest, ALostCompletionIsUnknownUntilAReset) {
  for (CardOperation kind : kStarted) {
    SCOPED_TRACE(CardOperationName(kind));
    Rig rig(Text(kind, "silent@1"));
    const OpId silent = rig.Start(kind);
    EXPECT_EQ(rig.device->State(silent), OpState::kPending);
    rig.device->HostWorks(absl::Seconds(1));
    EXPECT_EQ(rig.device->State(silent), OpState::kUnknown);
    EXPECT_EQ(rig.Written(kind), rig.After(kind));
    EXPECT_EQ(rig.device->DestroySlab(rig.a).code(),
              StatusCode::kFailedPrecondition);
    // Its queue goes on.
    const OpId next = rig.Start(kind);
    EXPECT_EQ(Next(*rig.device).op, next);
    ASSERT_TRUE(rig.device->Reset().ok());
    const Completion completion = Next(*rig.device);
    EXPECT_EQ(completion.op, silent);
    EXPECT_EQ(completion.status.code(), StatusCode::kDataLoss);
    EXPECT_TRUE(rig.device->DestroySlab(rig.a).ok());
  }
}

TEST(SimulatedDeviceFaultsTest, ALostDeviceTakesAllWithIt) {
  for (CardOperation kind : kStarted) {
    SCOPED_TRACE(CardOperationName(kind));
    Rig rig(Text(kind, "lose@1"));
    const OpId killer = rig.Start(kind);
    const OpId behind = rig.Start(kind);
    const auto image = Image(*rig.device, rig.a);
    for (OpId op : {killer, behind}) {
      const Completion completion = Next(*rig.device);
      EXPECT_EQ(completion.op, op);
      EXPECT_EQ(completion.status.code(), StatusCode::kUnavailable);
    }
    EXPECT_TRUE(AllPoison(Memory(*rig.device, {rig.a, 0, 4096})));
    EXPECT_TRUE(AllPoison(Memory(*rig.device, {rig.b, 0, 4096})));
    EXPECT_EQ(Image(*rig.device, rig.a), image);
    // Everything that needs the device says so.
    Completion completion;
    const KernelArgument arguments[] = {AddressArgument(rig.a),
                                        AddressArgument(rig.a),
                                        ScalarArgument(1), ScalarArgument(1)};
    SimulatedDevice& device = *rig.device;
    EXPECT_EQ(device.StartUpload({rig.a, 0, 64}, 0).status().code(),
              StatusCode::kUnavailable);
    EXPECT_EQ(device.StartDownload({rig.a, 0, 64}, 0).status().code(),
              StatusCode::kUnavailable);
    EXPECT_EQ(device.StartCopy({rig.a, 0, 64}, {rig.b, 0, 64}).status().code(),
              StatusCode::kUnavailable);
    EXPECT_EQ(device.StartKernel(0, arguments).status().code(),
              StatusCode::kUnavailable);
    EXPECT_EQ(
        device.CreateSlab(BankId(0), 64, SlabKind::kDeviceOnly).status().code(),
        StatusCode::kUnavailable);
    EXPECT_EQ(device
                  .Poll(device.Now() + absl::Seconds(1),
                        absl::MakeSpan(&completion, 1))
                  .status()
                  .code(),
              StatusCode::kUnavailable);
    // What the caller got wrong is said first, as ever.
    EXPECT_EQ(device.StartUpload({rig.a, 0, 63}, 0).status().code(),
              StatusCode::kInvalidArgument);
    ASSERT_TRUE(device.Reset().ok());
    Set(device.HostImage(rig.a).value(), rig.image);
    ASSERT_TRUE(device.StartUpload({rig.a, 0, 4096}, 0).ok());
    EXPECT_TRUE(Next(device).status.ok());
    EXPECT_EQ(Memory(device, {rig.a, 0, 4096}), rig.image);
  }
}

TEST(SimulatedDeviceFaultsTest, AResetGivesUpWhatIsPendingAndNoMore) {
  Rig rig("");
  const OpId done = rig.Start(CardOperation::kUpload);
  rig.device->HostWorks(absl::Seconds(1));
  const OpId pending = rig.Start(CardOperation::kCopy);
  const auto image = Image(*rig.device, rig.a);
  ASSERT_TRUE(rig.device->Reset().ok());
  const Completion first = Next(*rig.device);
  EXPECT_EQ(first.op, done);
  EXPECT_TRUE(first.status.ok());
  const Completion second = Next(*rig.device);
  EXPECT_EQ(second.op, pending);
  EXPECT_EQ(second.status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(Image(*rig.device, rig.a), image);
  EXPECT_TRUE(AllPoison(Memory(*rig.device, {rig.a, 0, 4096})));
  EXPECT_EQ(rig.device->pending_operations(), 0u);
}

TEST(SimulatedDeviceFaultsTest, AResetMayFail) {
  Rig rig("upload:lose@1 reset:fail@1");
  rig.Start(CardOperation::kUpload);
  Next(*rig.device);
  EXPECT_EQ(rig.device->Reset().code(), StatusCode::kUnavailable);
  EXPECT_EQ(rig.device->StartUpload({rig.a, 0, 64}, 0).status().code(),
            StatusCode::kUnavailable);
  EXPECT_TRUE(rig.device->Reset().ok());
  EXPECT_TRUE(rig.device->StartUpload({rig.a, 0, 64}, 0).ok());
}

TEST(SimulatedDeviceFaultsTest, ABankMayBeFull) {
  auto device = MakeDevice("allocate:fail@2");
  const auto create = [&] {
    return device->CreateSlab(BankId(1), 64, SlabKind::kHostVisible).status();
  };
  EXPECT_TRUE(create().ok());
  const absl::Status full = create();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(full.message(), "bank B")) << full;
  EXPECT_TRUE(create().ok());
}

// ---- Seeds ----

// What random traffic on a device with every kind of fault looked like.
struct Trace {
  std::vector<std::string> events;
  std::vector<std::vector<std::byte>> images;
};

std::string Describe(const Completion& completion) {
  return absl::StrCat(
      completion.op.value(), " ", absl::FormatTime(completion.started), " ",
      absl::FormatTime(completion.finished), " ", completion.status.ToString());
}

Trace RunTraffic(uint64_t seed, double max_slowdown, absl::string_view faults) {
  SimulatedDeviceOptions options;
  options.seed = seed;
  options.max_slowdown = max_slowdown;
  auto device = MakeDevice(absl::StrCat("seed=", seed, " ", faults), options);
  std::mt19937_64 random(seed);
  std::vector<SlabId> slabs;
  for (uint32_t i = 0; i < 4; ++i) {
    slabs.push_back(MakeSlab(*device, 65536, i % 2));
    Set(device->HostImage(slabs[i]).value(), Content(65536, i));
    Set(device->DeviceMemory({slabs[i], 0, 65536}).value(),
        Content(65536, 100 + i));
  }
  Trace trace;
  std::map<OpId, size_t> queues;     // of those not reported
  std::map<size_t, OpId> last_done;  // by queue
  const auto note = [&](const std::string& event) {
    trace.events.push_back(event);
  };
  const auto start = [&](size_t queue, absl::StatusOr<OpId> op) {
    if (op.ok()) {
      EXPECT_TRUE(queues.emplace(*op, queue).second);
    } else {
      note(op.status().ToString());
      EXPECT_EQ(op.status().code(), StatusCode::kUnavailable);
    }
  };
  const auto take = [&](const Completion& completion) {
    note(Describe(completion));
    const auto queue = queues.find(completion.op);
    ASSERT_NE(queue, queues.end()) << "reported twice or never started";
    EXPECT_EQ(device->State(completion.op), OpState::kUnknown);
    // Never reordered within a queue; those that a reset gives up come later
    // than those behind a lost completion.
    if (completion.status.code() != StatusCode::kDataLoss &&
        completion.status.code() != StatusCode::kUnavailable) {
      OpId& last = last_done[queue->second];
      EXPECT_LT(last, completion.op);
      last = completion.op;
    }
    queues.erase(queue);
  };
  for (int step = 0; step < 400; ++step) {
    const size_t slab = random() % 4;
    const SlabRange range{slabs[slab], random() % 512 * 64,
                          64 * (1 + random() % 512)};
    const SlabRange other{slabs[(slab + 1) % 4], random() % 512 * 64,
                          range.bytes};
    const uint32_t channel = random() % 2;
    switch (random() % 5) {
      case 0:
        start(channel, device->StartUpload(range, channel));
        break;
      case 1:
        start(2 + channel, device->StartDownload(range, channel));
        break;
      case 2:
        start(4, device->StartCopy(range, other));
        break;
      case 3: {
        const uint32_t unit = slab % 2;
        const KernelArgument arguments[] = {
            AddressArgument(range.slab), AddressArgument(range.slab, 32768),
            ScalarArgument(range.bytes), ScalarArgument(step)};
        start(5 + unit, device->StartKernel(unit, arguments));
        break;
      }
      default:
        break;
    }
    Completion completion;
    const absl::Time deadline =
        device->Now() + absl::Microseconds(random() % 60);
    const absl::StatusOr<size_t> count =
        device->Poll(deadline, absl::MakeSpan(&completion, 1));
    if (!count.ok()) {
      note(count.status().ToString());
    } else if (*count == 1) {
      take(completion);
    }
    if (!count.ok() || queues.size() > 40) {
      note(device->Reset().ToString());
    }
  }
  while (!device->Reset().ok()) {
  }
  // Whatever happened, all is reported in the end, and once.
  while (!queues.empty()) {
    Completion completion;
    const auto count =
        device->Poll(device->Now(), absl::MakeSpan(&completion, 1));
    EXPECT_EQ(count.value_or(0), 1u) << count.status();
    if (count.value_or(0) != 1) break;
    take(completion);
  }
  for (SlabId slab : slabs) {
    trace.images.push_back(Image(*device, slab));
    trace.images.push_back(Memory(*device, {slab, 0, 65536}));
    EXPECT_TRUE(device->DestroySlab(slab).ok());
  }
  return trace;
}

constexpr absl::string_view kEveryFault =
    "upload:fail%0.05 upload:flip%0.05 upload:hang%0.01 upload:lose%0.005 "
    "upload:silent%0.01 upload:delay=1ms%0.02 "
    "download:fail%0.05 download:flip%0.05 download:hang%0.01 "
    "download:silent%0.01 download:delay=1ms%0.02 download:lose%0.005 "
    "copy:fail%0.05 copy:flip%0.05 copy:hang%0.01 copy:silent%0.01 "
    "copy:delay=1ms%0.02 copy:lose%0.005 "
    "kernel:fail%0.05 kernel:flip%0.05 kernel:hang%0.01 kernel:silent%0.01 "
    "kernel:delay=1ms%0.02 kernel:lose%0.005 reset:fail%0.2";

TEST(SimulatedDeviceFaultsTest, ASeedRepeatsEverything) {
  const uint64_t first = TestSeed(1);
  std::set<std::vector<std::string>> distinct;
  for (uint64_t seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Trace once = RunTraffic(seed, 4, kEveryFault);
    const Trace again = RunTraffic(seed, 4, kEveryFault);
    ASSERT_EQ(once.events, again.events);
    ASSERT_EQ(once.images, again.images);
    distinct.insert(once.events);
  }
  EXPECT_EQ(distinct.size(), 60u);
}

TEST(SimulatedDeviceFaultsTest, SlownessReordersQueuesNeverWithinOne) {
  const auto order = [](uint64_t seed, double max_slowdown) {
    SimulatedDeviceOptions options;
    options.seed = seed;
    options.max_slowdown = max_slowdown;
    auto device = MakeDevice("", options);
    const SlabId slab = MakeSlab(*device, 65536);
    std::vector<uint64_t> ops;
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(device->StartUpload({slab, 0, 6400}, 0).ok());
      EXPECT_TRUE(device->StartUpload({slab, 32768, 6400}, 1).ok());
    }
    absl::Time last = absl::InfinitePast();
    for (int i = 0; i < 16; ++i) {
      const Completion completion = Next(*device);
      EXPECT_LE(last, completion.finished);
      EXPECT_GE(completion.finished - completion.started,
                absl::Microseconds(16.4));
      last = completion.finished;
      ops.push_back(completion.op.value());
    }
    for (uint64_t odd : {0, 1}) {
      std::vector<uint64_t> one;
      std::copy_if(ops.begin(), ops.end(), std::back_inserter(one),
                   [&](uint64_t op) { return op % 2 == odd; });
      EXPECT_TRUE(std::is_sorted(one.begin(), one.end()));
    }
    return ops;
  };
  const std::vector<uint64_t> plain = order(1, 1);
  EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(order(seed, 3), order(seed, 3));
    orders.insert(order(seed, 3));
  }
  EXPECT_GT(orders.size(), 10u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

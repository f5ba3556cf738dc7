// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/simulated_device.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/simulated_device_rig.h"

namespace paged_kv::fpga_dma {
namespace {

using namespace simulated_device_rig;  // NOLINT(build/namespaces)
using absl::StatusCode;

TEST(SimulatedDeviceTest, SaysWhatItConsistsOf) {
  auto device = MakeDevice();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.name, "simulated rig");
  EXPECT_TRUE(info.modelled);
  EXPECT_EQ(info.channels, 2u);
  EXPECT_EQ(info.alignment_bytes, 64u);
  ASSERT_EQ(info.banks.size(), 2u);
  EXPECT_EQ(info.banks[1].name, "B");
  EXPECT_EQ(info.banks[1].bytes, uint64_t{1} << 26);
  ASSERT_EQ(info.compute_units.size(), 2u);
  EXPECT_EQ(info.compute_units[1].kernel, "add");
  EXPECT_EQ(info.compute_units[1].instance, "add_2");
  EXPECT_EQ(info.compute_units[1].argument_banks,
            (std::vector<BankId>{BankId(1), BankId(1), kNoBank, kNoBank}));
}

TEST(SimulatedDeviceTest, EveryBoardBecomesADevice) {
  for (const std::string& name : BuiltinBoardNames()) {
    SimulatedDeviceOptions options;
    options.board = BuiltinBoard(name).value();
    auto plain = SimulatedDevice::Create(options);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_TRUE((*plain)->info().compute_units.empty());
    options.kernels = Kernels();
    auto loaded = SimulatedDevice::Create(options);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ((*loaded)->info().compute_units.size(),
              options.board.compute_units.size());
    // A whole bank as one slab, used at both ends.
    const uint64_t bytes = options.board.banks.back().bytes;
    const BankId bank(static_cast<uint32_t>(options.board.banks.size() - 1));
    const SlabId slab =
        (*loaded)->CreateSlab(bank, bytes, SlabKind::kHostVisible).value();
    (*loaded)->HostImage(slab)->back() = std::byte{9};
    ASSERT_TRUE((*loaded)->StartUpload({slab, bytes - 64, 64}, 0).ok());
    EXPECT_TRUE(Next(**loaded).status.ok());
    EXPECT_EQ(Memory(**loaded, {slab, bytes - 64, 64})[63], std::byte{9});
  }
}

TEST(SimulatedDeviceTest, RejectsWhatFitsNoDevice) {
  SimulatedDeviceOptions options;
  options.board = RigBoard();
  const auto code = [&] {
    return SimulatedDevice::Create(options).status().code();
  };
  EXPECT_EQ(code(), StatusCode::kOk);
  options.max_slowdown = 0.5;
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  options.max_slowdown = 1;
  options.faults.rules.emplace_back();
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  options.faults.rules.clear();
  options.board.banks.clear();
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  options.board = RigBoard();
  options.kernels = kAdd;
  options.board.compute_units[0].ports.pop_back();
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  options.board.compute_units[0].ports.emplace_back("value", BankId(0));
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
}

// ---- Memory ----

TEST(SimulatedDeviceTest, DataGoesUpAcrossAndDown) {
  auto device = MakeDevice();
  const SlabId a = MakeSlab(*device, 1 << 20);
  const SlabId b = MakeSlab(*device, 1 << 20, 1);
  const auto content_a = Content(1 << 20, 1);
  auto expected = Content(1 << 20, 2);
  Set(device->HostImage(a).value(), content_a);
  Set(device->HostImage(b).value(), expected);
  ASSERT_TRUE(device->StartUpload({a, 0, 1 << 20}, 0).ok());
  EXPECT_TRUE(Next(*device).status.ok());
  ASSERT_TRUE(device->StartCopy({b, 4096, 8192}, {a, 64, 8192}).ok());
  EXPECT_TRUE(Next(*device).status.ok());
  ASSERT_TRUE(device->StartDownload({b, 4096, 8192}, 1).ok());
  EXPECT_TRUE(Next(*device).status.ok());
  std::copy_n(content_a.begin() + 64, 8192, expected.begin() + 4096);
  EXPECT_EQ(Image(*device, b), expected);
}

TEST(SimulatedDeviceTest, ImagesArePageAlignedAndOfDeviceOnlySlabsNotThere) {
  auto device = MakeDevice();
  const SlabId visible = MakeSlab(*device, 64);
  const SlabId hidden = MakeSlab(*device, 64, 0, SlabKind::kDeviceOnly);
  EXPECT_EQ(device->HostImage(visible)->size(), 64u);
  EXPECT_EQ(
      reinterpret_cast<uintptr_t>(device->HostImage(visible)->data()) % 4096,
      0u);
  EXPECT_EQ(device->HostImage(hidden).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(device->StartUpload({hidden, 0, 64}, 0).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(device->StartCopy({hidden, 0, 64}, {visible, 0, 64}).ok());
}

TEST(SimulatedDeviceTest, SlabsAreNeverReusedAndTheirMemoryIs) {
  auto device = MakeDevice();
  const uint64_t bank_bytes = device->info().banks[0].bytes;
  const SlabId a = MakeSlab(*device, bank_bytes);
  EXPECT_EQ(
      device->CreateSlab(BankId(0), 64, SlabKind::kDeviceOnly).status().code(),
      StatusCode::kResourceExhausted);
  EXPECT_TRUE(device->DestroySlab(a).ok());
  const SlabId b = MakeSlab(*device, bank_bytes);
  EXPECT_NE(a, b);
  EXPECT_EQ(device->DestroySlab(a).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(device->HostImage(a).status().code(), StatusCode::kInvalidArgument);
}

TEST(SimulatedDeviceTest, ASlabInUseIsNotDestroyed) {
  auto device = MakeDevice();
  const SlabId a = MakeSlab(*device, 4096);
  const SlabId b = MakeSlab(*device, 4096);
  ASSERT_TRUE(device->StartCopy({a, 0, 4096}, {b, 0, 4096}).ok());
  EXPECT_EQ(device->DestroySlab(a).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(device->DestroySlab(b).code(), StatusCode::kFailedPrecondition);
  const KernelArgument arguments[] = {AddressArgument(b),
                                      AddressArgument(b, 64),
                                      ScalarArgument(64), ScalarArgument(1)};
  ASSERT_TRUE(device->StartKernel(0, arguments).ok());
  Next(*device);
  EXPECT_TRUE(device->DestroySlab(a).ok());
  EXPECT_EQ(device->DestroySlab(b).code(), StatusCode::kFailedPrecondition);
  Next(*device);
  EXPECT_TRUE(device->DestroySlab(b).ok());
}

// ---- Errors of a call ----

TEST(SimulatedDeviceTest, BadRangesAreNamed) {
  auto device = MakeDevice();
  const SlabId slab = MakeSlab(*device, 4096);
  struct {
    SlabRange range;
    StatusCode code;
  } const bad[] = {
      {{SlabId(99), 0, 64}, StatusCode::kInvalidArgument},
      {{slab, 0, 0}, StatusCode::kInvalidArgument},
      {{slab, 0, 63}, StatusCode::kInvalidArgument},
      {{slab, 32, 64}, StatusCode::kInvalidArgument},
      {{slab, 4096, 64}, StatusCode::kOutOfRange},
      {{slab, 64, 4096}, StatusCode::kOutOfRange},
      {{slab, 64, ~uint64_t{63}}, StatusCode::kOutOfRange},
      {{slab, ~uint64_t{63}, 64}, StatusCode::kOutOfRange},
  };
  const SlabId other = MakeSlab(*device, 8192);
  for (const auto& each : bad) {
    const SlabRange good{other, 0, each.range.bytes};
    EXPECT_EQ(device->StartUpload(each.range, 0).status().code(), each.code);
    EXPECT_EQ(device->StartDownload(each.range, 0).status().code(), each.code);
    EXPECT_EQ(device->StartCopy(each.range, good).status().code(), each.code);
  }
  EXPECT_EQ(device->StartCopy({other, 0, 64}, {slab, 4096, 64}).status().code(),
            StatusCode::kOutOfRange);
  EXPECT_EQ(device->StartUpload({slab, 0, 64}, 2).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(device->StartDownload({slab, 0, 64}, 2).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(device->StartCopy({slab, 0, 128}, {other, 0, 64}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(device->StartCopy({slab, 0, 128}, {slab, 64, 128}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(device->pending_operations(), 0u);
  EXPECT_TRUE(device->StartCopy({slab, 0, 128}, {slab, 128, 128}).ok());
}

TEST(SimulatedDeviceTest, BadSlabsAreNamed) {
  auto device = MakeDevice();
  const auto code = [&](uint32_t bank, uint64_t bytes) {
    return device->CreateSlab(BankId(bank), bytes, SlabKind::kHostVisible)
        .status()
        .code();
  };
  EXPECT_EQ(code(2, 64), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kNoBank.value(), 64), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, 100), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, (uint64_t{1} << 26) + 64), StatusCode::kResourceExhausted);
  EXPECT_EQ(code(0, ~uint64_t{63}), StatusCode::kResourceExhausted);
}

TEST(SimulatedDeviceTest, BadLaunchesAreNamed) {
  auto device = MakeDevice();
  const SlabId near = MakeSlab(*device, 4096);
  const SlabId far = MakeSlab(*device, 4096, 1);
  const auto code = [&](uint32_t unit,
                        const std::vector<KernelArgument>& arguments) {
    return device->StartKernel(unit, arguments).status().code();
  };
  const KernelArgument in = AddressArgument(near);
  const KernelArgument out = AddressArgument(near, 64);
  const KernelArgument one = ScalarArgument(1);
  EXPECT_EQ(code(2, {in, out, one, one}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, {in, out, one}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, {in, out, one, one, one}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, {in, one, one, one}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, {in, out, in, one}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, {AddressArgument(SlabId(99)), out, one, one}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, {AddressArgument(near, 8), out, one, one}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(0, {AddressArgument(near, 4096), out, one, one}),
            StatusCode::kOutOfRange);
  const auto wrong_bank = device->StartKernel(
      0, std::vector<KernelArgument>{in, AddressArgument(far), one, one});
  EXPECT_EQ(wrong_bank.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(wrong_bank.status().message(), "add_1.out"))
      << wrong_bank.status();
  EXPECT_EQ(device->pending_operations(), 0u);
  EXPECT_EQ(code(1, {AddressArgument(far), AddressArgument(far), one, one}),
            StatusCode::kOk);
}

// ---- Order and time ----

TEST(SimulatedDeviceTest, TimesAreThoseOfTheModel) {
  auto device = MakeDevice();
  const SlabId slab = MakeSlab(*device, 64000);
  EXPECT_EQ(device->Now(), At(0));
  device->HostWorks(absl::Microseconds(7));
  const OpId a = device->StartUpload({slab, 0, 64000}, 1).value();
  const OpId b = device->StartDownload({slab, 0, 32000}, 0).value();
  const OpId c = device->StartUpload({slab, 0, 3200}, 1).value();
  EXPECT_EQ(device->State(a), OpState::kPending);
  const Completion first = Next(*device);
  EXPECT_EQ(first.op, b);
  EXPECT_EQ(first.started, At(7));
  EXPECT_EQ(first.finished, At(7 + 10 + 32));
  EXPECT_EQ(device->Now(), first.finished);
  const Completion second = Next(*device);
  EXPECT_EQ(second.op, a);
  EXPECT_EQ(second.finished, At(7 + 10 + 64));
  const Completion third = Next(*device);
  EXPECT_EQ(third.op, c);
  EXPECT_EQ(third.started, second.finished);
  EXPECT_EQ(third.finished, second.finished + absl::Microseconds(13.2));
  EXPECT_EQ(device->State(a), OpState::kUnknown);
}

TEST(SimulatedDeviceTest, PollStopsAtTheDeadline) {
  auto device = MakeDevice();
  const SlabId slab = MakeSlab(*device, 64000);
  const OpId op = device->StartUpload({slab, 0, 64000}, 0).value();
  std::vector<Completion> completions(4);
  const auto poll = [&](absl::Time deadline) {
    return device->Poll(deadline, absl::MakeSpan(completions)).value();
  };
  EXPECT_EQ(poll(At(73.5)), 0u);
  EXPECT_EQ(device->Now(), At(73.5));
  EXPECT_EQ(poll(At(20)), 0u);  // has passed
  EXPECT_EQ(device->Now(), At(73.5));
  EXPECT_EQ(poll(At(74)), 1u);
  EXPECT_EQ(completions[0].op, op);
  EXPECT_EQ(device->Now(), At(74));
  EXPECT_EQ(poll(At(100)), 0u);
  EXPECT_EQ(device->Now(), At(100));
}

TEST(SimulatedDeviceTest, PollReportsInTheOrderOfFinishingAndEachOnce) {
  auto device = MakeDevice();
  const SlabId slab = MakeSlab(*device, 64000);
  std::vector<OpId> ops;
  for (uint64_t bytes : {6400, 640, 64}) {
    ops.push_back(device->StartUpload({slab, 0, bytes}, 0).value());
    ops.push_back(device->StartDownload({slab, 0, bytes}, 1).value());
  }
  device->HostWorks(absl::Milliseconds(1));
  for (OpId op : ops) EXPECT_EQ(device->State(op), OpState::kFinished);
  std::vector<Completion> completions(4);
  ASSERT_EQ(
      device->Poll(absl::InfinitePast(), absl::MakeSpan(completions)).value(),
      4u);
  std::vector<OpId> seen;
  for (const Completion& each : completions) seen.push_back(each.op);
  ASSERT_EQ(
      device->Poll(absl::InfiniteFuture(), absl::MakeSpan(completions)).value(),
      2u);
  seen.push_back(completions[0].op);
  seen.push_back(completions[1].op);
  // Both directions work off equal queues: in step.
  EXPECT_EQ(seen, ops);
  EXPECT_EQ(device->Now(), At(1000));
}

TEST(SimulatedDeviceTest, WhatFinishesTogetherIsReportedTogether) {
  auto device = MakeDevice();
  const SlabId a = MakeSlab(*device, 4096);
  const SlabId b = MakeSlab(*device, 4096, 1);
  const OpId up = device->StartUpload({a, 0, 640}, 0).value();
  const OpId down = device->StartDownload({b, 0, 640}, 0).value();
  std::vector<Completion> completions(4);
  ASSERT_EQ(
      device->Poll(absl::InfiniteFuture(), absl::MakeSpan(completions)).value(),
      2u);
  EXPECT_EQ(completions[0].op, up);
  EXPECT_EQ(completions[1].op, down);
  EXPECT_EQ(completions[0].finished, completions[1].finished);
}

TEST(SimulatedDeviceTest, AWaitThatNothingEndsIsAnError) {
  auto device = MakeDevice("upload:hang@1");
  Completion completion;
  const auto poll = [&] {
    return device->Poll(absl::InfiniteFuture(), absl::MakeSpan(&completion, 1));
  };
  EXPECT_EQ(poll().status().code(), StatusCode::kFailedPrecondition);
  const SlabId slab = MakeSlab(*device, 64);
  ASSERT_TRUE(device->StartUpload({slab, 0, 64}, 0).ok());
  EXPECT_EQ(poll().status().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(device->StartUpload({slab, 0, 64}, 1).ok());
  EXPECT_EQ(poll().value(), 1u);
}

// ---- Kernels ----

TEST(SimulatedDeviceTest, KernelsWorkOnDeviceMemory) {
  auto device = MakeDevice();
  const SlabId slab = MakeSlab(*device, 8192, 1);
  const auto content = Content(8192, 3);
  Set(device->DeviceMemory({slab, 0, 8192}).value(), content);
  const KernelArgument arguments[] = {AddressArgument(slab, 64),
                                      AddressArgument(slab, 4096),
                                      ScalarArgument(1000), ScalarArgument(5)};
  const OpId op = device->StartKernel(1, arguments).value();
  const Completion completion = Next(*device);
  EXPECT_EQ(completion.op, op);
  EXPECT_TRUE(completion.status.ok());
  EXPECT_GE(completion.finished - completion.started, absl::Microseconds(50));
  EXPECT_LE(completion.finished - completion.started, absl::Microseconds(51));
  auto expected = content;
  for (size_t i = 0; i < 1000; ++i) {
    expected[4096 + i] =
        static_cast<std::byte>(std::to_integer<int>(content[64 + i]) + 5);
  }
  EXPECT_EQ(Memory(*device, {slab, 0, 8192}), expected);
}

TEST(SimulatedDeviceTest, AKernelGetsNoMemoryBehindItsSlab) {
  auto device = MakeDevice();
  const SlabId slab = MakeSlab(*device, 4096);
  MakeSlab(*device, 4096);
  const KernelArgument arguments[] = {AddressArgument(slab),
                                      AddressArgument(slab),
                                      ScalarArgument(4097), ScalarArgument(1)};
  ASSERT_TRUE(device->StartKernel(0, arguments).ok());
  const Completion completion = Next(*device);
  EXPECT_EQ(completion.status.code(), StatusCode::kInternal);
  EXPECT_TRUE(absl::StrContains(completion.status.message(), "too short"))
      << completion.status;
}

// ---- What a card does to those who do not wait ----

TEST(SimulatedDeviceTest, AnImageThatChangesEarlyIsWhatArrives) {
  SimulatedDeviceOptions options;
  options.detect_misuse = true;
  auto device = MakeDevice("", options);
  const SlabId slab = MakeSlab(*device, 4096);
  const auto table_1 = Content(4096, 1);
  const auto table_2 = Content(4096, 2);
  Set(device->HostImage(slab).value(), table_1);
  ASSERT_TRUE(device->StartUpload({slab, 0, 4096}, 0).ok());
  Set(device->HostImage(slab).value(), table_2);
  EXPECT_TRUE(device->misuses().empty());
  EXPECT_TRUE(Next(*device).status.ok());
  EXPECT_EQ(Memory(*device, {slab, 0, 4096}), table_2);
  ASSERT_EQ(device->misuses().size(), 1u);
  EXPECT_TRUE(absl::StrContains(device->misuses()[0], "changed during upload"))
      << device->misuses()[0];
}

TEST(SimulatedDeviceTest, AnImageThatIsReadEarlyIsPoison) {
  SimulatedDeviceOptions options;
  options.detect_misuse = true;
  auto device = MakeDevice("", options);
  const SlabId slab = MakeSlab(*device, 4096);
  const auto content = Content(4096, 1);
  Set(device->DeviceMemory({slab, 0, 4096}).value(), content);
  Set(device->HostImage(slab).value(), content);
  ASSERT_TRUE(device->StartDownload({slab, 64, 128}, 0).ok());
  auto during = content;
  std::fill_n(during.begin() + 64, 128, BankMemory::kPoison);
  EXPECT_EQ(Image(*device, slab), during);
  device->HostWorks(absl::Microseconds(10));  // nothing yet
  EXPECT_EQ(Image(*device, slab), during);
  Next(*device);
  EXPECT_EQ(Image(*device, slab), content);
  EXPECT_TRUE(device->misuses().empty());
  ASSERT_TRUE(device->StartDownload({slab, 64, 128}, 0).ok());
  device->HostImage(slab).value()[100] = std::byte{0};
  Next(*device);
  EXPECT_EQ(device->misuses().size(), 1u);
}

TEST(SimulatedDeviceTest, AnUploadHitsWhoeverGotItsPageMeanwhile) {
  auto device = MakeDevice();
  const SlabId pool = MakeSlab(*device, 8192);
  Set(device->HostImage(pool).value(), Content(8192, 1));
  ASSERT_TRUE(device->StartUpload({pool, 0, 4096}, 0).ok());
  // The page is given to another, who writes it without waiting.
  const auto other = Content(4096, 7);
  Set(device->DeviceMemory({pool, 0, 4096}).value(), other);
  Next(*device);
  EXPECT_NE(Memory(*device, {pool, 0, 4096}), other);
}

TEST(SimulatedDeviceTest, ADownloadAndACopyReadAtTheirEnd) {
  auto device = MakeDevice();
  const SlabId a = MakeSlab(*device, 4096);
  const SlabId b = MakeSlab(*device, 4096);
  ASSERT_TRUE(device->StartDownload({a, 0, 4096}, 0).ok());
  ASSERT_TRUE(device->StartCopy({b, 0, 4096}, {a, 0, 4096}).ok());
  const auto late = Content(4096, 5);
  Set(device->DeviceMemory({a, 0, 4096}).value(), late);
  Next(*device);
  Next(*device);
  EXPECT_EQ(Image(*device, a), late);
  EXPECT_EQ(Memory(*device, {b, 0, 4096}), late);
}

TEST(SimulatedDeviceTest, FindsOperationsThatNothingOrders) {
  SimulatedDeviceOptions options;
  options.detect_misuse = true;
  const auto misuses = [&](auto start) {
    auto device = MakeDevice("", options);
    const SlabId a = MakeSlab(*device, 8192);
    const SlabId b = MakeSlab(*device, 8192);
    start(*device, a, b);
    return device->misuses().size();
  };
  // Two channels write the same bytes.
  EXPECT_EQ(misuses([](SimulatedDevice& device, SlabId a, SlabId) {
              ASSERT_TRUE(device.StartUpload({a, 0, 4096}, 0).ok());
              ASSERT_TRUE(device.StartUpload({a, 4032, 64}, 1).ok());
            }),
            1u);
  // One channel, or bytes beside each other, or two readers.
  EXPECT_EQ(misuses([](SimulatedDevice& device, SlabId a, SlabId b) {
              ASSERT_TRUE(device.StartUpload({a, 0, 4096}, 0).ok());
              ASSERT_TRUE(device.StartUpload({a, 0, 4096}, 0).ok());
              ASSERT_TRUE(device.StartUpload({a, 4096, 4096}, 1).ok());
              ASSERT_TRUE(device.StartDownload({b, 0, 64}, 1).ok());
              ASSERT_TRUE(device.StartCopy({b, 4096, 64}, {b, 0, 64}).ok());
            }),
            0u);
  // Read after write: in memory, and in the image besides.
  EXPECT_EQ(misuses([](SimulatedDevice& device, SlabId a, SlabId) {
              ASSERT_TRUE(device.StartUpload({a, 0, 4096}, 0).ok());
              ASSERT_TRUE(device.StartDownload({a, 0, 4096}, 0).ok());
            }),
            2u);
  EXPECT_EQ(misuses([](SimulatedDevice& device, SlabId a, SlabId b) {
              ASSERT_TRUE(device.StartUpload({a, 0, 4096}, 0).ok());
              ASSERT_TRUE(device.StartCopy({b, 0, 64}, {a, 64, 64}).ok());
            }),
            1u);
  // Write after read.
  EXPECT_EQ(misuses([](SimulatedDevice& device, SlabId a, SlabId b) {
              ASSERT_TRUE(device.StartCopy({b, 0, 64}, {a, 64, 64}).ok());
              ASSERT_TRUE(device.StartUpload({a, 0, 4096}, 0).ok());
            }),
            1u);
  // Two downloads into one image.
  EXPECT_EQ(misuses([](SimulatedDevice& device, SlabId a, SlabId) {
              ASSERT_TRUE(device.StartDownload({a, 0, 4096}, 0).ok());
              ASSERT_TRUE(device.StartDownload({a, 0, 64}, 1).ok());
            }),
            1u);
  // A list that a kernel still reads, results it still writes, and the same
  // for two kernels; bytes beside them, and what both read.
  const auto add = [](SimulatedDevice& device, uint32_t unit, SlabId in,
                      SlabId out, uint64_t count) {
    const KernelArgument arguments[] = {
        AddressArgument(in), AddressArgument(out), ScalarArgument(count),
        ScalarArgument(1)};
    ASSERT_TRUE(device.StartKernel(unit, arguments).ok());
  };
  EXPECT_EQ(misuses([&](SimulatedDevice& device, SlabId a, SlabId b) {
              add(device, 0, a, b, 64);
              ASSERT_TRUE(device.StartUpload({a, 0, 64}, 0).ok());
            }),
            1u);
  EXPECT_EQ(misuses([&](SimulatedDevice& device, SlabId a, SlabId b) {
              add(device, 0, a, b, 64);
              ASSERT_TRUE(device.StartDownload({b, 0, 64}, 0).ok());
            }),
            1u);
  EXPECT_EQ(misuses([&](SimulatedDevice& device, SlabId a, SlabId b) {
              ASSERT_TRUE(device.StartUpload({b, 0, 64}, 0).ok());
              add(device, 0, a, b, 64);
            }),
            1u);
  EXPECT_EQ(misuses([&](SimulatedDevice& device, SlabId a, SlabId b) {
              add(device, 0, a, b, 64);
              add(device, 0, b, a, 64);  // one unit: in order
              ASSERT_TRUE(device.StartUpload({a, 64, 64}, 0).ok());
              ASSERT_TRUE(device.StartDownload({b, 64, 64}, 0).ok());
            }),
            0u);
  // Those that have ended do not count.
  EXPECT_EQ(misuses([](SimulatedDevice& device, SlabId a, SlabId) {
              ASSERT_TRUE(device.StartUpload({a, 0, 4096}, 0).ok());
              device.HostWorks(absl::Seconds(1));
              ASSERT_TRUE(device.StartDownload({a, 0, 4096}, 0).ok());
            }),
            0u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// paged_decode on an emulated card, through the unmodified XRT, with the
// kernel as C++ and behind the Verilated kv_gather.

#include <cstring>
#include <functional>
#include <limits>

#include "fpga_dma/emulated_card/card_options.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"
#include "tests/fpga_dma/xrt/emulated_card_fixture.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr const char* kEngine = "PAGEDKV_CARD_ENGINE";

absl::StatusOr<CardOptions> OptionsWith(const char* engine) {
  return ReadCardOptions(
      [engine](const char* name) -> std::optional<std::string> {
        if (std::strcmp(name, kEngine) == 0) return engine;
        return std::nullopt;
      });
}

class XrtRtlEngineTest : public EmulatedCardTest {
 protected:
  void SetUp() override {
    const auto options = OptionsWith("rtl");
    if (options.ok()) return;
    ASSERT_EQ(options.status().code(), absl::StatusCode::kUnimplemented);
    GTEST_SKIP() << options.status().message();
  }

  // Runs the launch with a clean status; its memory comes back into `launch`.
  // How long the card took.
  absl::Duration Run(DecodeCase* launch) {
    std::memset(launch->status.data(), 0, launch->status.size());
    return RunOn(launch);
  }
  // With the status that it has.
  absl::Duration RunOn(DecodeCase* launch) {
    CardMemory* const memories[] = {&launch->kv,    &launch->work,
                                    &launch->table, &launch->queries,
                                    &launch->out,   &launch->status};
    std::vector<SlabId> slabs;
    for (CardMemory* memory : memories) {
      slabs.push_back(MakeSlab(
          device_->info().compute_units[Unit()].argument_banks.at(slabs.size()),
          memory->size(), SlabKind::kHostVisible));
      std::memcpy(Image(slabs.back()).data(), memory->data(), memory->size());
      EXPECT_TRUE(
          Finish(device_->StartUpload({slabs.back(), 0, memory->size()}, 0))
              .status.ok());
    }
    const Completion run =
        Finish(device_->StartKernel(Unit(), Arguments(launch, slabs)));
    EXPECT_TRUE(run.status.ok()) << run.status;
    for (const size_t i : {4, 5}) {  // out, status
      EXPECT_TRUE(
          Finish(device_->StartDownload({slabs[i], 0, memories[i]->size()}, 0))
              .status.ok());
      std::memcpy(memories[i]->data(), Image(slabs[i]).data(),
                  memories[i]->size());
    }
    return run.finished - run.started;
  }

  // The first paged_decode unit.
  uint32_t Unit() const {
    const auto& units = device_->info().compute_units;
    uint32_t unit = 0;
    while (units[unit].kernel != "paged_decode") ++unit;
    return unit;
  }
  static std::vector<KernelArgument> Arguments(
      DecodeCase* launch, const std::vector<SlabId>& slabs) {
    std::vector<KernelArgument> arguments;
    for (const SlabId slab : slabs) arguments.push_back(AddressArgument(slab));
    const std::vector<BoundArgument> bound = launch->Arguments();
    for (size_t i = slabs.size(); i < bound.size(); ++i) {
      arguments.push_back(
          ScalarArgument(static_cast<uint32_t>(bound[i].value)));
    }
    return arguments;
  }
};

TEST_F(XrtRtlEngineTest, GivesTheSameBitsAndItsOwnTimes) {
  std::mt19937_64 random(TestSeed(71));
  for (const char* name : {"u250", "u280"}) {
    for (const KvElement element : {KvElement::kBf16, KvElement::kInt8}) {
      DecodeShape shape;  // the heads of Qwen2.5-7B
      shape.element = element;
      shape.num_pages = shape.table_entries = 256;
      shape.num_items = 2;
      DecodeCase launch(shape);
      launch.Fill(random);
      for (uint32_t i = 0; i < shape.num_items; ++i) {
        DecodeItem item = launch.NewItem(i);
        item.slice_beat = i * shape.slice_beats();
        item.num_tokens = 4000 + i;
        launch.SetItem(i, item);
      }
      DecodeCase expected = launch, on_model = launch, on_rtl = launch;
      ASSERT_TRUE(expected.Run(kSequentialKernels).ok());
      ASSERT_EQ(expected.Status().code, KernelError::kOk);

      ASSERT_NO_FATAL_FAILURE(Open(name, {{kEngine, "model"}}));
      const absl::Duration modelled = Run(&on_model);
      EXPECT_TRUE(on_model.out == expected.out);
      ASSERT_NO_FATAL_FAILURE(Open(name, {{kEngine, "rtl"}}));
      const absl::Duration measured = Run(&on_rtl);
      EXPECT_TRUE(on_rtl.out == expected.out);
      EXPECT_TRUE(on_rtl.status == expected.status);

      const double ratio = absl::FDivDuration(measured - board_.launch,
                                              modelled - board_.launch);
      std::printf("%s, %s: %.1f us, modelled %.1f us\n", name,
                  shape.int8() ? "int8" : "bf16",
                  absl::ToDoubleMicroseconds(measured),
                  absl::ToDoubleMicroseconds(modelled));
      EXPECT_NEAR(ratio, 1, 0.1);
      // Of bf16 the port of the U250 sets the time, and the RTL's is its own;
      // elsewhere arithmetic does.
      if (board_.name == "u250" && !shape.int8()) {
        EXPECT_NE(measured, modelled);
      }
    }
  }
}

// Two items of 40 tokens each.
DecodeCase GoodLaunch(std::mt19937_64& random) {
  DecodeShape shape;
  shape.table_entries = 16;  // whole beats: slabs are
  shape.num_items = 2;
  DecodeCase launch(shape);
  launch.Fill(random);
  for (uint32_t i = 0; i < shape.num_items; ++i) {
    DecodeItem item = launch.NewItem(i);
    item.table_begin = 4 * i;
    item.num_tokens = 40;
    launch.SetItem(i, item);
  }
  return launch;
}

struct BadInput {
  const char* name;
  KernelError code;
  uint64_t detail;
  // Spoils the second item, or the whole list.
  std::function<void(DecodeCase*, DecodeItem*)> spoil;
};

std::vector<BadInput> BadInputs() {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  const auto page_is = [](uint32_t page) {
    return [page](DecodeCase* launch, DecodeItem* item) {
      launch->table.Set<uint32_t>(size_t{item->table_begin} + 2, page);
    };
  };
  return {
      {"no tokens", KernelError::kZeroLength, 0,
       [](DecodeCase*, DecodeItem* item) { item->num_tokens = 0; }},
      {"a page beyond the table", KernelError::kTableRange, 16,
       [](DecodeCase*, DecodeItem* item) { item->table_begin = 14; }},
      {"most tokens", KernelError::kTableRange, 4 + (kMax - 1) / 16,
       [](DecodeCase*, DecodeItem* item) { item->num_tokens = kMax; }},
      {"page index at the limit", KernelError::kPageIndex, 8, page_is(8)},
      {"page index above the limit", KernelError::kPageIndex, 9, page_is(9)},
      {"largest page index", KernelError::kPageIndex, kMax, page_is(kMax)},
      {"more items than the list holds", KernelError::kTooManyItems, 3,
       [](DecodeCase* launch, DecodeItem*) {
         WorkListHeader header = launch->work.Get<WorkListHeader>(0);
         header.num_items = 3;
         launch->work.Set(0, header);
       }},
  };
}

TEST_F(XrtRtlEngineTest, BadInputIsAStickyCodeInTheStatusWord) {
  std::mt19937_64 random(TestSeed(72));
  const DecodeCase good = GoodLaunch(random);
  DecodeCase expected = good;
  ASSERT_TRUE(expected.Run(kSequentialKernels).ok());
  for (const char* engine : {"model", "rtl"}) {
    ASSERT_NO_FATAL_FAILURE(Open("u250", {{kEngine, engine}}));
    for (const BadInput& bad : BadInputs()) {
      SCOPED_TRACE(testing::Message() << engine << ": " << bad.name);
      DecodeCase launch = good;
      DecodeItem item = launch.Item(1);
      bad.spoil(&launch, &item);
      launch.SetItem(1, item);
      Run(&launch);
      EXPECT_EQ(launch.Status().code, bad.code);
      EXPECT_EQ(launch.Status().detail, bad.detail);
      EXPECT_EQ(ToStatus("paged_decode", launch.Status()).code(),
                absl::StatusCode::kInvalidArgument);

      // It stays: the next launch is refused, and writes nothing.
      DecodeCase refused = good;
      refused.status.Set(0, launch.Status());
      RunOn(&refused);
      EXPECT_EQ(refused.Status().code, bad.code);
      EXPECT_EQ(refused.Status().launches, 2u);
      EXPECT_TRUE(refused.out == good.out);
    }
    DecodeCase after = good;
    Run(&after);
    EXPECT_TRUE(after.out == expected.out);
  }
}

TEST_F(XrtRtlEngineTest, AMisalignedBaseIsAnErrorOfTheRun) {
  std::mt19937_64 random(TestSeed(73));
  DecodeCase launch = GoodLaunch(random);
  for (const char* engine : {"model", "rtl"}) {
    ASSERT_NO_FATAL_FAILURE(Open("u250", {{kEngine, engine}}));
    std::vector<SlabId> slabs;
    for (const BankId bank :
         device_->info().compute_units[Unit()].argument_banks) {
      if (slabs.size() == 6) break;  // scalars follow
      slabs.push_back(MakeSlab(bank, 1 << 20, SlabKind::kHostVisible));
    }
    EXPECT_TRUE(Finish(device_->StartKernel(Unit(), Arguments(&launch, slabs)))
                    .status.ok());
    for (size_t i = 0; i < slabs.size(); ++i) {
      SCOPED_TRACE(testing::Message() << engine << ": argument " << i);
      auto arguments = Arguments(&launch, slabs);
      arguments[i] = AddressArgument(slabs[i], 4);
      const auto run = device_->StartKernel(Unit(), arguments);
      EXPECT_FALSE((run.ok() ? Finish(run).status : run.status()).ok());
    }
  }
}

TEST(CardEngineTest, OnlyThoseThatThereAre) {
  const auto model = OptionsWith("model");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->engine, CardEngine::kModel);
  const auto other = OptionsWith("vhdl");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(other.status().message(),
            "PAGEDKV_CARD_ENGINE=vhdl, want model or rtl");
}

}  // namespace
}  // namespace paged_kv::fpga_dma

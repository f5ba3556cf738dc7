// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// paged_decode on an emulated card, through the unmodified XRT, with the
// kernel as C++ and behind the Verilated kv_gather.

#include <cstring>

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

  // Runs the launch on the first paged_decode unit; its memory comes back into
  // `launch`. How long the card took.
  absl::Duration Run(DecodeCase* launch) {
    std::memset(launch->status.data(), 0, launch->status.size());
    uint32_t unit = 0;
    const auto& units = device_->info().compute_units;
    while (units[unit].kernel != "paged_decode") ++unit;
    CardMemory* const memories[] = {&launch->kv,    &launch->work,
                                    &launch->table, &launch->queries,
                                    &launch->out,   &launch->status};
    std::vector<KernelArgument> arguments;
    std::vector<SlabId> slabs;
    for (CardMemory* memory : memories) {
      const SlabId slab = MakeSlab(units[unit].argument_banks[slabs.size()],
                                   memory->size(), SlabKind::kHostVisible);
      std::memcpy(Image(slab).data(), memory->data(), memory->size());
      EXPECT_TRUE(Finish(device_->StartUpload({slab, 0, memory->size()}, 0))
                      .status.ok());
      arguments.push_back(AddressArgument(slab));
      slabs.push_back(slab);
    }
    const std::vector<BoundArgument> bound = launch->Arguments();
    for (size_t i = slabs.size(); i < bound.size(); ++i) {
      arguments.push_back(
          ScalarArgument(static_cast<uint32_t>(bound[i].value)));
    }
    const Completion run = Finish(device_->StartKernel(unit, arguments));
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

TEST_F(XrtRtlEngineTest, AnErrorIsInTheStatusWord) {
  DecodeShape shape;
  shape.table_entries = 16;  // whole beats: slabs are
  DecodeCase launch(shape);
  std::mt19937_64 random(TestSeed(72));
  launch.Fill(random);
  DecodeItem item = launch.NewItem(0);
  item.num_tokens = 40;
  launch.SetItem(0, item);
  launch.table.Set<uint32_t>(size_t{item.table_begin} + 2, shape.num_pages);
  ASSERT_NO_FATAL_FAILURE(Open("u250", {{kEngine, "rtl"}}));
  Run(&launch);
  EXPECT_EQ(launch.Status().code, KernelError::kPageIndex);
  EXPECT_EQ(launch.Status().detail, shape.num_pages);
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

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/kernels/kernel_registry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fpga_dma/kernels/kernel_arguments.h"
#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/decode_model.h"

namespace paged_kv::fpga_dma {
namespace {

DecodeCase TwoItems(uint32_t tokens, KvElement element = KvElement::kBf16) {
  DecodeShape shape;
  shape.element = element;
  shape.num_items = 2;
  DecodeCase launch(shape);
  std::mt19937_64 random(1);
  launch.Fill(random);
  for (uint32_t i = 0; i < 2; ++i) {
    DecodeItem item = launch.NewItem(i);
    item.num_tokens = tokens;
    launch.SetItem(i, item);
  }
  return launch;
}

TEST(KernelRegistryTest, EveryKernelIsFoundByItsName) {
  EXPECT_EQ(Kernels().size(), 4u);
  for (const KernelSpec& kernel : Kernels()) {
    EXPECT_EQ(FindKernel(kernel.name), &kernel);
    for (const KernelArgumentSpec& argument : kernel.arguments) {
      EXPECT_EQ(argument.width_bytes, argument.is_address ? 8u : 4u);
      EXPECT_EQ(argument.is_address, argument.read || argument.written);
      if (!argument.is_address) continue;
      EXPECT_EQ(argument.alignment_bytes % kBeatBytes, 0u);
      EXPECT_GT(argument.unit_bytes, 0u);
      for (const uint32_t index : {argument.count, argument.stride}) {
        if (index == KernelArgumentSpec::kNone) continue;
        ASSERT_LT(index, kernel.arguments.size());
        EXPECT_FALSE(kernel.arguments[index].is_address);
      }
    }
  }
  EXPECT_EQ(FindKernel("paged_prefill"), nullptr);
}

// A byte less than the scalars say of any address is refused, by the launch and
// by the forecast, and nothing is written.
TEST(KernelRegistryTest, MemoryThatIsTooSmallIsRefused) {
  const KernelSpec& kernel = *FindKernel("paged_decode");
  DecodeCase launch = TwoItems(40);
  const CardMemory before = launch.out;
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    if (!kernel.arguments[i].is_address) continue;
    SCOPED_TRACE(std::string(kernel.arguments[i].name));
    std::vector<BoundArgument> arguments = launch.Arguments();
    arguments[i].memory.remove_suffix(1);
    EXPECT_EQ(kernel.run(arguments).code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(kernel.work(arguments).status().code(),
              absl::StatusCode::kOutOfRange);
  }
  EXPECT_TRUE(launch.out == before);
  EXPECT_EQ(launch.Status().launches, 0u);
}

TEST(KernelRegistryTest, MisalignedAddressesAreRefused) {
  const KernelSpec& kernel = *FindKernel("paged_decode");
  DecodeCase launch = TwoItems(40);
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    if (!kernel.arguments[i].is_address) continue;
    SCOPED_TRACE(std::string(kernel.arguments[i].name));
    std::vector<BoundArgument> arguments = launch.Arguments();
    arguments[i].device_address = kernel.arguments[i].alignment_bytes / 2;
    EXPECT_EQ(kernel.run(arguments).code(), absl::StatusCode::kInvalidArgument);
    arguments[i].device_address = kernel.arguments[i].alignment_bytes;
    EXPECT_TRUE(kernel.work(arguments).ok());
  }
}

TEST(KernelRegistryTest, CountsThatOverflowAreRefused) {
  const KernelSpec& kernel = *FindKernel("paged_decode");
  DecodeCase launch = TwoItems(40);
  std::vector<BoundArgument> arguments = launch.Arguments();
  arguments[static_cast<size_t>(PagedDecodeArgument::kNumPages)].value =
      0xFFFFFFFF;
  arguments[static_cast<size_t>(PagedDecodeArgument::kPageStrideBeats)].value =
      0xFFFFFFFF;
  EXPECT_EQ(kernel.run(arguments).code(), absl::StatusCode::kOutOfRange);
  arguments.pop_back();
  EXPECT_EQ(kernel.run(arguments).code(), absl::StatusCode::kInvalidArgument);
}

TEST(KernelRegistryTest, WorkOfADecode) {
  DecodeCase launch = TwoItems(40);
  const auto work = FindKernel("paged_decode")->work(launch.Arguments());
  ASSERT_TRUE(work.ok());
  using A = PagedDecodeArgument;
  const auto at = [&](A a) { return work->arguments[static_cast<size_t>(a)]; };
  // 3 tiles of K and of V of 4 KiB, of each item.
  EXPECT_EQ(at(A::kKv).bytes_read, 2u * 3 * 2 * 4096);
  EXPECT_EQ(at(A::kKv).burst_bytes, 4096u);
  EXPECT_EQ(at(A::kKv).bytes_written, 0u);
  EXPECT_EQ(at(A::kWork).bytes_read, 3u * 64);
  EXPECT_EQ(at(A::kTable).bytes_read, 2u * 3 * 4);
  EXPECT_EQ(at(A::kQueries).bytes_read, 2u * 7 * 256);
  EXPECT_EQ(at(A::kOut).bytes_written, 2u * (7 * 512 + 64));
  EXPECT_EQ(at(A::kStatus).bytes_written, 64u);
  EXPECT_EQ(work->flops, 2u * 48 * 128 * 7 * 4);
  EXPECT_EQ(work->num_items, 2u);
}

// Half the bytes for as many operations, and a beat of scales for each tile.
TEST(KernelRegistryTest, WorkOfADecodeOfInt8) {
  DecodeCase launch = TwoItems(40, KvElement::kInt8);
  const auto work = FindKernel("paged_decode")->work(launch.Arguments());
  ASSERT_TRUE(work.ok());
  const ArgumentTraffic kv =
      work->arguments[static_cast<size_t>(PagedDecodeArgument::kKv)];
  EXPECT_EQ(kv.bytes_read, 2u * 3 * 2 * (2048 + 64));
  // Runs of 32 beats and of one, by turns.
  EXPECT_EQ(kv.burst_bytes, 16u * 64);
  EXPECT_EQ(work->flops, 2u * 48 * 128 * 7 * 4);
}

struct Appended {
  KvElement element;
  uint64_t rows_read, kv_read, kv_written;
};
// 20 tokens from slot 5 on of head_dim 32, in 3 slices: two tiles.
TEST(KernelRegistryTest, WorkOfAnAppend) {
  for (const Appended& want : {
           Appended{KvElement::kBf16, 3 * 20 * 2, 3 * 16, 3 * (2 * 16 + 20)},
           // Of V the rows 4 and 5 share a beat.
           Appended{KvElement::kInt8, 3 * 20 * 3, 3 * (8 + 2 + 1),
                    3 * (2 * (8 + 2) + 11)},
       }) {
    CardMemory kv(3 * SliceBeats(32, 32) * size_t{kBeatBytes});
    CardMemory work(2 * kBeatBytes);
    CardMemory rows(200 * kBeatBytes);
    CardMemory status(kBeatBytes);
    status.Set(0, KernelStatus{});
    WorkListHeader header = {};
    header.magic = kWorkListMagic;
    header.kernel = KernelId::kKvAppend;
    header.num_items = 1;
    work.Set(0, header);
    AppendItem item = {};
    item.first_slot = 5;
    item.num_tokens = 20;
    item.num_slices = 3;
    item.slice_stride_beats = SliceBeats(32, 32, want.element);
    work.Set(1, item);
    const auto found =
        FindKernel("kv_append")
            ->work({kv.Bind(), kv.Bind(), work.Bind(), rows.Bind(),
                    status.Bind(), BindScalar(1), BindScalar(200),
                    BindScalar(1), BindScalar(3 * SliceBeats(32, 32)),
                    BindScalar(static_cast<uint32_t>(want.element)),
                    BindScalar(32), BindScalar(32)});
    ASSERT_TRUE(found.ok()) << found.status();
    using A = KvAppendArgument;
    const auto at = [&](A a) {
      return found->arguments[static_cast<size_t>(a)];
    };
    EXPECT_EQ(at(A::kRows).bytes_read, want.rows_read * kBeatBytes);
    EXPECT_EQ(at(A::kKvIn).bytes_read, want.kv_read * kBeatBytes);
    EXPECT_EQ(at(A::kKvOut).bytes_written, want.kv_written * kBeatBytes);
  }
}

// A launch of many tokens is run in several parts, and looks like one.
TEST(KernelRegistryTest, LongLaunchesLookLikeOne) {
  DecodeShape shape;
  shape.head_dim = 8;
  shape.group_heads = 2;
  shape.block_tokens = 128;
  shape.num_items = 7;
  shape.table_entries = 64;
  DecodeCase launch(shape);
  std::mt19937_64 random(1);
  launch.Fill(random);
  for (uint32_t i = 0; i < shape.num_items; ++i) {
    DecodeItem item = launch.NewItem(i);
    item.num_tokens = 64 * 128 - i;
    launch.SetItem(i, item);
  }
  const KernelSpec& kernel = *FindKernel("paged_decode");
  ASSERT_TRUE(kernel.run(launch.Arguments()).ok());
  EXPECT_EQ(launch.Status().code, KernelError::kOk);
  EXPECT_EQ(launch.Status().items_done, 7u);
  EXPECT_EQ(launch.Status().launches, 1u);
  EXPECT_EQ(launch.Status().tag, 77u);
  EXPECT_TRUE(launch.out == ModelOutputs(launch));

  DecodeItem bad = launch.Item(5);
  bad.scale = INFINITY;
  launch.SetItem(5, bad);
  ASSERT_TRUE(kernel.run(launch.Arguments()).ok());
  EXPECT_EQ(launch.Status().code, KernelError::kBadScale);
  EXPECT_EQ(launch.Status().item, 5u);
  EXPECT_EQ(launch.Status().items_done, 5u);
  EXPECT_EQ(launch.Status().launches, 2u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

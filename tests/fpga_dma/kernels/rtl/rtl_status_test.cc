// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "fpga_dma/kernels/kernel_registry.h"
#include "tests/fpga_dma/kernels/rtl/gather_bench.h"

namespace paged_kv::fpga_dma {
namespace {

TEST(RtlStatusTest, RegistersSayWhatIsWrong) {
  GatherBench bench(1);
  GatherArguments arguments;
  arguments.num_entries = arguments.table_entries = 2;
  arguments.num_pages = 9;
  arguments.table = uint64_t{1} << 40;
  bench.memory.Write(arguments.table, {3, 9});
  bench.Prepare(arguments, PortBehaviour(), 0);
  ASSERT_TRUE(bench.Launch());
  const RtlStatus rtl = bench.ReadStatus();
  KernelStatus status = {};
  status.code = rtl.code;
  status.item = rtl.item;
  status.detail = rtl.detail;
  EXPECT_EQ(ToStatus("kv_gather", status).message(),
            "kv_gather item 1: beyond the pool: page index 9 (code 6)");
}

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The builds of the kernels that tests compare.

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_KERNEL_BUILDS_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_KERNEL_BUILDS_H_

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "fpga_dma/kernels/kernel_entry_points.h"
#include "fpga_dma/kernels/kernel_geometry.h"

extern "C" {
PagedDecodeFunction paged_decode_threaded;
KvAppendFunction kv_append_threaded;
KvCopyFunction kv_copy_threaded;
KvScatterFunction kv_scatter_threaded;
}

namespace paged_kv::fpga_dma {

// Stage after stage.
inline constexpr KernelEntryPoints kSequentialKernels = {
    paged_decode, kv_append, kv_copy, kv_scatter};
// A thread per stage; see stand_in/stage_threads.h.
inline constexpr KernelEntryPoints kThreadedKernels = {
    paged_decode_threaded, kv_append_threaded, kv_copy_threaded,
    kv_scatter_threaded};

// Tests of every build with every element: (threaded, element).
class KernelBuildsTest
    : public testing::TestWithParam<std::tuple<bool, KvElement>> {
 protected:
  static bool threaded() { return std::get<0>(GetParam()); }
  static KvElement element() { return std::get<1>(GetParam()); }
  static bool int8() { return element() == KvElement::kInt8; }
  static const KernelEntryPoints& build() {
    return threaded() ? kThreadedKernels : kSequentialKernels;
  }
};

inline std::string KernelBuildName(
    const testing::TestParamInfo<std::tuple<bool, KvElement>>& info) {
  const std::string build = std::get<0>(info.param) ? "Threaded" : "Sequential";
  return build +
         (std::get<1>(info.param) == KvElement::kInt8 ? "Int8" : "Bf16");
}

// Instantiates a suite that is derived from KernelBuildsTest.
#define PAGED_KV_ALL_KERNEL_BUILDS(suite)                                    \
  INSTANTIATE_TEST_SUITE_P(                                                  \
      Builds, suite,                                                         \
      testing::Combine(testing::Bool(),                                      \
                       testing::Values(KvElement::kBf16, KvElement::kInt8)), \
      KernelBuildName)

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_KERNEL_BUILDS_H_

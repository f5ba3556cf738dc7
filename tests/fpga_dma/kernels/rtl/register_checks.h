// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_REGISTER_CHECKS_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_REGISTER_CHECKS_H_

#include <cstdint>

#include "tests/fpga_dma/kernels/rtl/kernel_bench.h"

namespace paged_kv::fpga_dma {

// Random accesses of bytes and words, at all offsets and with slow responses,
// to an idle kernel with `arguments` words of them: each register keeps what
// was written to it and nothing else has an effect. Starts nothing.
void CheckRegisters(KernelBench* bench, uint32_t arguments, uint64_t seed);

// Two launches of a kernel whose arguments are refused, seen through control
// register and interrupt.
void CheckInterrupts(KernelBench* bench);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_REGISTER_CHECKS_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_MOVER_BENCH_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_MOVER_BENCH_H_

#include <memory>
#include <vector>

#include "Vkv_mover.h"
#include "tests/fpga_dma/kernels/rtl/kernel_bench.h"

namespace paged_kv::fpga_dma {

// Arguments of kv_mover, in its order.
struct MoverArguments {
  uint64_t work = 0;
  uint64_t source = 0;
  uint64_t target = 0;
  uint32_t num_items = 1;
  uint32_t max_items = 1;
  uint32_t source_pages = 1;
  uint32_t source_stride_beats = 64;
  uint32_t target_pages = 1;
  uint32_t target_stride_beats = 64;
  uint32_t burst_beats = 0;
  uint32_t max_outstanding = 0;
};

// Words of an item, in its order.
struct MoveItem {
  uint32_t source_page = 0;
  uint32_t target_page = 0;
  uint32_t source_beat = 0;
  uint32_t target_beat = 0;
  uint32_t num_beats = 1;
  uint32_t num_runs = 1;
  uint32_t source_run_stride_beats = 0;
  uint32_t target_run_stride_beats = 0;
};

// kv_mover with memory at its ports.
class MoverBench : public KernelBench {
 public:
  explicit MoverBench(uint64_t seed);
  ~MoverBench() override { WriteCoverage(); }

  // Writes arguments and items, and tells the checkers what they allow.
  void Prepare(const MoverArguments& arguments,
               const std::vector<MoveItem>& items, const PortBehaviour& port);
  void Cycle() override;
  void ResetPorts() override;
  std::vector<const AxiPort*> Ports() const override {
    return {&work_port, &source_port, &target_port};
  }

  BeatMemory memory;
  AxiReadPort work_port;
  AxiReadPort source_port;
  AxiWritePort target_port;

 private:
  std::unique_ptr<Vkv_mover> kernel_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_MOVER_BENCH_H_

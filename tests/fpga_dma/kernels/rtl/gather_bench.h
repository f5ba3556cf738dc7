// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_GATHER_BENCH_H_
#define PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_GATHER_BENCH_H_

#include <memory>
#include <vector>

#include "Vkv_gather.h"
#include "tests/fpga_dma/kernels/rtl/kernel_bench.h"

namespace paged_kv::fpga_dma {

// Arguments of kv_gather, in its order.
struct GatherArguments {
  uint64_t pool = 0;
  uint64_t table = 0;
  uint32_t num_entries = 1;
  uint32_t table_entries = 1;
  uint32_t num_pages = 1;
  uint32_t page_stride_beats = 64;
  uint32_t slice_beat = 0;
  uint32_t slice_beats = 64;
  uint32_t burst_beats = 0;
  uint32_t max_outstanding = 0;
};

// kv_gather with memory at its ports, and a consumer of its stream.
class GatherBench : public KernelBench {
 public:
  explicit GatherBench(uint64_t seed);
  ~GatherBench() override { WriteCoverage(); }

  // Writes arguments and tells the checkers what they allow.
  void Prepare(const GatherArguments& arguments, const PortBehaviour& memory,
               double consumer_pause);
  void Cycle() override;
  void ResetPorts() override;
  std::vector<const AxiPort*> Ports() const override {
    return {&table_port, &kv_port};
  }
  std::vector<std::string> ProtocolErrors() const override;

  BeatMemory memory;
  AxiReadPort table_port;
  AxiReadPort kv_port;
  std::vector<Beat> stream;  // full beats since Prepare()
  uint32_t stream_ends = 0;  // beats with TLAST since Prepare()
  bool ended_empty = false;  // the last of them was empty

 private:
  void SampleStream();
  void CheckStream(bool good, const char* error) {
    if (!good && stream_errors_.size() < 20) stream_errors_.push_back(error);
  }

  std::unique_ptr<Vkv_gather> kernel_;
  std::mt19937_64 random_;
  double consumer_pause_ = 0;
  std::vector<std::string> stream_errors_;
  bool waiting_ = false;
  Beat waiting_beat_ = {};
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_KERNELS_RTL_GATHER_BENCH_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fpga_dma/kernels/rtl/mover_bench.h"

namespace paged_kv::fpga_dma {

MoverBench::MoverBench(uint64_t seed)
    : work_port("work", &memory, seed),
      source_port("source", &memory, seed + 1),
      target_port("target", &memory, seed + 2),
      kernel_(std::make_unique<Vkv_mover>(&context_)) {
  Reset();
}

void MoverBench::Prepare(const MoverArguments& a,
                         const std::vector<MoveItem>& items,
                         const PortBehaviour& port) {
  for (size_t i = 0; i < items.size(); ++i) {
    const MoveItem& item = items[i];
    memory.Write(a.work / 64 * 64 + i * 64,
                 {item.source_page, item.target_page, item.source_beat,
                  item.target_beat, item.num_beats, item.num_runs,
                  item.source_run_stride_beats, item.target_run_stride_beats});
  }
  WriteArguments({LowWord(a.work), HighWord(a.work), LowWord(a.source),
                  HighWord(a.source), LowWord(a.target), HighWord(a.target),
                  a.num_items, a.max_items, a.source_pages,
                  a.source_stride_beats, a.target_pages, a.target_stride_beats,
                  a.burst_beats, a.max_outstanding});
  const uint32_t burst = LimitOf(a.burst_beats, 64);
  const uint32_t outstanding = LimitOf(a.max_outstanding, 32);
  work_port.Start(port, {a.work, a.work + uint64_t{a.max_items} * 64}, burst,
                  outstanding);
  source_port.Start(port,
                    {a.source, a.source + uint64_t{a.source_pages} *
                                              a.source_stride_beats * 64},
                    burst, outstanding);
  target_port.Start(port,
                    {a.target, a.target + uint64_t{a.target_pages} *
                                              a.target_stride_beats * 64},
                    burst, outstanding);
}

void MoverBench::Cycle() {
  Vkv_mover& k = *kernel_;
  DrivePins(&k);
  const AxiReadPort::Inputs& work = work_port.Drive();
  k.m_axi_work_arready = work.ar_ready;
  k.m_axi_work_rvalid = work.valid;
  k.m_axi_work_rlast = work.last;
  k.m_axi_work_rresp = work.response & 3;
  SetBeat(work.data, &k.m_axi_work_rdata);
  const AxiReadPort::Inputs& source = source_port.Drive();
  k.m_axi_source_arready = source.ar_ready;
  k.m_axi_source_rvalid = source.valid;
  k.m_axi_source_rlast = source.last;
  k.m_axi_source_rresp = source.response & 3;
  SetBeat(source.data, &k.m_axi_source_rdata);
  const AxiWritePort::Inputs& target = target_port.Drive();
  k.m_axi_target_awready = target.aw_ready;
  k.m_axi_target_wready = target.w_ready;
  k.m_axi_target_bvalid = target.b_valid;
  k.m_axi_target_bresp = target.response & 3;
  k.ap_clk = 0;
  k.eval();
  SamplePins(k);
  work_port.Sample(
      {k.m_axi_work_arvalid != 0, k.m_axi_work_araddr, k.m_axi_work_arlen,
       k.m_axi_work_arsize, k.m_axi_work_arburst},
      k.m_axi_work_rready);
  source_port.Sample(
      {k.m_axi_source_arvalid != 0, k.m_axi_source_araddr, k.m_axi_source_arlen,
       k.m_axi_source_arsize, k.m_axi_source_arburst},
      k.m_axi_source_rready);
  target_port.Sample(
      {k.m_axi_target_awvalid != 0, k.m_axi_target_awaddr, k.m_axi_target_awlen,
       k.m_axi_target_awsize, k.m_axi_target_awburst},
      {k.m_axi_target_wvalid != 0, k.m_axi_target_wlast != 0,
       k.m_axi_target_wstrb, BeatOf(k.m_axi_target_wdata)},
      k.m_axi_target_bready);
  k.ap_clk = 1;
  k.eval();
}

void MoverBench::ResetPorts() {
  work_port.Reset();
  source_port.Reset();
  target_port.Reset();
}

}  // namespace paged_kv::fpga_dma

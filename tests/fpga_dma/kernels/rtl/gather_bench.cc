// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fpga_dma/kernels/rtl/gather_bench.h"

namespace paged_kv::fpga_dma {

GatherBench::GatherBench(uint64_t seed)
    : table_port("table", &memory, seed),
      kv_port("kv", &memory, seed + 1),
      kernel_(std::make_unique<Vkv_gather>(&context_)),
      random_(seed + 2) {
  Reset();
}

void GatherBench::Prepare(const GatherArguments& a, const PortBehaviour& port,
                          double consumer_pause) {
  WriteArguments({LowWord(a.pool), HighWord(a.pool), LowWord(a.table),
                  HighWord(a.table), a.num_entries, a.table_entries,
                  a.num_pages, a.page_stride_beats, a.slice_beat, a.slice_beats,
                  a.burst_beats, a.max_outstanding});
  const uint32_t burst = LimitOf(a.burst_beats, 64);
  const uint32_t outstanding = LimitOf(a.max_outstanding, 32);
  const uint64_t table_bytes = (uint64_t{a.table_entries} + 15) / 16 * 64;
  table_port.Start(port, {a.table, a.table + table_bytes}, burst, outstanding);
  kv_port.Start(
      port, {a.pool, a.pool + uint64_t{a.num_pages} * a.page_stride_beats * 64},
      burst, outstanding);
  consumer_pause_ = consumer_pause;
  stream.clear();
  stream_ends = 0;
  ended_empty = false;
}

void GatherBench::Cycle() {
  Vkv_gather& k = *kernel_;
  DrivePins(&k);
  const AxiReadPort::Inputs& table = table_port.Drive();
  k.m_axi_table_arready = table.ar_ready;
  k.m_axi_table_rvalid = table.valid;
  k.m_axi_table_rlast = table.last;
  k.m_axi_table_rresp = table.response & 3;
  SetBeat(table.data, &k.m_axi_table_rdata);
  const AxiReadPort::Inputs& kv = kv_port.Drive();
  k.m_axi_kv_arready = kv.ar_ready;
  k.m_axi_kv_rvalid = kv.valid;
  k.m_axi_kv_rlast = kv.last;
  k.m_axi_kv_rresp = kv.response & 3;
  SetBeat(kv.data, &k.m_axi_kv_rdata);
  k.m_axis_kv_tready =
      std::uniform_real_distribution<>(0, 1)(random_) >= consumer_pause_;
  k.ap_clk = 0;
  k.eval();
  SamplePins(k);
  table_port.Sample(
      {k.m_axi_table_arvalid != 0, k.m_axi_table_araddr, k.m_axi_table_arlen,
       k.m_axi_table_arsize, k.m_axi_table_arburst},
      k.m_axi_table_rready);
  kv_port.Sample({k.m_axi_kv_arvalid != 0, k.m_axi_kv_araddr, k.m_axi_kv_arlen,
                  k.m_axi_kv_arsize, k.m_axi_kv_arburst},
                 k.m_axi_kv_rready);
  SampleStream();
  k.ap_clk = 1;
  k.eval();
}

std::vector<std::string> GatherBench::ProtocolErrors() const {
  std::vector<std::string> errors = KernelBench::ProtocolErrors();
  errors.insert(errors.end(), stream_errors_.begin(), stream_errors_.end());
  return errors;
}

void GatherBench::ResetPorts() {
  table_port.Reset();
  kv_port.Reset();
  waiting_ = false;
}

void GatherBench::SampleStream() {
  const Vkv_gather& k = *kernel_;
  const Beat beat = BeatOf(k.m_axis_kv_tdata);
  CheckStream(!waiting_ || (k.m_axis_kv_tvalid && beat == waiting_beat_),
              "stream: a beat changed while it waited");
  waiting_ = k.m_axis_kv_tvalid && !k.m_axis_kv_tready;
  waiting_beat_ = beat;
  if (!k.m_axis_kv_tvalid || !k.m_axis_kv_tready) return;
  CheckStream(stream_ends == 0, "stream: a beat behind TLAST");
  const bool empty = k.m_axis_kv_tkeep == 0;
  CheckStream(empty || k.m_axis_kv_tkeep == ~uint64_t{0},
              "stream: a beat that is neither full nor empty");
  CheckStream(!empty || k.m_axis_kv_tlast,
              "stream: an empty beat without TLAST");
  if (!empty) stream.push_back(beat);
  if (k.m_axis_kv_tlast) {
    ++stream_ends;
    ended_empty = empty;
  }
}

}  // namespace paged_kv::fpga_dma

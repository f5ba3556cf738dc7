// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/rtl_engine/rtl_gather.h"

#include <verilated.h>

#include <cstring>
#include <memory>

#include "Vkv_gather.h"
#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_registry.h"

namespace paged_kv::fpga_dma {
namespace {

// Where the kernel sees its memory. Offsets in 4 KiB are those of the pool,
// which starts on 4 KiB.
constexpr uint64_t kPool = uint64_t{1} << 40;
constexpr uint64_t kTable = uint64_t{1} << 32;

// control_registers.sv, job_status.sv.
constexpr uint32_t kControl = 0x00, kArguments = 0x10, kStatus = 0x80;
constexpr uint32_t kApStart = 1, kApDone = 2, kApContinue = 16;

// A launch that takes so long hangs: nothing of it takes 100 cycles per beat.
constexpr uint64_t kMostCyclesPerBeat = 100;

uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

// The kernel with its clock, its registers and the memory at its ports.
class Bench {
 public:
  Bench(const GatherJob& job, const PortTiming& timing,
        absl::Span<const std::byte> table, std::vector<GatheredBeat>* beats)
      : kernel_(&context_),
        table_(kTable, table, timing),
        pool_(kPool, job.pool, timing),
        beats_(beats) {
    kernel_.ap_rst_n = 0;
    kernel_.s_axi_control_awvalid = kernel_.s_axi_control_wvalid = 0;
    kernel_.s_axi_control_arvalid = 0;
    kernel_.s_axi_control_wstrb = 15;
    kernel_.s_axi_control_bready = kernel_.s_axi_control_rready = 1;
    kernel_.m_axi_table_arready = kernel_.m_axi_kv_arready = 1;
    kernel_.m_axis_kv_tready = 1;
    for (int i = 0; i < 4; ++i) Cycle();
    kernel_.ap_rst_n = 1;
  }

  void Write(uint32_t offset, uint32_t value) {
    kernel_.s_axi_control_awaddr = offset & 0xFF;
    kernel_.s_axi_control_wdata = value;
    kernel_.s_axi_control_awvalid = kernel_.s_axi_control_wvalid = 1;
    Cycle();  // the registers take both at once when no response waits
    kernel_.s_axi_control_awvalid = kernel_.s_axi_control_wvalid = 0;
    Cycle();  // the response
  }
  uint32_t Read(uint32_t offset) {
    kernel_.s_axi_control_araddr = offset & 0xFF;
    kernel_.s_axi_control_arvalid = 1;
    Cycle();
    kernel_.s_axi_control_arvalid = 0;
    const uint32_t value = kernel_.s_axi_control_rdata;
    Cycle();
    return value;
  }
  void Cycle() {
    const PortMemory::Answer table = table_.Answered();
    kernel_.m_axi_table_rvalid = table.valid;
    kernel_.m_axi_table_rlast = table.last;
    kernel_.m_axi_table_rresp = table.response & 3;
    if (table.valid) Set(table.beat, &kernel_.m_axi_table_rdata);
    const PortMemory::Answer kv = pool_.Answered();
    kernel_.m_axi_kv_rvalid = kv.valid;
    kernel_.m_axi_kv_rlast = kv.last;
    kernel_.m_axi_kv_rresp = kv.response & 3;
    if (kv.valid) Set(kv.beat, &kernel_.m_axi_kv_rdata);
    kernel_.ap_clk = 0;
    kernel_.eval();
    table_.Clock(
        kernel_.m_axi_table_araddr,
        kernel_.m_axi_table_arvalid != 0 ? kernel_.m_axi_table_arlen + 1u : 0,
        kernel_.m_axi_table_rready != 0);
    pool_.Clock(kernel_.m_axi_kv_araddr,
                kernel_.m_axi_kv_arvalid != 0 ? kernel_.m_axi_kv_arlen + 1u : 0,
                kernel_.m_axi_kv_rready != 0);
    if (kernel_.m_axis_kv_tvalid != 0 && kernel_.m_axis_kv_tkeep != 0) {
      GatheredBeat& beat = beats_->emplace_back();
      for (size_t i = 0; i < kBeatBytes / 4; ++i) {
        const uint32_t word = kernel_.m_axis_kv_tdata[i];
        std::memcpy(beat.data() + 4 * i, &word, sizeof(word));
      }
    }
    kernel_.ap_clk = 1;
    kernel_.eval();
  }

 private:
  template <typename Wide>
  static void Set(const std::byte* beat, Wide* wide) {
    for (size_t i = 0; i < kBeatBytes / 4; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, beat + 4 * i, sizeof(word));
      (*wide)[i] = word;
    }
  }

  VerilatedContext context_;
  Vkv_gather kernel_;
  PortMemory table_;
  PortMemory pool_;
  std::vector<GatheredBeat>* const beats_;
};

}  // namespace

absl::Status RunRtlGather(const GatherJob& job, const PortTiming& timing,
                          std::vector<GatheredBeat>* beats, uint64_t* cycles) {
  const size_t table_beats =
      (job.pages.size() * 4 + kBeatBytes - 1) / kBeatBytes;
  std::vector<std::byte> table(table_beats * kBeatBytes);
  std::memcpy(table.data(), job.pages.data(), job.pages.size() * 4);
  const auto entries = static_cast<uint32_t>(job.pages.size());
  const auto bench = std::make_unique<Bench>(job, timing, table, beats);
  const uint32_t arguments[] = {Low(kPool),
                                High(kPool),
                                Low(kTable),
                                High(kTable),
                                entries,
                                entries,
                                job.num_pages,
                                job.page_stride_beats,
                                job.slice_beat,
                                job.slice_beats,
                                0,
                                0};
  uint32_t offset = kArguments;
  for (const uint32_t argument : arguments) {
    bench->Write(offset, argument);
    offset += 4;
  }
  bench->Write(kControl, kApStart);
  const uint64_t most_cycles = (uint64_t{entries} * job.slice_beats +
                                table_beats + timing.latency_cycles + 100) *
                               kMostCyclesPerBeat;
  for (uint64_t i = 0; (bench->Read(kControl) & kApDone) == 0; i += 2) {
    if (i > most_cycles) {
      return absl::InternalError(
          absl::StrCat("kv_gather: not done after ", i, " cycles"));
    }
  }
  bench->Write(kControl, kApContinue);
  KernelStatus status = {};
  status.code = static_cast<KernelError>(bench->Read(kStatus));
  status.item = bench->Read(kStatus + 4);
  status.detail = bench->Read(kStatus + 8) | uint64_t{bench->Read(kStatus + 12)}
                                                 << 32;
  *cycles += bench->Read(kStatus + 28);
  return ToStatus("kv_gather", status);
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/timing_model.h"

#include <algorithm>

namespace paged_kv::fpga_dma {
namespace {

// DMA engines and the copy engine move whole AXI bursts, of 4 KiB at most
// (AMBA AXI, "a burst must not cross a 4KB address boundary").
constexpr uint64_t kLongestBurstBytes = 4096;

absl::Duration Take(double amount, double per_second) {
  return absl::Seconds(amount / per_second);
}

size_t Index(DmaDirection direction) { return static_cast<size_t>(direction); }

absl::Time Slowed(absl::Time start, absl::Time end, double slowdown) {
  return slowdown > 1 ? start + (end - start) * slowdown : end;
}

}  // namespace

TimingModel::TimingModel(const Board& board) : board_(board) {
  bank_busy_.resize(board_.banks.size());
  bank_bytes_.resize(board_.banks.size());
  unit_busy_.resize(board_.compute_units.size());
  Reset(absl::UnixEpoch());
}

void TimingModel::Reset(absl::Time now) {
  for (size_t direction : {size_t{0}, size_t{1}}) {
    channel_free_[direction].assign(board_.dma.channels, now);
    link_free_[direction] = now;
  }
  copy_free_ = now;
  bank_free_.assign(board_.banks.size(), now);
  unit_free_.assign(board_.compute_units.size(), now);
}

absl::Duration TimingModel::BankTime(BankId bank, uint64_t bytes,
                                     uint64_t burst_bytes) {
  const BoardBank& memory = board_.banks.at(bank.value());
  const absl::Duration time =
      Take(static_cast<double>(bytes),
           memory.bytes_per_second * memory.burst.At(burst_bytes));
  bank_busy_[bank.value()] += time;
  bank_bytes_[bank.value()] += bytes;
  return time;
}

absl::Time TimingModel::UseBank(BankId bank, uint64_t bytes,
                                uint64_t burst_bytes, absl::Time earliest) {
  const absl::Duration time = BankTime(bank, bytes, burst_bytes);
  absl::Time& free = bank_free_[bank.value()];
  free = std::max(free, earliest) + time;
  return free;
}

absl::Time TimingModel::ShareBank(BankId bank, uint64_t bytes,
                                  absl::Time earliest) {
  const absl::Duration time = BankTime(bank, bytes, kLongestBurstBytes);
  absl::Time& free = bank_free_[bank.value()];
  const absl::Duration others = std::max(absl::ZeroDuration(), free - earliest);
  free = std::max(free, earliest) + time;
  return earliest + time + std::min(time, others);
}

TimeSpan TimingModel::Transfer(DmaDirection direction, uint32_t channel,
                               BankId bank, uint64_t bytes, absl::Time earliest,
                               double slowdown) {
  absl::Time& channel_free = channel_free_[Index(direction)].at(channel);
  absl::Time& link_free = link_free_[Index(direction)];
  const absl::Time start = std::max(earliest, channel_free);
  const absl::Time ready = start + board_.dma.setup;
  const absl::Duration on_link =
      Take(static_cast<double>(bytes), board_.dma.bytes_per_second);
  link_free = std::max(link_free, ready) + on_link;
  link_busy_[Index(direction)] += on_link;
  const absl::Time in_bank = ShareBank(bank, bytes, ready);
  channel_free = Slowed(start, std::max(link_free, in_bank), slowdown);
  return {start, channel_free};
}

TimeSpan TimingModel::Copy(BankId to, BankId from, uint64_t bytes,
                           absl::Time earliest, double slowdown) {
  const absl::Time start = std::max(earliest, copy_free_);
  const absl::Time ready = start + board_.copy.setup;
  absl::Time end =
      ready + Take(static_cast<double>(bytes), board_.copy.bytes_per_second);
  end = std::max(end, UseBank(from, bytes, kLongestBurstBytes, ready));
  end = std::max(end, UseBank(to, bytes, kLongestBurstBytes, ready));
  copy_free_ = Slowed(start, end, slowdown);
  return {start, copy_free_};
}

TimeSpan TimingModel::Kernel(uint32_t unit, const KernelLoad& load,
                             absl::Time earliest, double slowdown) {
  const BoardComputeUnit& compute_unit = board_.compute_units.at(unit);
  absl::Time& unit_free = unit_free_[unit];
  const absl::Time start = std::max(earliest, unit_free);
  const absl::Time ready = start + board_.launch;
  absl::Time end = ready;
  if (load.flops > 0) {
    end += Take(static_cast<double>(load.flops),
                2.0 * compute_unit.lanes * board_.clock_hz);
  }
  const double port_rate = board_.port_bytes * board_.clock_hz;
  for (const PortTraffic& port : load.ports) {
    const uint64_t bytes = port.read_bytes + port.write_bytes;
    if (bytes == 0) continue;
    const BurstEfficiency& burst = board_.banks.at(port.bank.value()).burst;
    // A port reads and writes at the same time (AXI has a channel for each).
    const uint64_t widest = std::max(port.read_bytes, port.write_bytes);
    const absl::Duration expected = Take(
        static_cast<double>(widest), port_rate * burst.At(port.burst_bytes));
    const absl::Time port_end =
        ready + (port.cycles > 0
                     ? Take(static_cast<double>(port.cycles), board_.clock_hz)
                     : expected);
    const absl::Time bank_end =
        UseBank(port.bank, bytes, port.burst_bytes, ready);
    end = std::max({end, port_end, bank_end});
  }
  unit_free = Slowed(start, end, slowdown);
  unit_busy_[unit] += unit_free - start;
  return {start, unit_free};
}

absl::Duration TimingModel::link_busy(DmaDirection direction) const {
  return link_busy_[Index(direction)];
}

}  // namespace paged_kv::fpga_dma

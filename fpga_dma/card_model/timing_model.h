// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// When things happen on a card, on a virtual clock. Every shared part (DMA
// channel, link direction, bank, compute unit) serves one after the other; an
// operation is as late as its slowest part. Only transfers do not queue at a
// bank: an interconnect lets its masters take turns burst by burst, so a
// transfer that finds a kernel at work gets every other turn, and those who
// come later wait as much longer.

#ifndef PAGED_KV_FPGA_DMA_CARD_MODEL_TIMING_MODEL_H_
#define PAGED_KV_FPGA_DMA_CARD_MODEL_TIMING_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/device_types.h"

namespace paged_kv::fpga_dma {

enum class DmaDirection : uint8_t { kUpload, kDownload };

// What a kernel run moves through one of its ports.
struct PortTraffic {
  BankId bank = kNoBank;
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;
  // Mean length of its bursts; see BurstEfficiency.
  uint64_t burst_bytes = 4096;
  // Clock cycles that the port was seen to take; 0: as many as its bytes and
  // bursts let expect.
  uint64_t cycles = 0;
};

// What a kernel run does, as far as its time depends on it.
struct KernelLoad {
  std::vector<PortTraffic> ports;  // one per port: ports work side by side
  uint64_t flops = 0;              // two per multiply-accumulate
};

struct TimeSpan {
  absl::Time start;
  absl::Time end;
};

// Times of operations in the order in which their channel or unit takes them
// up. The caller asks for an operation when it is about to start, not when it
// is queued: the link and the banks are given away in the order of the calls.
//
//   transfer  setup + max(bytes / link rate, bytes / bank rate)
//   copy      setup + max(bytes / engine rate, time in both banks)
//   kernel    launch + max(time of each port, time in each bank,
//                          flops / (2 lanes clock))
//
// where each term waits for the part it uses, and the rate of a bank and of a
// port is its nominal one times the efficiency of the bursts.
//
// Thread safety: thread-compatible.
class TimingModel {
 public:
  // `board` is valid (ValidateBoard).
  explicit TimingModel(const Board& board);

  // Not before `earliest`, nor before the channel is free. `slowdown` >= 1
  // lengthens the operation as a whole: the jitter and the delays of a card
  // that is not a model.
  TimeSpan Transfer(DmaDirection direction, uint32_t channel, BankId bank,
                    uint64_t bytes, absl::Time earliest, double slowdown = 1);
  TimeSpan Copy(BankId to, BankId from, uint64_t bytes, absl::Time earliest,
                double slowdown = 1);
  TimeSpan Kernel(uint32_t unit, const KernelLoad& load, absl::Time earliest,
                  double slowdown = 1);

  // Everything is idle from `now` on.
  void Reset(absl::Time now);

  // How long each part was at work so far, for the shares that a report
  // prints. [banks], [compute units]
  absl::Duration link_busy(DmaDirection direction) const;
  const std::vector<absl::Duration>& bank_busy() const { return bank_busy_; }
  const std::vector<absl::Duration>& unit_busy() const { return unit_busy_; }
  // Bytes that kernels, copies and transfers moved per bank. [banks]
  const std::vector<uint64_t>& bank_bytes() const { return bank_bytes_; }

 private:
  // Occupies `bank` for `bytes` in bursts, not before `earliest`; when that is
  // done.
  absl::Time UseBank(BankId bank, uint64_t bytes, uint64_t burst_bytes,
                     absl::Time earliest);
  // The same for a transfer, which takes turns with whoever is there.
  absl::Time ShareBank(BankId bank, uint64_t bytes, absl::Time earliest);
  // Counts them as moved; the time that takes.
  absl::Duration BankTime(BankId bank, uint64_t bytes, uint64_t burst_bytes);

  const Board board_;
  std::vector<absl::Time> channel_free_[2];  // [direction][channel]
  absl::Time link_free_[2];
  absl::Time copy_free_;
  std::vector<absl::Time> bank_free_;
  std::vector<absl::Time> unit_free_;
  absl::Duration link_busy_[2];
  std::vector<absl::Duration> bank_busy_;
  std::vector<absl::Duration> unit_busy_;
  std::vector<uint64_t> bank_bytes_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_CARD_MODEL_TIMING_MODEL_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/emulated_card/card_engine.h"

#if defined(PAGED_KV_HAVE_RTL_ENGINE)
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/rtl_engine/rtl_kernels.h"
#endif

namespace paged_kv::fpga_dma {
namespace {

#if defined(PAGED_KV_HAVE_RTL_ENGINE)
absl::Status RunOnRtl(const Board& board, const KernelRunner& runner,
                      const KernelLaunch& launch, KernelLoad* load) {
  constexpr auto kKv = static_cast<size_t>(PagedDecodeArgument::kKv);
  const BankId bank = runner.argument_banks(launch.unit)[kKv];
  const BurstEfficiency& burst = board.banks[bank.value()].burst;
  RtlWork work;
  const absl::Status status = RunRtlPagedDecode(
      launch.arguments, ToPortTiming(burst.peak, burst.gap_bytes), &work);
  // K and V are the first argument, so the first port with traffic.
  static_assert(kKv == 0);
  if (work.launches > 0 && !load->ports.empty()) {
    PortTraffic& port = load->ports.front();
    port.read_bytes = work.beats * kBeatBytes;
    port.cycles = work.cycles;
  }
  return status;
}
#endif

}  // namespace

absl::Status RunOnEngine(CardEngine engine, const Board& board,
                         const KernelRunner& runner, const KernelLaunch& launch,
                         KernelLoad* load) {
#if defined(PAGED_KV_HAVE_RTL_ENGINE)
  if (engine == CardEngine::kRtl &&
      runner.spec(launch.unit).id == KernelId::kPagedDecode) {
    return RunOnRtl(board, runner, launch, load);
  }
#endif
  // Without RTL, ReadCardOptions() allows no other engine.
  static_cast<void>(engine);
  static_cast<void>(board);
  static_cast<void>(load);
  return runner.Run(launch);
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_H_

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fpga_dma/card_model/bank_memory.h"
#include "fpga_dma/card_model/fault_plan.h"
#include "fpga_dma/card_model/kernel_runner.h"
#include "fpga_dma/card_model/timing_model.h"
#include "fpga_dma/emulated_card/card_options.h"
#include "fpga_dma/emulated_card/virtual_timeline.h"
#include "fpga_dma/xclbin/xclbin_file.h"

namespace paged_kv::fpga_dma {

// A buffer object: memory on the card, on the host, or both.
struct CardBuffer {
  uint64_t bytes = 0;
  uint32_t flags = 0;  // XRT's
  BankId bank = kNoBank;
  uint64_t address = 0;       // on the card, if bank is one
  std::byte* host = nullptr;  // [bytes]; null if device only
  bool owns_host = false;

  ~CardBuffer();
};

// A call that is being made.
struct CardCall {
  uint64_t ticket = 0;  // 0: nobody announced it
  CallPlan plan;
  uint64_t generation = 0;  // of the card when it began
};

// The operation that a call carries out.
CardOperation ToOperation(CallKind kind);

// The card that the driver library stands for: memory banks, buffers, DMA,
// compute units that run the project's kernels, faults, a clock. Calls block
// like a driver's and return 0 or a negative errno value.
//
// Thread safety: thread-safe.
class Card {
 public:
  static absl::StatusOr<std::unique_ptr<Card>> Create(CardOptions options);

  const Board& board() const { return options_.board; }
  bool has_virtual_clock() const { return options_.virtual_clock; }

  // Loads a checked design; the same one again is nothing.
  absl::Status LoadDesign(const xclbin::XclbinFile& file);

  // `host` is memory of the caller, or null: then there is none
  // (with_host = false) or the buffer allocates it. Errors: as an errno value.
  struct BufferRequest {
    uint64_t bytes = 0;
    uint32_t flags = 0;
    std::optional<BankId> bank;  // nothing: host memory alone
    std::byte* host = nullptr;
    bool with_host = false;
  };
  int AllocateBuffer(const BufferRequest& request, uint32_t* handle);
  void FreeBuffer(uint32_t handle);
  // Null if there is none.
  std::shared_ptr<CardBuffer> Buffer(uint32_t handle) const;

  int Transfer(uint32_t handle, DmaDirection direction, uint64_t offset,
               uint64_t bytes);
  int Copy(uint32_t to, uint64_t to_offset, uint32_t from, uint64_t from_offset,
           uint64_t bytes);

  // Draws what is to happen to a kernel run that is started now by this
  // thread; RunKernel() then makes it, on any thread. Errno value: the run is
  // refused.
  int StartKernel(CardCall* call);
  enum class KernelResult { kCompleted, kError, kAborted };
  // `registers` are the unit's control registers, by word.
  KernelResult RunKernel(const CardCall& call, uint32_t unit,
                         absl::Span<const uint32_t> registers);

  // Ends what hangs. The card comes back empty, or, if an injected fault says
  // so, not at all.
  int Reset();

  // ---- The virtual clock; see emulated_card.h ----
  uint64_t Announce(CallKind kind, uint32_t index, bool* hangs);
  static void Bind(uint64_t ticket);
  std::optional<ModelledTimes::Finish> NextFinish(absl::Time now);
  void Retire(uint64_t ticket);
  void GiveUp(absl::Time now);

 private:
  Card(CardOptions options, std::unique_ptr<BankMemory> memory,
       KernelRunner runner);

  // The plan of the call that this thread is making: the announced one, or a
  // new one.
  CardCall BeginCall(CardOperation operation);
  CallPlan DrawPlan(CardOperation operation);
  // What a call moved is known: lets real time pass, if that is the clock.
  void TakeTime(const CardCall& call, CallKind kind, CallLoad load);
  // Blocks until the next reset.
  void Hang(const CardCall& call);
  // Between them a thread may access device memory; a reset waits for the end.
  // False: the card was reset since the call began.
  bool BeginAccess(const CardCall& call);
  void EndAccess();
  int Move(const CardCall& call, CallKind kind, const CallLoad& load,
           absl::Span<std::byte> target, absl::Span<const std::byte> source);
  // Sets what the run showed of `load`.
  KernelResult Compute(const CardCall& call, const KernelLaunch& launch,
                       KernelLoad* load);
  absl::StatusOr<KernelLaunch> BindRegisters(
      uint32_t unit, absl::Span<const uint32_t> registers) const;
  // How much memory there is from `address` to the end of its buffer.
  uint64_t BytesToBufferEnd(uint64_t address) const;
  absl::Time RealTime() const;

  const CardOptions options_;
  const std::unique_ptr<BankMemory> memory_;
  const KernelRunner runner_;
  const std::chrono::steady_clock::time_point opened_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  TimingModel timing_;
  VirtualTimeline timeline_;
  FaultPlan faults_;
  uint64_t jitter_;
  std::map<uint32_t, std::shared_ptr<CardBuffer>> buffers_;
  uint32_t next_buffer_ = 1;
  std::optional<std::array<uint8_t, 16>> loaded_;  // uuid
  bool lost_ = false;                              // off the bus until a reset
  bool loss_announced_ = false;  // by a call that was announced and not retired
  uint64_t losing_ticket_ = 0;
  uint64_t generation_ = 0;    // resets so far
  uint64_t accesses_ = 0;      // threads that access device memory
  uint32_t next_channel_ = 0;  // of unannounced transfers
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_H_

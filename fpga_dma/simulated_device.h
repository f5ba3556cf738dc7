// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A card in this process: the memory, timing and faults of a board, on a
// virtual clock, the same from the same seed.

#ifndef PAGED_KV_FPGA_DMA_SIMULATED_DEVICE_H_
#define PAGED_KV_FPGA_DMA_SIMULATED_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "fpga_dma/card_model/bank_memory.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/card_model/fault_plan.h"
#include "fpga_dma/card_model/kernel_runner.h"
#include "fpga_dma/card_model/timing_model.h"
#include "fpga_dma/device.h"

namespace paged_kv::fpga_dma {

struct SimulatedDeviceOptions {
  Board board;
  // The kernels of the design that the card is loaded with; compute units of
  // other kernels are not there. Outlive the device. With none, a card that
  // transfers and copies only.
  absl::Span<const KernelSpec> kernels;
  uint64_t seed = 1;
  // Each operation takes up to so many times as long as the timing model says,
  // at random: operations of different channels and units then finish in
  // different orders.
  double max_slowdown = 1;
  FaultPlanOptions faults;
  // Look for what callers must not do (see misuses()); costs a copy of each
  // uploaded range.
  bool detect_misuse = false;
};

// Data moves when an operation finishes, from what its source holds then: who
// changes an image or reuses a page too early corrupts data, as on a card. A
// kernel reads its work list also when it is started, for its duration. The
// image of a download holds BankMemory::kPoison from its start to its end.
//
// Faults beyond what device.h names: an operation whose completion is lost
// stays unreported, its State() is kUnknown, and Reset() completes it. When
// the device is lost, all that is pending completes with Unavailable, its
// memory is poisoned, and Poll() returns Unavailable once it has reported them.
//
// Thread safety: thread-compatible.
class SimulatedDevice final : public Device {
 public:
  // InvalidArgument (board, faults, slowdown, a kernel that does not fit the
  // board), ResourceExhausted (no address range for the banks).
  static absl::StatusOr<std::unique_ptr<SimulatedDevice>> Create(
      SimulatedDeviceOptions options);
  ~SimulatedDevice() override;

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<SlabId> CreateSlab(BankId bank, uint64_t bytes,
                                    SlabKind kind) override;
  absl::Status DestroySlab(SlabId slab) override;
  absl::StatusOr<absl::Span<std::byte>> HostImage(SlabId slab) override;
  absl::StatusOr<OpId> StartUpload(SlabRange range, uint32_t channel) override;
  absl::StatusOr<OpId> StartDownload(SlabRange range,
                                     uint32_t channel) override;
  absl::StatusOr<OpId> StartCopy(SlabRange to, SlabRange from) override;
  absl::StatusOr<OpId> StartKernel(
      uint32_t unit, absl::Span<const KernelArgument> arguments) override;
  // As Device says. FailedPrecondition: nothing would ever end the wait.
  absl::StatusOr<size_t> Poll(absl::Time deadline,
                              absl::Span<Completion> completions) override;
  OpState State(OpId op) const override;
  // Takes no time. Unavailable if an injected fault lets it fail.
  absl::Status Reset() override;
  absl::Time Now() const override { return now_; }
  void HostWorks(absl::Duration duration) override;

  // ---- For tests ----

  // Device memory of a range, where no kernel has to bring it out.
  absl::StatusOr<absl::Span<std::byte>> DeviceMemory(SlabRange range);
  // What callers did wrong so far, if detect_misuse: changed an image during
  // its upload, wrote to one during its download, or let two operations that
  // nothing orders use the same bytes while one writes them. Of kernels,
  // work lists and status words count: of pools, rings and tables they use a
  // part that only they know.
  const std::vector<std::string>& misuses() const { return misuses_; }
  const TimingModel& timing() const { return timing_; }
  const FaultPlan& faults() const { return faults_; }
  size_t pending_operations() const;

 private:
  struct Slab {
    BankId bank;
    uint64_t address = 0;
    uint64_t bytes = 0;
    std::byte* image = nullptr;  // [bytes], own mapping; null if kDeviceOnly
    size_t pending = 0;          // operations on it
  };
  // Bytes of a slab's device memory or of its image that an operation uses.
  struct Access {
    bool on_device = true;
    SlabRange range;
    bool writes = false;
  };
  struct Operation {
    CardOperation kind = CardOperation::kUpload;
    size_t queue = 0;           // the channel, copy engine or compute unit
    SlabRange target;           // of transfers: in device memory
    SlabRange source;           // kCopy
    KernelLaunch launch;        // kKernel
    std::vector<SlabId> slabs;  // whose `pending` counts it
    std::optional<Fault> fault;
    double slowdown = 1;
    bool silent = false;  // finished, and its completion lost
    absl::Time started = absl::InfiniteFuture();
    absl::Time finish = absl::InfiniteFuture();
    std::vector<Access> accesses;       // detect_misuse
    std::vector<std::byte> image_copy;  // detect_misuse
  };

  SimulatedDevice(SimulatedDeviceOptions options,
                  std::unique_ptr<BankMemory> memory, KernelRunner runner);

  absl::StatusOr<Slab*> FindSlab(SlabId slab);
  absl::StatusOr<Slab*> CheckRange(SlabRange range, bool needs_image);
  absl::StatusOr<OpId> StartTransfer(CardOperation kind, SlabRange range,
                                     uint32_t channel);
  absl::StatusOr<LaunchArgument> ToLaunchArgument(const KernelArgument& given,
                                                  bool is_address,
                                                  std::vector<SlabId>* slabs);
  OpId Enqueue(Operation operation);

  // The head of a queue is taken up, at now_.
  void Begin(OpId id);
  TimeSpan TimeOf(const Operation& operation);
  // The head that finishes first; none if all that are pending hang.
  std::optional<OpId> NextToFinish() const;
  // Moves the clock to the end of a head, and does what it does then.
  void Step(OpId id);
  void RunUntil(absl::Time time);

  absl::Span<std::byte> Memory(SlabRange range);
  std::byte* Image(SlabRange range);
  // What a transfer or copy writes.
  absl::Span<std::byte> Target(const Operation& operation);
  // Moves its first `bytes` bytes.
  void Move(const Operation& operation, uint64_t bytes);
  absl::Status Perform(const Operation& operation);
  absl::Status PerformKernel(const Operation& operation, bool fails);

  void Retire(OpId id, absl::Status status);
  // Retires all that is pending; device memory is lost.
  void CompleteAll(const absl::Status& status);
  void LoseDevice();

  static std::vector<Access> AccessesOf(const Operation& operation);
  static std::vector<Access> AccessesOf(
      const KernelSpec& kernel, absl::Span<const KernelArgument> arguments);
  static bool Conflict(const Access& a, const Access& b);
  void NoteMisuseAtStart(OpId id, Operation& operation);
  void NoteMisuseAtFinish(OpId id, const Operation& operation);

  const SimulatedDeviceOptions options_;
  DeviceInfo info_;
  std::unique_ptr<BankMemory> memory_;
  KernelRunner runner_;
  TimingModel timing_;
  FaultPlan faults_;
  uint64_t jitter_;  // state of its random stream
  absl::Time now_ = absl::UnixEpoch();
  bool lost_ = false;
  uint64_t next_slab_ = 1;
  uint64_t next_op_ = 1;
  std::map<SlabId, Slab> slabs_;
  std::map<OpId, Operation> operations_;  // neither finished nor given up
  // Uploads [channels], downloads [channels], copies, then [compute units].
  std::vector<std::deque<OpId>> queues_;
  std::deque<Completion> done_;  // to be reported
  std::vector<std::string> misuses_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_SIMULATED_DEVICE_H_

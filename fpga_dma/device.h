// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A card with memory banks, DMA channels and compute units, as the rest of
// fpga_dma sees it. xrt_device.h drives a real (or emulated) card through XRT;
// simulated_device.h is a deterministic one in this process.

#ifndef PAGED_KV_FPGA_DMA_DEVICE_H_
#define PAGED_KV_FPGA_DMA_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "fpga_dma/device_types.h"

namespace paged_kv::fpga_dma {

// What a device consists of; constant after it was opened.
struct BankInfo {
  std::string name;  // "DDR[0]", "HBM[17]"
  uint64_t bytes = 0;
};
struct ComputeUnitInfo {
  std::string kernel;    // "paged_decode"
  std::string instance;  // "paged_decode_2"
  // The bank each argument is connected to, kNoBank for scalars. [arguments]
  std::vector<BankId> argument_banks;
};
struct DeviceInfo {
  std::string name;       // "xilinx_u280_..."; for people
  bool modelled = false;  // times are a model's, not a clock's
  std::vector<BankInfo> banks;
  std::vector<ComputeUnitInfo> compute_units;
  uint32_t channels = 1;          // DMA channels per direction
  uint64_t alignment_bytes = 64;  // of offsets and sizes of transfers
};

// One ranged operation or kernel run, started and not yet finished.
// Everything that takes time is started and later reported by Poll(), so that
// one caller keeps every channel and compute unit busy without threads of its
// own, and a simulated device replays the same order from the same seed.
//
// Errors: InvalidArgument (no such bank, slab, unit; misaligned; wrong number
// of arguments or an argument in a bank its port cannot reach), OutOfRange
// (beyond a slab), ResourceExhausted (bank full), Unavailable (the device is
// gone; Reset() may bring it back). A started operation fails in its
// Completion, with Internal, DataLoss (lost to a reset) or Unavailable.
//
// Thread safety: thread-compatible; one thread at a time calls.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // ---- Memory ----

  // A run of device memory in one bank. kHostVisible slabs have a host-side
  // image of the same size that Start{Upload,Download} move; kDeviceOnly slabs
  // are reached by kernels and StartCopy alone. Contents are undefined.
  virtual absl::StatusOr<SlabId> CreateSlab(BankId bank, uint64_t bytes,
                                            SlabKind kind) = 0;
  // FailedPrecondition while an operation on it is pending.
  virtual absl::Status DestroySlab(SlabId slab) = 0;
  // The host-side image of a kHostVisible slab, page aligned; valid until the
  // slab is destroyed. Whoever starts a transfer keeps its range unchanged
  // (upload) or unread (download) until the transfer is completed.
  virtual absl::StatusOr<absl::Span<std::byte>> HostImage(SlabId slab) = 0;

  // ---- Operations ----

  // Image to device memory, and back. `channel` < info().channels; transfers
  // of one channel and direction run one after the other, in order.
  virtual absl::StatusOr<OpId> StartUpload(SlabRange range,
                                           uint32_t channel) = 0;
  virtual absl::StatusOr<OpId> StartDownload(SlabRange range,
                                             uint32_t channel) = 0;
  // Device memory to device memory. `to` and `from` do not overlap.
  virtual absl::StatusOr<OpId> StartCopy(SlabRange to, SlabRange from) = 0;
  // Runs compute unit `unit` (index in info().compute_units). Runs of one unit
  // are executed one after the other, in order.
  virtual absl::StatusOr<OpId> StartKernel(
      uint32_t unit, absl::Span<const KernelArgument> arguments) = 0;

  // Waits until at least one started operation has finished or Now() reaches
  // `deadline`, writes up to completions.size() of them in the order in which
  // they finished, and returns how many. Each operation is reported once.
  virtual absl::StatusOr<size_t> Poll(absl::Time deadline,
                                      absl::Span<Completion> completions) = 0;
  // What the device says of an operation that Poll() has not reported, for
  // those that are late: kPending, kFinished (Poll() will report it), or
  // kUnknown (it was reported, or the device has lost it).
  virtual OpState State(OpId op) const = 0;

  // Gives every pending operation up (they complete with DataLoss) and makes
  // the device usable again. Slabs stay, their device memory is undefined,
  // host images are untouched.
  virtual absl::Status Reset() = 0;

  // ---- Time ----

  // The clock of deadlines and completions: a model's, or the machine's
  // monotonic one counted from when the device was opened.
  virtual absl::Time Now() const = 0;
  // The host is busy for so long with something else. A model's clock moves
  // on; a real one does that by itself, and this does nothing.
  virtual void HostWorks(absl::Duration duration) = 0;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_DEVICE_H_

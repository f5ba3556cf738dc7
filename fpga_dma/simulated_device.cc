// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Slabs, and the start of operations; simulated_device_run.cc has what happens
// to them then.

#include "fpga_dma/simulated_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fpga_dma/card_model/random_stream.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint64_t kAlignmentBytes = 64;

// Independent streams of one seed.
constexpr uint64_t kJitterStream = 0x6A09E667F3BCC908u;

absl::Status Gone(const Board& board) {
  return absl::UnavailableError(absl::StrCat(
      "device ", board.name, " is gone; Reset() may bring it back"));
}

// The board with the compute units of these kernels alone.
Board WithKernels(Board board, absl::Span<const KernelSpec> kernels) {
  auto& units = board.compute_units;
  units.erase(std::remove_if(units.begin(), units.end(),
                             [&](const BoardComputeUnit& unit) {
                               return std::none_of(
                                   kernels.begin(), kernels.end(),
                                   [&](const KernelSpec& kernel) {
                                     return kernel.name == unit.kernel;
                                   });
                             }),
              units.end());
  return board;
}

bool Overlap(const SlabRange& a, const SlabRange& b) {
  return a.slab == b.slab && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SimulatedDevice>> SimulatedDevice::Create(
    SimulatedDeviceOptions options) {
  PAGED_KV_RETURN_IF_ERROR(ValidateBoard(options.board));
  PAGED_KV_RETURN_IF_ERROR(ValidateFaultPlan(options.faults));
  if (!std::isfinite(options.max_slowdown) || options.max_slowdown < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_slowdown ", options.max_slowdown, " is no factor of 1 or more"));
  }
  options.board = WithKernels(std::move(options.board), options.kernels);
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<BankMemory> memory,
                            BankMemory::Create(options.board.banks));
  PAGED_KV_ASSIGN_OR_RETURN(
      KernelRunner runner,
      KernelRunner::Create(options.board, options.kernels));
  return std::unique_ptr<SimulatedDevice>(new SimulatedDevice(
      std::move(options), std::move(memory), std::move(runner)));
}

SimulatedDevice::SimulatedDevice(SimulatedDeviceOptions options,
                                 std::unique_ptr<BankMemory> memory,
                                 KernelRunner runner)
    : options_(std::move(options)),
      memory_(std::move(memory)),
      runner_(std::move(runner)),
      timing_(options_.board),
      faults_(options_.faults),
      jitter_(options_.seed ^ kJitterStream) {
  const Board& board = options_.board;
  info_.name = absl::StrCat("simulated ", board.name);
  info_.modelled = true;
  info_.channels = board.dma.channels;
  info_.alignment_bytes = kAlignmentBytes;
  for (const BoardBank& bank : board.banks) {
    info_.banks.push_back({bank.name, bank.bytes});
  }
  for (uint32_t i = 0; i < board.compute_units.size(); ++i) {
    const BoardComputeUnit& unit = board.compute_units[i];
    info_.compute_units.push_back(
        {unit.kernel, unit.instance, runner_.argument_banks(i)});
  }
  queues_.resize(2 * board.dma.channels + 1 + board.compute_units.size());
}

SimulatedDevice::~SimulatedDevice() {
  for (auto& [id, slab] : slabs_) {
    if (slab.image != nullptr) munmap(slab.image, slab.bytes);
  }
}

// ---- Memory ----

absl::StatusOr<SlabId> SimulatedDevice::CreateSlab(BankId bank, uint64_t bytes,
                                                   SlabKind kind) {
  if (lost_) return Gone(options_.board);
  if (bank.value() >= info_.banks.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no bank ", bank.value(), "; device ", info_.name, " has ",
                     info_.banks.size()));
  }
  if (bytes == 0 || bytes % kAlignmentBytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a slab of ", bytes, " bytes; it must be a multiple of ",
                     kAlignmentBytes));
  }
  if (faults_.Next(CardOperation::kAllocate).has_value()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("bank ", info_.banks[bank.value()].name, " is full: need ",
                     bytes, " bytes, injected fault"));
  }
  Slab slab;
  slab.bank = bank;
  slab.bytes = bytes;
  PAGED_KV_ASSIGN_OR_RETURN(slab.address, memory_->Allocate(bank, bytes));
  if (kind == SlabKind::kHostVisible) {
    void* image = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image == MAP_FAILED) {
      PAGED_KV_CHECK(memory_->Free(slab.address).ok());
      return absl::ResourceExhaustedError(absl::StrCat(
          "no host memory for the image of a slab of ", bytes, " bytes"));
    }
    slab.image = static_cast<std::byte*>(image);
  }
  const SlabId id(next_slab_++);
  slabs_[id] = slab;
  return id;
}

absl::Status SimulatedDevice::DestroySlab(SlabId id) {
  PAGED_KV_ASSIGN_OR_RETURN(Slab * slab, FindSlab(id));
  if (slab->pending > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "slab ", id.value(), " has ", slab->pending, " pending operations"));
  }
  if (slab->image != nullptr) munmap(slab->image, slab->bytes);
  PAGED_KV_CHECK(memory_->Free(slab->address).ok());
  slabs_.erase(id);
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<std::byte>> SimulatedDevice::HostImage(SlabId id) {
  PAGED_KV_ASSIGN_OR_RETURN(Slab * slab, FindSlab(id));
  if (slab->image == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("slab ", id.value(), " has no host image"));
  }
  return absl::MakeSpan(slab->image, static_cast<size_t>(slab->bytes));
}

absl::StatusOr<absl::Span<std::byte>> SimulatedDevice::DeviceMemory(
    SlabRange range) {
  PAGED_KV_RETURN_IF_ERROR(CheckRange(range, /*needs_image=*/false).status());
  return Memory(range);
}

absl::StatusOr<SimulatedDevice::Slab*> SimulatedDevice::FindSlab(SlabId id) {
  const auto slab = slabs_.find(id);
  if (slab == slabs_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no slab ", id.value()));
  }
  return &slab->second;
}

absl::StatusOr<SimulatedDevice::Slab*> SimulatedDevice::CheckRange(
    SlabRange range, bool needs_image) {
  PAGED_KV_ASSIGN_OR_RETURN(Slab * slab, FindSlab(range.slab));
  if (needs_image && slab->image == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "slab ", range.slab.value(), " has no host image to transfer"));
  }
  if (range.bytes == 0 || range.bytes % kAlignmentBytes != 0 ||
      range.offset % kAlignmentBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "range of ", range.bytes, " bytes at ", range.offset, " of slab ",
        range.slab.value(), ": both must be multiples of ", kAlignmentBytes,
        ", and not empty"));
  }
  if (range.offset > slab->bytes || range.bytes > slab->bytes - range.offset) {
    return absl::OutOfRangeError(absl::StrCat(
        "range of ", range.bytes, " bytes at ", range.offset, " leaves slab ",
        range.slab.value(), " of ", slab->bytes, " bytes"));
  }
  return slab;
}

// ---- Operations ----

absl::StatusOr<OpId> SimulatedDevice::StartUpload(SlabRange range,
                                                  uint32_t channel) {
  return StartTransfer(CardOperation::kUpload, range, channel);
}

absl::StatusOr<OpId> SimulatedDevice::StartDownload(SlabRange range,
                                                    uint32_t channel) {
  return StartTransfer(CardOperation::kDownload, range, channel);
}

absl::StatusOr<OpId> SimulatedDevice::StartTransfer(CardOperation kind,
                                                    SlabRange range,
                                                    uint32_t channel) {
  if (channel >= info_.channels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no DMA channel ", channel, "; there are ", info_.channels));
  }
  PAGED_KV_RETURN_IF_ERROR(CheckRange(range, /*needs_image=*/true).status());
  if (lost_) return Gone(options_.board);
  Operation operation;
  operation.kind = kind;
  operation.queue =
      kind == CardOperation::kUpload ? channel : info_.channels + channel;
  operation.target = range;
  operation.slabs = {range.slab};
  return Enqueue(std::move(operation));
}

absl::StatusOr<OpId> SimulatedDevice::StartCopy(SlabRange to, SlabRange from) {
  PAGED_KV_RETURN_IF_ERROR(CheckRange(to, /*needs_image=*/false).status());
  PAGED_KV_RETURN_IF_ERROR(CheckRange(from, /*needs_image=*/false).status());
  if (to.bytes != from.bytes || Overlap(to, from)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "copy of ", from.bytes, " bytes at ", from.offset, " of slab ",
        from.slab.value(), " to ", to.bytes, " bytes at ", to.offset,
        " of slab ", to.slab.value(), ": sizes differ or the ranges overlap"));
  }
  if (lost_) return Gone(options_.board);
  Operation operation;
  operation.kind = CardOperation::kCopy;
  operation.queue = 2 * info_.channels;
  operation.target = to;
  operation.source = from;
  operation.slabs = {to.slab, from.slab};
  return Enqueue(std::move(operation));
}

absl::StatusOr<LaunchArgument> SimulatedDevice::ToLaunchArgument(
    const KernelArgument& given, bool is_address, std::vector<SlabId>* slabs) {
  const bool gives_address = given.kind == KernelArgument::Kind::kAddress;
  if (gives_address != is_address) {
    return absl::InvalidArgumentError(
        is_address ? "a scalar where an address is taken"
                   : "an address where a scalar is taken");
  }
  if (!is_address) return LaunchArgument{given.value, 0};
  PAGED_KV_ASSIGN_OR_RETURN(const Slab* slab, FindSlab(given.slab));
  if (given.value >= slab->bytes) {
    return absl::OutOfRangeError(
        absl::StrCat("offset ", given.value, " is beyond slab ",
                     given.slab.value(), " of ", slab->bytes, " bytes"));
  }
  slabs->push_back(given.slab);
  return LaunchArgument{slab->address + given.value, slab->bytes - given.value};
}

absl::StatusOr<OpId> SimulatedDevice::StartKernel(
    uint32_t unit, absl::Span<const KernelArgument> arguments) {
  if (unit >= runner_.units()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no compute unit ", unit, "; there are ", runner_.units()));
  }
  Operation operation;
  operation.kind = CardOperation::kKernel;
  operation.queue = 2 * info_.channels + 1 + unit;
  const absl::Span<const KernelArgumentSpec> specs =
      runner_.spec(unit).arguments;
  std::vector<LaunchArgument> launch_arguments;
  // A wrong number of them is for Bind() to say.
  for (size_t i = 0; i < std::min(arguments.size(), specs.size()); ++i) {
    absl::StatusOr<LaunchArgument> argument =
        ToLaunchArgument(arguments[i], specs[i].is_address, &operation.slabs);
    if (!argument.ok()) {
      return absl::Status(
          argument.status().code(),
          absl::StrCat(info_.compute_units[unit].instance, ".", specs[i].name,
                       ": ", argument.status().message()));
    }
    launch_arguments.push_back(*argument);
  }
  launch_arguments.resize(arguments.size());
  PAGED_KV_ASSIGN_OR_RETURN(operation.launch,
                            runner_.Bind(unit, launch_arguments, *memory_));
  if (lost_) return Gone(options_.board);
  if (options_.detect_misuse) {
    operation.accesses = AccessesOf(runner_.spec(unit), arguments);
  }
  return Enqueue(std::move(operation));
}

OpId SimulatedDevice::Enqueue(Operation operation) {
  const OpId id(next_op_++);
  operation.fault = faults_.Next(operation.kind);
  // Drawn for every operation, so that a fault changes no other's time.
  operation.slowdown = 1 + (options_.max_slowdown - 1) * NextUniform(&jitter_);
  for (SlabId slab : operation.slabs) ++slabs_.at(slab).pending;
  std::deque<OpId>& queue = queues_[operation.queue];
  queue.push_back(id);
  const bool idle = queue.size() == 1;
  Operation& kept = operations_[id] = std::move(operation);
  if (options_.detect_misuse) NoteMisuseAtStart(id, kept);
  if (kept.kind == CardOperation::kDownload) {
    std::memset(Image(kept.target), std::to_integer<int>(BankMemory::kPoison),
                kept.target.bytes);
  }
  if (idle) Begin(id);
  return id;
}

OpState SimulatedDevice::State(OpId op) const {
  const auto operation = operations_.find(op);
  if (operation != operations_.end()) {
    return operation->second.silent ? OpState::kUnknown : OpState::kPending;
  }
  const bool done =
      std::any_of(done_.begin(), done_.end(),
                  [&](const Completion& each) { return each.op == op; });
  return done ? OpState::kFinished : OpState::kUnknown;
}

size_t SimulatedDevice::pending_operations() const {
  return operations_.size();
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/blocking_device.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

// What XRT asks of memory that it is given, and what transparent huge pages
// need: a driver pins a page at a time, so fewer are better.
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

absl::Status Invalid(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

std::string ToText(const SlabRange& range) {
  return absl::StrCat("range ", range.offset, " + ", range.bytes, " of slab ",
                      range.slab.value());
}

// Lanes: uploads by channel, downloads by channel, copies, units.
size_t UploadLane(uint32_t channel) { return channel; }
size_t DownloadLane(const DeviceInfo& info, uint32_t channel) {
  return size_t{info.channels} + channel;
}
size_t CopyLane(const DeviceInfo& info) { return size_t{info.channels} * 2; }
size_t UnitLane(const DeviceInfo& info, uint32_t unit) {
  return CopyLane(info) + 1 + unit;
}
size_t NumLanes(const DeviceInfo& info) {
  return CopyLane(info) + 1 + info.compute_units.size();
}

}  // namespace

void BlockingDevice::FreeImage::operator()(std::byte* image) const {
  std::free(image);
}

BlockingDevice::BlockingDevice(std::unique_ptr<BlockingCard> card,
                               std::chrono::milliseconds reset_limit)
    : card_(std::move(card)),
      reset_limit_(reset_limit),
      lanes_(std::make_unique<CallLanes>(NumLanes(card_->info()),
                                         card_->modelled_times())) {}

BlockingDevice::~BlockingDevice() {
  lanes_->GiveUp();
  // Calls that only take their time are not disturbed: a card may be shared.
  if (!lanes_->WaitForCalls(std::chrono::milliseconds(100))) {
    card_->Interrupt();
  }
  lanes_.reset();  // joins the threads
  for (const auto& [id, slab] : slabs_) card_->DestroySlab(id);
  card_.reset();
}

absl::Status BlockingDevice::CheckPresent() const {
  if (!gone_) return absl::OkStatus();
  return absl::UnavailableError("the card is gone; Reset() may bring it back");
}

absl::StatusOr<SlabId> BlockingDevice::CreateSlab(BankId bank, uint64_t bytes,
                                                  SlabKind kind) {
  PAGED_KV_RETURN_IF_ERROR(CheckPresent());
  const std::vector<BankInfo>& banks = info().banks;
  if (bank.value() >= banks.size()) {
    return Invalid(absl::StrCat("bank ", bank.value(), " of ", banks.size()));
  }
  const BankInfo& bank_info = banks[bank.value()];
  if (bytes == 0 || bytes % info().alignment_bytes != 0) {
    return Invalid(absl::StrCat("a slab of ", bytes,
                                " bytes, not a multiple of ",
                                info().alignment_bytes));
  }
  if (bytes > bank_info.bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("slab of ", bytes, " bytes, bank ", bank_info.name,
                     " has ", bank_info.bytes));
  }
  Slab slab;
  slab.bank = bank;
  slab.bytes = bytes;
  absl::Span<std::byte> image;
  if (kind == SlabKind::kHostVisible) {
    const uint64_t alignment =
        bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
    const uint64_t whole = (bytes + alignment - 1) / alignment * alignment;
    auto* memory = std::aligned_alloc(alignment, whole);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no ", whole, " bytes of host memory for a slab"));
    }
    slab.image.reset(static_cast<std::byte*>(memory));
    image = {slab.image.get(), bytes};
  }
  const SlabId id{next_slab_};
  PAGED_KV_RETURN_IF_ERROR(card_->CreateSlab(id, bank, bytes, image));
  ++next_slab_;
  slabs_.emplace(id, std::move(slab));
  return id;
}

absl::Status BlockingDevice::DestroySlab(SlabId slab) {
  const auto found = slabs_.find(slab);
  if (found == slabs_.end()) {
    return Invalid(absl::StrCat("there is no slab ", slab.value()));
  }
  if (found->second.pending > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(found->second.pending, " operations on slab ",
                     slab.value(), " are pending"));
  }
  card_->DestroySlab(slab);
  slabs_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<std::byte>> BlockingDevice::HostImage(SlabId slab) {
  const auto found = slabs_.find(slab);
  if (found == slabs_.end()) {
    return Invalid(absl::StrCat("there is no slab ", slab.value()));
  }
  if (found->second.image == nullptr) {
    return Invalid(
        absl::StrCat("slab ", slab.value(), " is on the device only"));
  }
  return absl::MakeSpan(found->second.image.get(), found->second.bytes);
}

absl::Status BlockingDevice::CheckRange(const SlabRange& range) const {
  const auto found = slabs_.find(range.slab);
  if (found == slabs_.end()) {
    return Invalid(absl::StrCat("there is no slab ", range.slab.value()));
  }
  const uint64_t alignment = info().alignment_bytes;
  if (range.bytes == 0 || range.bytes % alignment != 0 ||
      range.offset % alignment != 0) {
    return Invalid(absl::StrCat(ToText(range),
                                " is empty or not in multiples of ", alignment,
                                " bytes"));
  }
  const uint64_t bytes = found->second.bytes;
  if (range.offset > bytes || range.bytes > bytes - range.offset) {
    return absl::OutOfRangeError(
        absl::StrCat(ToText(range), ", which has ", bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status BlockingDevice::CheckTransfer(const SlabRange& range,
                                           uint32_t channel) const {
  PAGED_KV_RETURN_IF_ERROR(CheckPresent());
  PAGED_KV_RETURN_IF_ERROR(CheckRange(range));
  if (slabs_.at(range.slab).image == nullptr) {
    return Invalid(absl::StrCat("slab ", range.slab.value(),
                                " is on the device only; copy it or run a "
                                "kernel"));
  }
  if (channel >= info().channels) {
    return Invalid(
        absl::StrCat("DMA channel ", channel, " of ", info().channels));
  }
  return absl::OkStatus();
}

OpId BlockingDevice::Started(OpId op, std::vector<SlabId> slabs) {
  for (const SlabId slab : slabs) ++slabs_.at(slab).pending;
  pending_.emplace(op, std::move(slabs));
  return op;
}

absl::StatusOr<OpId> BlockingDevice::StartUpload(SlabRange range,
                                                 uint32_t channel) {
  PAGED_KV_RETURN_IF_ERROR(CheckTransfer(range, channel));
  return Started(lanes_->Start(UploadLane(channel), CallKind::kUpload, channel,
                               card_->Upload(range)),
                 {range.slab});
}

absl::StatusOr<OpId> BlockingDevice::StartDownload(SlabRange range,
                                                   uint32_t channel) {
  PAGED_KV_RETURN_IF_ERROR(CheckTransfer(range, channel));
  return Started(
      lanes_->Start(DownloadLane(info(), channel), CallKind::kDownload, channel,
                    card_->Download(range)),
      {range.slab});
}

absl::StatusOr<OpId> BlockingDevice::StartCopy(SlabRange to, SlabRange from) {
  PAGED_KV_RETURN_IF_ERROR(CheckPresent());
  PAGED_KV_RETURN_IF_ERROR(CheckRange(to));
  PAGED_KV_RETURN_IF_ERROR(CheckRange(from));
  if (to.bytes != from.bytes) {
    return Invalid(
        absl::StrCat("copy of ", from.bytes, " bytes to ", to.bytes));
  }
  if (to.slab == from.slab && to.offset < from.offset + from.bytes &&
      from.offset < to.offset + to.bytes) {
    return Invalid(absl::StrCat("copy of ", ToText(from), " to ", ToText(to),
                                ", which overlaps it"));
  }
  return Started(lanes_->Start(CopyLane(info()), CallKind::kCopy, 0,
                               card_->Copy(to, from)),
                 {to.slab, from.slab});
}

absl::Status BlockingDevice::CheckArgument(
    uint32_t unit, size_t index, const KernelArgument& argument) const {
  const ComputeUnitInfo& unit_info = info().compute_units[unit];
  const std::string where =
      absl::StrCat("argument ", index, " of ", unit_info.instance);
  const bool wants_address = unit_info.argument_banks[index] != kNoBank;
  if (argument.kind == KernelArgument::Kind::kScalar) {
    if (!wants_address) return absl::OkStatus();
    return Invalid(absl::StrCat(where, " is an address, given a scalar"));
  }
  if (!wants_address) {
    return Invalid(absl::StrCat(where, " is a scalar, given an address"));
  }
  const auto found = slabs_.find(argument.slab);
  if (found == slabs_.end()) {
    return Invalid(
        absl::StrCat(where, ": there is no slab ", argument.slab.value()));
  }
  const Slab& slab = found->second;
  if (argument.value >= slab.bytes) {
    return absl::OutOfRangeError(
        absl::StrCat(where, ": offset ", argument.value, " in slab ",
                     argument.slab.value(), " of ", slab.bytes, " bytes"));
  }
  if (!card_->Reaches(unit, index, slab.bank)) {
    const BankId wanted = unit_info.argument_banks[index];
    return Invalid(absl::StrCat(where, " is connected to bank ",
                                info().banks[wanted.value()].name, ", slab ",
                                argument.slab.value(), " is in ",
                                info().banks[slab.bank.value()].name));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpId> BlockingDevice::StartKernel(
    uint32_t unit, absl::Span<const KernelArgument> arguments) {
  PAGED_KV_RETURN_IF_ERROR(CheckPresent());
  if (unit >= info().compute_units.size()) {
    return Invalid(absl::StrCat("compute unit ", unit, " of ",
                                info().compute_units.size()));
  }
  const ComputeUnitInfo& unit_info = info().compute_units[unit];
  if (arguments.size() != unit_info.argument_banks.size()) {
    return Invalid(absl::StrCat(unit_info.instance, " takes ",
                                unit_info.argument_banks.size(),
                                " arguments, given ", arguments.size()));
  }
  std::vector<SlabId> slabs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    PAGED_KV_RETURN_IF_ERROR(CheckArgument(unit, i, arguments[i]));
    if (arguments[i].kind == KernelArgument::Kind::kAddress) {
      slabs.push_back(arguments[i].slab);
    }
  }
  return Started(lanes_->Start(UnitLane(info(), unit), CallKind::kKernel, unit,
                               card_->Run(unit, arguments)),
                 std::move(slabs));
}

absl::StatusOr<size_t> BlockingDevice::Poll(
    absl::Time deadline, absl::Span<Completion> completions) {
  if (gone_ && pending_.empty()) return CheckPresent();
  PAGED_KV_ASSIGN_OR_RETURN(const size_t count,
                            lanes_->Poll(deadline, completions));
  for (const Completion& completion : completions.first(count)) {
    const auto found = pending_.find(completion.op);
    for (const SlabId slab : found->second) --slabs_.at(slab).pending;
    pending_.erase(found);
    gone_ |= absl::IsUnavailable(completion.status);
  }
  return count;
}

absl::Status BlockingDevice::Reset() {
  lanes_->GiveUp();
  card_->Interrupt();
  if (!lanes_->WaitForCalls(reset_limit_)) {
    gone_ = true;
    return absl::UnavailableError(absl::StrCat(
        "calls to the card did not return within ", reset_limit_.count(),
        " ms; end the process and reset the card (xrt-smi reset, or xbutil "
        "reset in older releases)"));
  }
  const absl::Status restored = card_->Restore();
  gone_ = !restored.ok();
  return restored;
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The only file that includes XRT. Written for the native API of 2.13 and what
// came after it: no bo.async, no hw_context, no xrt::aie.

#include "fpga_dma/xrt_device.h"

#include <version.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>
#if __has_include(<xrt/experimental/xrt_system.h>)
#include <xrt/experimental/xrt_system.h>
#else
#include <experimental/xrt_system.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "fpga_dma/blocking_card.h"
#include "fpga_dma/blocking_device.h"
#include "fpga_dma/xclbin/xclbin_file.h"
#include "fpga_dma/xrt_emulated_times.h"
#include "fpga_dma/xrt_guard.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

using xclbin::XclbinFile;

// XDMA moves multiples of 64 bytes without a read-modify-write.
constexpr uint64_t kAlignmentBytes = 64;
// A wait for a kernel is cut into pieces, to see a reset coming.
constexpr std::chrono::milliseconds kWaitSlice{100};
// How long a kernel gets to end after a reset began.
constexpr std::chrono::seconds kStopGrace{2};

// ---- Kernels ----

bool IsRunning(ert_cmd_state state) {
  return state == ERT_CMD_STATE_NEW || state == ERT_CMD_STATE_QUEUED ||
         state == ERT_CMD_STATE_SUBMITTED || state == ERT_CMD_STATE_RUNNING;
}

absl::Status FromState(const std::string& instance, ert_cmd_state state) {
  switch (state) {
    case ERT_CMD_STATE_COMPLETED:
      return absl::OkStatus();
    case ERT_CMD_STATE_ABORT:
      return absl::DataLossError(absl::StrCat(instance, " was aborted"));
    case ERT_CMD_STATE_TIMEOUT:
    case ERT_CMD_STATE_NORESPONSE:
      return absl::UnavailableError(
          absl::StrCat(instance, " does not respond (state ",
                       static_cast<int>(state), "); reset the card"));
    default:
      return absl::InternalError(absl::StrCat(instance,
                                              " reported an error (state ",
                                              static_cast<int>(state), ")"));
  }
}

// A compute unit with the run that it uses again and again.
struct Unit {
  std::string instance;
  std::vector<uint64_t> argument_bytes;        // register widths
  std::vector<std::vector<BankId>> reachable;  // [arguments]; scalars none
  xrt::kernel kernel;
  xrt::run run;
  bool in_flight = false;
};

void SetScalar(uint64_t bytes, int index, uint64_t value, xrt::run* run) {
  switch (bytes) {
    case 1:
      return run->set_arg(index, static_cast<uint8_t>(value));
    case 2:
      return run->set_arg(index, static_cast<uint16_t>(value));
    case 4:
      return run->set_arg(index, static_cast<uint32_t>(value));
    default:
      return run->set_arg(index, value);
  }
}

// ---- The card ----

class XrtCard : public BlockingCard {
 public:
  XrtCard(std::string device, XclbinFile design)
      : device_name_(std::move(device)), design_(std::move(design)) {}

  absl::Status Open(uint32_t channels);

  const DeviceInfo& info() const override { return info_; }
  bool Reaches(uint32_t unit, size_t argument, BankId bank) const override {
    return absl::c_linear_search(units_[unit].reachable[argument], bank);
  }
  absl::Status CreateSlab(SlabId slab, BankId bank, uint64_t bytes,
                          absl::Span<std::byte> image) override;
  void DestroySlab(SlabId slab) override { slabs_.erase(slab); }

  Call Upload(SlabRange range) override {
    return Sync(range, XCL_BO_SYNC_BO_TO_DEVICE, "upload");
  }
  Call Download(SlabRange range) override {
    return Sync(range, XCL_BO_SYNC_BO_FROM_DEVICE, "download");
  }
  Call Copy(SlabRange to, SlabRange from) override;
  Call Run(uint32_t unit, absl::Span<const KernelArgument> arguments) override;

  void Interrupt() override;
  absl::Status Restore() override;
  ModelledTimes* modelled_times() override { return times_.get(); }

 private:
  struct Slab {
    BankId bank;
    uint64_t bytes = 0;
    absl::Span<std::byte> image;
    xrt::bo buffer;
  };
  struct BoundArgument {
    xrt::bo buffer;  // empty for scalars
    uint64_t value = 0;
  };

  absl::Status OpenDevice();
  absl::Status LoadDesign();
  absl::Status Describe(uint32_t channels);
  absl::Status DescribeUnits();
  absl::Status MakeKernels();
  absl::Status MakeBuffer(Slab* slab);
  Call Sync(SlabRange range, xclBOSyncDirection direction, std::string what);
  absl::Status RunToEnd(uint32_t unit,
                        const std::vector<BoundArgument>& arguments);
  ert_cmd_state WaitForEnd(xrt::run* run);

  const std::string device_name_;
  const XclbinFile design_;
  DeviceInfo info_;
  std::vector<uint32_t> memory_indices_;  // XRT's, of each bank
  xrt::device device_;
  xrt::uuid uuid_;
  std::unique_ptr<XrtEmulatedTimes> times_;
  std::vector<Unit> units_;
  std::map<SlabId, Slab> slabs_;
  std::atomic<bool> stopping_{false};
};

absl::Status XrtCard::Open(uint32_t channels) {
  PAGED_KV_RETURN_IF_ERROR(OpenDevice());
  times_ = XrtEmulatedTimes::Find(device_);
  PAGED_KV_RETURN_IF_ERROR(LoadDesign());
  PAGED_KV_RETURN_IF_ERROR(Describe(channels));
  return MakeKernels();
}

absl::Status XrtCard::OpenDevice() {
  uint32_t index = 0;
  const bool by_index = absl::SimpleAtoi(device_name_, &index);
  const absl::Status status =
      GuardVoid(absl::StrCat("card ", device_name_), [&] {
        device_ = by_index ? xrt::device(index) : xrt::device(device_name_);
      });
  if (status.ok()) return status;
  const XrtInfo found = DescribeXrt();
  return absl::NotFoundError(absl::StrCat(
      status.message(), "; XRT finds ", found.cards.size(), " cards here. ",
      found.cards.empty() ? found.advice : "pagedkv card --info lists them."));
}

absl::Status XrtCard::LoadDesign() {
  // The content that was checked, not the file, which may have changed.
  const absl::Status status = GuardVoid("loading the xclbin", [&] {
    uuid_ = device_.load_xclbin(
        reinterpret_cast<const axlf*>(design_.content().data()));
  });
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; it was built for ", design_.platform(),
                   ", check that this is the card"));
}

absl::Status XrtCard::Describe(uint32_t channels) {
  PAGED_KV_RETURN_IF_ERROR(GuardVoid("reading the card's name", [&] {
    info_.name = device_.get_info<xrt::info::device::name>();
  }));
  info_.modelled = times_ != nullptr;
  info_.channels = times_ != nullptr ? times_->channels() : channels;
  info_.alignment_bytes = kAlignmentBytes;
  const auto& memories = design_.memories();
  for (uint32_t i = 0; i < memories.size(); ++i) {
    const bool addressed = memories[i].bytes > 0;
    if (!memories[i].used || !addressed) continue;
    info_.banks.push_back({memories[i].tag, memories[i].bytes});
    memory_indices_.push_back(i);
  }
  return DescribeUnits();
}

absl::Status XrtCard::DescribeUnits() {
  return Guard("reading the xclbin's kernels", [&] {
    const xrt::xclbin metadata(
        reinterpret_cast<const axlf*>(design_.content().data()));
    for (const xclbin::UnitEntry& entry : design_.units()) {
      const xrt::xclbin::kernel kernel = metadata.get_kernel(entry.kernel);
      if (!kernel) {
        return absl::InvalidArgumentError(
            absl::StrCat("the xclbin has a unit of kernel ", entry.kernel,
                         " and does not describe it"));
      }
      Unit unit;
      unit.instance = entry.instance;
      ComputeUnitInfo unit_info{entry.kernel, entry.instance, {}};
      for (const xrt::xclbin::arg& argument : kernel.get_args()) {
        std::vector<BankId> banks;
        for (const int32_t memory : design_.MemoriesOf(
                 entry, static_cast<int32_t>(argument.get_index()))) {
          const auto found =
              absl::c_find(memory_indices_, static_cast<uint32_t>(memory));
          if (found == memory_indices_.end()) continue;
          banks.push_back(
              BankId(static_cast<uint32_t>(found - memory_indices_.begin())));
        }
        unit_info.argument_banks.push_back(banks.empty() ? kNoBank
                                                         : banks.front());
        unit.reachable.push_back(std::move(banks));
        unit.argument_bytes.push_back(argument.get_size());
      }
      info_.compute_units.push_back(std::move(unit_info));
      units_.push_back(std::move(unit));
    }
    return absl::OkStatus();
  });
}

absl::Status XrtCard::MakeKernels() {
  for (size_t i = 0; i < units_.size(); ++i) {
    const ComputeUnitInfo& unit_info = info_.compute_units[i];
    Unit& unit = units_[i];
    PAGED_KV_RETURN_IF_ERROR(GuardVoid(unit.instance, [&] {
      unit.kernel = xrt::kernel(
          device_, uuid_,
          absl::StrCat(unit_info.kernel, ":{", unit_info.instance, "}"));
      unit.run = xrt::run(unit.kernel);
    }));
  }
  return absl::OkStatus();
}

// ---- Slabs ----

absl::Status XrtCard::MakeBuffer(Slab* slab) {
  const uint32_t memory = memory_indices_[slab->bank.value()];
  const BankInfo& bank = info_.banks[slab->bank.value()];
  return GuardVoid(
      absl::StrCat("slab of ", slab->bytes, " bytes in ", bank.name), [&] {
        // Own host memory: a reset makes the buffer anew, the image stays.
        slab->buffer = slab->image.empty()
                           ? xrt::bo(device_, slab->bytes,
                                     xrt::bo::flags::device_only, memory)
                           : xrt::bo(device_, slab->image.data(), slab->bytes,
                                     xrt::bo::flags::normal, memory);
      });
}

absl::Status XrtCard::CreateSlab(SlabId id, BankId bank, uint64_t bytes,
                                 absl::Span<std::byte> image) {
  Slab slab{bank, bytes, image, {}};
  PAGED_KV_RETURN_IF_ERROR(MakeBuffer(&slab));
  slabs_.emplace(id, std::move(slab));
  return absl::OkStatus();
}

// ---- Calls ----

BlockingCard::Call XrtCard::Sync(SlabRange range, xclBOSyncDirection direction,
                                 std::string what) {
  return [buffer = slabs_.at(range.slab).buffer, range, direction,
          what = std::move(what)]() mutable {
    return GuardVoid(
        absl::StrCat(what, " of ", range.bytes, " bytes at ", range.offset,
                     " of slab ", range.slab.value()),
        [&] { buffer.sync(direction, range.bytes, range.offset); });
  };
}

BlockingCard::Call XrtCard::Copy(SlabRange to, SlabRange from) {
  return [target = slabs_.at(to.slab).buffer,
          source = slabs_.at(from.slab).buffer, to, from]() mutable {
    return GuardVoid(
        absl::StrCat("copy of ", from.bytes, " bytes from slab ",
                     from.slab.value(), " to ", to.slab.value()),
        [&] { target.copy(source, from.bytes, from.offset, to.offset); });
  };
}

BlockingCard::Call XrtCard::Run(uint32_t unit,
                                absl::Span<const KernelArgument> arguments) {
  std::vector<BoundArgument> bound;
  bound.reserve(arguments.size());
  for (const KernelArgument& argument : arguments) {
    const bool is_address = argument.kind == KernelArgument::Kind::kAddress;
    bound.push_back({is_address ? slabs_.at(argument.slab).buffer : xrt::bo(),
                     argument.value});
  }
  return [this, unit, bound = std::move(bound)] {
    return Guard(units_[unit].instance, [&] { return RunToEnd(unit, bound); });
  };
}

absl::Status XrtCard::RunToEnd(uint32_t unit_index,
                               const std::vector<BoundArgument>& arguments) {
  Unit& unit = units_[unit_index];
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto index = static_cast<int>(i);
    const BoundArgument& argument = arguments[i];
    if (!argument.buffer) {
      SetScalar(unit.argument_bytes[i], index, argument.value, &unit.run);
    } else if (argument.value == 0) {
      unit.run.set_arg(index, argument.buffer);
    } else {
      // A sub-buffer of a whole buffer; nested ones have wrong addresses in
      // XRT 2.13.
      const uint64_t rest = argument.buffer.size() - argument.value;
      unit.run.set_arg(index, xrt::bo(argument.buffer, rest, argument.value));
    }
  }
  unit.in_flight = true;
  unit.run.start();
  const ert_cmd_state state = WaitForEnd(&unit.run);
  unit.in_flight = IsRunning(unit.run.state());
  return FromState(unit.instance, state);
}

ert_cmd_state XrtCard::WaitForEnd(xrt::run* run) {
  auto stop_by = std::chrono::steady_clock::time_point::max();
  while (true) {
    // A wait that has timed out says nothing of the run: XRT 2.13 also times
    // out when the run ends together with the wait.
    if (run->wait(kWaitSlice) != ERT_CMD_STATE_TIMEOUT ||
        !IsRunning(run->state())) {
      return run->state();
    }
    const auto now = std::chrono::steady_clock::now();
    if (!stopping_) continue;
    if (stop_by == std::chrono::steady_clock::time_point::max()) {
      stop_by = now + kStopGrace;
    } else if (now > stop_by) {
      return ERT_CMD_STATE_NORESPONSE;
    }
  }
}

// ---- Reset ----

// XRT's API resets no card: xrt::device::reset() drops a handle. On a card a
// transfer that hangs ends when the driver's own limit is over, and a run that
// hangs is waited for no longer; what the unit still does is over when the card
// is reset from outside.
void XrtCard::Interrupt() {
  stopping_ = true;
  XrtEmulatedTimes::ResetIfEmulated(device_);
}

absl::Status XrtCard::Restore() {
  for (auto& [id, slab] : slabs_) slab.buffer = xrt::bo();
  for (Unit& unit : units_) {
    // A run that never ended is kept for ever: XRT's monitor thread still
    // refers to it.
    if (unit.in_flight) new xrt::run(std::move(unit.run));
    unit.in_flight = false;
    unit.run = xrt::run();
    unit.kernel = xrt::kernel();
  }
  PAGED_KV_RETURN_IF_ERROR(OpenDevice());
  PAGED_KV_RETURN_IF_ERROR(LoadDesign());
  PAGED_KV_RETURN_IF_ERROR(MakeKernels());
  for (auto& [id, slab] : slabs_) PAGED_KV_RETURN_IF_ERROR(MakeBuffer(&slab));
  stopping_ = false;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenXrtDevice(
    const XrtDeviceOptions& options) {
  if (options.channels == 0) {
    return absl::InvalidArgumentError("a card has at least 1 DMA channel");
  }
  PAGED_KV_ASSIGN_OR_RETURN(XclbinFile design,
                            XclbinFile::Read(options.xclbin));
  auto card = std::make_unique<XrtCard>(options.device, std::move(design));
  PAGED_KV_RETURN_IF_ERROR(card->Open(options.channels));
  return std::make_unique<BlockingDevice>(std::move(card), options.reset_limit);
}

XrtInfo DescribeXrt() {
  XrtInfo info;
  info.headers_version = xrt_build_version;
  const char* folder = std::getenv("XILINX_XRT");
  if (folder != nullptr) info.xilinx_xrt = folder;
  uint32_t count = 0;
  const absl::Status counted = GuardVoid(
      "counting cards", [&] { count = xrt::system::enumerate_devices(); });
  // The count leaves out emulated cards, so what comes after it is tried.
  for (uint32_t i = 0;; ++i) {
    XrtCardInfo card;
    card.index = i;
    const absl::Status opened = GuardVoid(absl::StrCat("card ", i), [&] {
      const xrt::device device(i);
      card.name = device.get_info<xrt::info::device::name>();
      card.emulated = XrtEmulatedTimes::IsEmulated(device);
      card.address = device.get_info<xrt::info::device::bdf>();
    });
    if (i >= count && card.name.empty()) break;
    // An emulated card sits in no slot.
    if (!card.emulated) card.problem = std::string(opened.message());
    info.cards.push_back(std::move(card));
  }
  if (info.cards.empty()) {
    info.advice = absl::StrCat(
        "A card needs Xilinx's driver (xocl) and permission to open it; an "
        "emulated one needs XILINX_XRT set to <build>/emulated_card and "
        "XCL_EMULATION_MODE not set (XILINX_XRT is ",
        folder == nullptr ? "not set" : folder, ").",
        counted.ok() ? "" : absl::StrCat(" XRT says: ", counted.message()));
  }
  return info;
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What blocks: transfers, copies, kernel runs, and the reset that ends them.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fpga_dma/emulated_card/card.h"
#include "fpga_dma/emulated_card/card_engine.h"
#include "fpga_dma/xclbin/xclbin_writer.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

bool Has(const CallPlan& plan, FaultKind kind) {
  return plan.fault.has_value() && plan.fault->kind == kind;
}

bool InRange(const CardBuffer& buffer, uint64_t offset, uint64_t bytes) {
  return offset <= buffer.bytes && bytes <= buffer.bytes - offset;
}

}  // namespace

absl::Time Card::RealTime() const {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now() - opened_);
}

void Card::TakeTime(const CardCall& call, CallKind kind, CallLoad load) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (call.ticket != 0) {
    timeline_.SetLoad(call.ticket, std::move(load));
    return;
  }
  if (options_.virtual_clock || load.instant) return;
  // Real time, and the caller is alone in knowing what runs beside what.
  const absl::Time now = RealTime();
  const double slowdown = call.plan.slowdown;
  absl::Time end = now;
  switch (kind) {
    case CallKind::kUpload:
    case CallKind::kDownload: {
      const uint32_t channel = next_channel_++ % options_.board.dma.channels;
      end = timing_
                .Transfer(kind == CallKind::kUpload ? DmaDirection::kUpload
                                                    : DmaDirection::kDownload,
                          channel, load.target, load.bytes, now, slowdown)
                .end;
      break;
    }
    case CallKind::kCopy:
      end =
          timing_.Copy(load.target, load.source, load.bytes, now, slowdown).end;
      break;
    case CallKind::kKernel:
      end = timing_.Kernel(load.unit, load.kernel, now, slowdown).end;
      break;
  }
  if (Has(call.plan, FaultKind::kDelay)) end += call.plan.fault->delay;
  lock.unlock();
  std::this_thread::sleep_for(absl::ToChronoNanoseconds(end - now));
}

void Card::Hang(const CardCall& call) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return generation_ != call.generation; });
}

bool Card::BeginAccess(const CardCall& call) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (generation_ != call.generation) return false;
  ++accesses_;
  return true;
}

void Card::EndAccess() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --accesses_;
  }
  changed_.notify_all();
}

// ---- Transfers and copies ----

int Card::Move(const CardCall& call, CallKind kind, const CallLoad& load,
               absl::Span<std::byte> target,
               absl::Span<const std::byte> source) {
  if (call.plan.card_lost || !BeginAccess(call)) {
    TakeTime(call, kind, InstantLoad());
    return call.plan.card_lost ? -ENODEV : -EIO;
  }
  const bool fails = Has(call.plan, FaultKind::kFail);
  const bool loses = Has(call.plan, FaultKind::kLoseDevice);
  // Of a transfer that does not get to its end, a part gets through.
  const bool partial = fails || loses || Has(call.plan, FaultKind::kHang);
  const size_t moved =
      partial ? call.plan.fault->random % target.size() : target.size();
  std::memcpy(target.data(), source.data(), moved);
  if (Has(call.plan, FaultKind::kFlipBit)) {
    FlipBit(ToOperation(kind), *call.plan.fault, target);
  }
  EndAccess();
  if (call.plan.hangs()) {
    Hang(call);
    return -EIO;
  }
  TakeTime(call, kind, load);
  if (loses) return -ENODEV;
  return fails ? -EIO : 0;
}

int Card::Transfer(uint32_t handle, DmaDirection direction, uint64_t offset,
                   uint64_t bytes) {
  const std::shared_ptr<CardBuffer> buffer = Buffer(handle);
  if (buffer == nullptr || buffer->host == nullptr || buffer->bank == kNoBank ||
      !InRange(*buffer, offset, bytes)) {
    return -EINVAL;
  }
  if (bytes == 0) return 0;
  const auto device = memory_->Translate(buffer->address + offset, bytes);
  if (!device.ok()) return -EINVAL;
  const absl::Span<std::byte> host(buffer->host + offset, bytes);
  CallLoad load;
  load.target = buffer->bank;
  load.bytes = bytes;
  if (direction == DmaDirection::kUpload) {
    return Move(BeginCall(CardOperation::kUpload), CallKind::kUpload, load,
                *device, host);
  }
  return Move(BeginCall(CardOperation::kDownload), CallKind::kDownload, load,
              host, *device);
}

int Card::Copy(uint32_t to, uint64_t to_offset, uint32_t from,
               uint64_t from_offset, uint64_t bytes) {
  const std::shared_ptr<CardBuffer> target = Buffer(to);
  const std::shared_ptr<CardBuffer> source = Buffer(from);
  if (target == nullptr || source == nullptr || target->bank == kNoBank ||
      source->bank == kNoBank || !InRange(*target, to_offset, bytes) ||
      !InRange(*source, from_offset, bytes)) {
    return -EINVAL;
  }
  if (bytes == 0) return 0;
  const auto write = memory_->Translate(target->address + to_offset, bytes);
  const auto read = memory_->Translate(source->address + from_offset, bytes);
  if (!write.ok() || !read.ok()) return -EINVAL;
  CallLoad load;
  load.target = target->bank;
  load.source = source->bank;
  load.bytes = bytes;
  return Move(BeginCall(CardOperation::kCopy), CallKind::kCopy, load, *write,
              *read);
}

// ---- Kernels ----

int Card::StartKernel(CardCall* call) {
  *call = BeginCall(CardOperation::kKernel);
  if (!call->plan.card_lost && !Has(call->plan, FaultKind::kLoseDevice)) {
    return 0;
  }
  TakeTime(*call, CallKind::kKernel, InstantLoad());
  return -ENODEV;
}

absl::StatusOr<KernelLaunch> Card::BindRegisters(
    uint32_t unit, absl::Span<const uint32_t> registers) const {
  const absl::Span<const KernelArgumentSpec> specs =
      runner_.spec(unit).arguments;
  std::vector<xclbin::DesignArgument> layout;
  for (const KernelArgumentSpec& spec : specs) {
    layout.push_back({"", spec.is_address, spec.width_bytes});
  }
  const std::vector<uint32_t> offsets = xclbin::RegisterOffsets(layout);
  std::vector<LaunchArgument> arguments;
  for (size_t i = 0; i < specs.size(); ++i) {
    const size_t word = offsets[i] / 4;
    const size_t words = specs[i].width_bytes / 4;
    LaunchArgument argument;
    // Registers that nobody has written are 0.
    for (size_t w = 0; w < words && word + w < registers.size(); ++w) {
      argument.value |= uint64_t{registers[word + w]} << (32 * w);
    }
    if (specs[i].is_address) {
      argument.memory_bytes = BytesToBufferEnd(argument.value);
      if (argument.memory_bytes == 0) {
        return absl::OutOfRangeError(absl::StrCat(specs[i].name,
                                                  ": no buffer at address 0x",
                                                  absl::Hex(argument.value)));
      }
    }
    arguments.push_back(argument);
  }
  return runner_.Bind(unit, arguments, *memory_);
}

Card::KernelResult Card::Compute(const CardCall& call,
                                 const KernelLaunch& launch, KernelLoad* load) {
  const auto work = runner_.spec(launch.unit).work(launch.arguments);
  const absl::Status run =
      RunOnEngine(options_.engine, options_.board, runner_, launch, load);
  if (!run.ok()) {
    std::fprintf(stderr, "emulated card: %s cannot run: %s\n",
                 board().compute_units[launch.unit].instance.c_str(),
                 std::string(run.message()).c_str());
    return KernelResult::kError;
  }
  if (!Has(call.plan, FaultKind::kFlipBit) || !work.ok()) {
    return KernelResult::kCompleted;
  }
  // In what it wrote most of.
  const auto most =
      std::max_element(work->arguments.begin(), work->arguments.end(),
                       [](const ArgumentTraffic& a, const ArgumentTraffic& b) {
                         return a.bytes_written < b.bytes_written;
                       });
  if (most != work->arguments.end() && most->bytes_written > 0) {
    const auto index = static_cast<size_t>(most - work->arguments.begin());
    const absl::Span<std::byte> memory = launch.arguments[index].memory;
    const uint64_t written =
        std::min<uint64_t>(memory.size(), most->bytes_written);
    FlipBit(CardOperation::kKernel, *call.plan.fault, memory.first(written));
  }
  return KernelResult::kCompleted;
}

Card::KernelResult Card::RunKernel(const CardCall& call, uint32_t unit,
                                   absl::Span<const uint32_t> registers) {
  CallLoad load;
  load.unit = unit;
  if (Has(call.plan, FaultKind::kHang)) {
    Hang(call);
    return KernelResult::kAborted;
  }
  if (!BeginAccess(call)) return KernelResult::kAborted;
  KernelResult result = KernelResult::kError;
  const absl::StatusOr<KernelLaunch> launch = BindRegisters(unit, registers);
  if (launch.ok()) {
    // Before it runs: it may change its own work list.
    auto kernel_load = runner_.Load(*launch);
    if (kernel_load.ok()) load.kernel = *std::move(kernel_load);
    if (!Has(call.plan, FaultKind::kFail)) {
      result = Compute(call, *launch, &load.kernel);
    }
  } else {
    std::fprintf(stderr, "emulated card: %s cannot start: %s\n",
                 board().compute_units[unit].instance.c_str(),
                 std::string(launch.status().message()).c_str());
  }
  EndAccess();
  if (call.plan.hangs()) {
    Hang(call);
    return KernelResult::kAborted;
  }
  TakeTime(call, CallKind::kKernel, std::move(load));
  return result;
}

// ---- Reset ----

int Card::Reset() {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool fails = faults_.Next(CardOperation::kReset).has_value();
  // What hangs ends also when the card stays away: its driver gives it up.
  ++generation_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return accesses_ == 0; });
  memory_->Poison();
  lost_ = fails;
  loss_announced_ = false;
  return fails ? -EIO : 0;
}

}  // namespace paged_kv::fpga_dma

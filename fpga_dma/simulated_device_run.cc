// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The course of events of SimulatedDevice: queues, the virtual clock, and what
// operations and faults do to memory.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fpga_dma/simulated_device.h"
#include "paged_kv/check.h"

namespace paged_kv::fpga_dma {
namespace {

bool Has(const std::optional<Fault>& fault, FaultKind kind) {
  return fault.has_value() && fault->kind == kind;
}

}  // namespace

// ---- Time ----

TimeSpan SimulatedDevice::TimeOf(const Operation& operation) {
  switch (operation.kind) {
    case CardOperation::kUpload:
    case CardOperation::kDownload: {
      const bool up = operation.kind == CardOperation::kUpload;
      const size_t channel = operation.queue - (up ? 0 : info_.channels);
      return timing_.Transfer(
          up ? DmaDirection::kUpload : DmaDirection::kDownload,
          static_cast<uint32_t>(channel), slabs_.at(operation.target.slab).bank,
          operation.target.bytes, now_, operation.slowdown);
    }
    case CardOperation::kCopy:
      return timing_.Copy(slabs_.at(operation.target.slab).bank,
                          slabs_.at(operation.source.slab).bank,
                          operation.target.bytes, now_, operation.slowdown);
    default:
      break;
  }
  // A launch that the card would not survive is reported when it is run; it
  // takes as long as one that finds nothing to do.
  absl::StatusOr<KernelLoad> load = runner_.Load(operation.launch);
  return timing_.Kernel(operation.launch.unit, load.ok() ? *load : KernelLoad(),
                        now_, operation.slowdown);
}

void SimulatedDevice::Begin(OpId id) {
  Operation& operation = operations_.at(id);
  operation.started = now_;
  if (Has(operation.fault, FaultKind::kHang)) {
    // Some of it got through before it stopped.
    if (operation.kind != CardOperation::kKernel) {
      Move(operation, operation.fault->random % operation.target.bytes);
    }
    return;
  }
  operation.finish = TimeOf(operation).end;
  if (Has(operation.fault, FaultKind::kDelay)) {
    operation.finish += operation.fault->delay;
  }
}

std::optional<OpId> SimulatedDevice::NextToFinish() const {
  std::optional<OpId> next;
  absl::Time earliest = absl::InfiniteFuture();
  for (const std::deque<OpId>& queue : queues_) {
    if (queue.empty()) continue;
    const Operation& head = operations_.at(queue.front());
    if (head.finish > earliest || head.finish == absl::InfiniteFuture()) {
      continue;
    }
    // Of those that finish together, the one that was started first.
    if (head.finish == earliest && next.has_value() && *next < queue.front()) {
      continue;
    }
    earliest = head.finish;
    next = queue.front();
  }
  return next;
}

void SimulatedDevice::Step(OpId id) {
  Operation& operation = operations_.at(id);
  PAGED_KV_CHECK(operation.finish >= now_);
  now_ = operation.finish;
  if (Has(operation.fault, FaultKind::kLoseDevice)) {
    LoseDevice();
    return;
  }
  if (options_.detect_misuse) NoteMisuseAtFinish(id, operation);
  absl::Status status = Perform(operation);
  std::deque<OpId>& queue = queues_[operation.queue];
  PAGED_KV_CHECK(queue.front() == id);
  queue.pop_front();
  if (Has(operation.fault, FaultKind::kLoseCompletion)) {
    operation.silent = true;
  } else {
    Retire(id, std::move(status));
  }
  if (!queue.empty()) Begin(queue.front());
}

void SimulatedDevice::RunUntil(absl::Time time) {
  for (;;) {
    const std::optional<OpId> next = NextToFinish();
    if (!next.has_value() || operations_.at(*next).finish > time) break;
    Step(*next);
  }
  now_ = std::max(now_, time);
}

void SimulatedDevice::HostWorks(absl::Duration duration) {
  PAGED_KV_CHECK(duration < absl::InfiniteDuration());
  RunUntil(now_ + duration);
}

absl::StatusOr<size_t> SimulatedDevice::Poll(
    absl::Time deadline, absl::Span<Completion> completions) {
  while (done_.empty()) {
    const std::optional<OpId> next = NextToFinish();
    if (next.has_value() && operations_.at(*next).finish <= deadline) {
      Step(*next);
      continue;
    }
    if (lost_) {
      return absl::UnavailableError(
          absl::StrCat(info_.name, " is gone; Reset() may bring it back"));
    }
    if (deadline == absl::InfiniteFuture()) {
      return absl::FailedPreconditionError(
          absl::StrCat("a wait without an end: ", operations_.size(),
                       " operations are pending and none will finish"));
    }
    now_ = std::max(now_, deadline);
    return size_t{0};
  }
  RunUntil(now_);  // others that finish at the same time
  size_t count = 0;
  while (count < completions.size() && !done_.empty()) {
    completions[count++] = std::move(done_.front());
    done_.pop_front();
  }
  return count;
}

// ---- Effects ----

absl::Span<std::byte> SimulatedDevice::Memory(SlabRange range) {
  absl::StatusOr<absl::Span<std::byte>> memory = memory_->Translate(
      slabs_.at(range.slab).address + range.offset, range.bytes);
  PAGED_KV_CHECK(memory.ok());
  return *memory;
}

std::byte* SimulatedDevice::Image(SlabRange range) {
  return slabs_.at(range.slab).image + range.offset;
}

absl::Span<std::byte> SimulatedDevice::Target(const Operation& operation) {
  if (operation.kind != CardOperation::kDownload) {
    return Memory(operation.target);
  }
  return absl::MakeSpan(Image(operation.target),
                        static_cast<size_t>(operation.target.bytes));
}

void SimulatedDevice::Move(const Operation& operation, uint64_t bytes) {
  const std::byte* source = nullptr;
  switch (operation.kind) {
    case CardOperation::kUpload:
      source = Image(operation.target);
      break;
    case CardOperation::kDownload:
      source = Memory(operation.target).data();
      break;
    default:
      source = Memory(operation.source).data();
      break;
  }
  std::memcpy(Target(operation).data(), source, bytes);
}

absl::Status SimulatedDevice::Perform(const Operation& operation) {
  const bool fails = Has(operation.fault, FaultKind::kFail);
  if (operation.kind == CardOperation::kKernel) {
    return PerformKernel(operation, fails);
  }
  const uint64_t bytes = operation.target.bytes;
  if (fails) {
    const uint64_t moved = operation.fault->random % bytes;
    Move(operation, moved);
    return absl::InternalError(
        absl::StrCat(CardOperationName(operation.kind), " of ", bytes,
                     " bytes at ", operation.target.offset, " of slab ",
                     operation.target.slab.value(), " failed, injected fault"));
  }
  Move(operation, bytes);
  if (Has(operation.fault, FaultKind::kFlipBit)) {
    FlipBit(operation.kind, *operation.fault, Target(operation));
  }
  return absl::OkStatus();
}

absl::Status SimulatedDevice::PerformKernel(const Operation& operation,
                                            bool fails) {
  const std::string& instance =
      info_.compute_units[operation.launch.unit].instance;
  if (fails) {
    return absl::InternalError(absl::StrCat(
        "kernel ", instance, " reported an error, injected fault"));
  }
  const absl::StatusOr<KernelWork> work =
      runner_.spec(operation.launch.unit).work(operation.launch.arguments);
  if (absl::Status status = runner_.Run(operation.launch); !status.ok()) {
    return absl::InternalError(absl::StrCat(
        "kernel ", instance, " cannot be run: ", status.message()));
  }
  if (!Has(operation.fault, FaultKind::kFlipBit) || !work.ok()) {
    return absl::OkStatus();
  }
  // In what it wrote most of.
  const auto most =
      std::max_element(work->arguments.begin(), work->arguments.end(),
                       [](const ArgumentTraffic& a, const ArgumentTraffic& b) {
                         return a.bytes_written < b.bytes_written;
                       });
  if (most == work->arguments.end() || most->bytes_written == 0) {
    return absl::OkStatus();
  }
  const size_t index = static_cast<size_t>(most - work->arguments.begin());
  const absl::Span<std::byte> memory = operation.launch.arguments[index].memory;
  const auto written = static_cast<size_t>(
      std::min<uint64_t>(memory.size(), most->bytes_written));
  FlipBit(CardOperation::kKernel, *operation.fault, memory.first(written));
  return absl::OkStatus();
}

// ---- Ends ----

void SimulatedDevice::Retire(OpId id, absl::Status status) {
  const auto operation = operations_.find(id);
  PAGED_KV_CHECK(operation != operations_.end());
  for (SlabId slab : operation->second.slabs) --slabs_.at(slab).pending;
  done_.push_back({id, std::move(status), operation->second.started, now_});
  operations_.erase(operation);
}

void SimulatedDevice::CompleteAll(const absl::Status& status) {
  for (std::deque<OpId>& queue : queues_) queue.clear();
  while (!operations_.empty()) {
    Operation& operation = operations_.begin()->second;
    operation.started = std::min(operation.started, now_);
    Retire(operations_.begin()->first, status);
  }
  memory_->Poison();
  timing_.Reset(now_);
}

void SimulatedDevice::LoseDevice() {
  lost_ = true;
  CompleteAll(absl::UnavailableError(
      absl::StrCat(info_.name, " was lost, injected fault")));
}

absl::Status SimulatedDevice::Reset() {
  if (faults_.Next(CardOperation::kReset).has_value()) {
    return absl::UnavailableError(absl::StrCat(
        info_.name, " does not come back from its reset, injected fault"));
  }
  CompleteAll(
      absl::DataLossError(absl::StrCat("given up by a reset of ", info_.name)));
  lost_ = false;
  return absl::OkStatus();
}

}  // namespace paged_kv::fpga_dma

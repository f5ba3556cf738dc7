// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The card's memory and state; card_calls.cc has what blocks.

#include "fpga_dma/emulated_card/card.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fpga_dma/card_model/random_stream.h"
#include "fpga_dma/emulated_card/card_design.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint64_t kPageBytes = 4096;
// The stream of random numbers that SimulatedDevice uses for the same thing,
// so that both devices take the same times from the same seed.
constexpr uint64_t kJitterStream = 0x6A09E667F3BCC908u;

thread_local uint64_t bound_ticket = 0;

}  // namespace

CardBuffer::~CardBuffer() {
  if (owns_host) std::free(host);
}

absl::StatusOr<std::unique_ptr<Card>> Card::Create(CardOptions options) {
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<BankMemory> memory,
                            BankMemory::Create(options.board.banks));
  PAGED_KV_ASSIGN_OR_RETURN(KernelRunner runner,
                            KernelRunner::Create(options.board, Kernels()));
  return std::unique_ptr<Card>(
      new Card(std::move(options), std::move(memory), std::move(runner)));
}

Card::Card(CardOptions options, std::unique_ptr<BankMemory> memory,
           KernelRunner runner)
    : options_(std::move(options)),
      memory_(std::move(memory)),
      runner_(std::move(runner)),
      opened_(std::chrono::steady_clock::now()),
      timing_(options_.board),
      timeline_(&timing_),
      faults_(options_.faults),
      jitter_(options_.seed ^ kJitterStream) {}

absl::Status Card::LoadDesign(const xclbin::XclbinFile& file) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (lost_) return absl::UnavailableError("the card is gone");
    if (loaded_ == file.uuid()) return absl::OkStatus();
  }
  PAGED_KV_RETURN_IF_ERROR(CheckCardDesign(file, options_.board));
  std::lock_guard<std::mutex> lock(mutex_);
  loaded_ = file.uuid();
  return absl::OkStatus();
}

int Card::AllocateBuffer(const BufferRequest& request, uint32_t* handle) {
  if (request.bytes == 0) return -EINVAL;
  auto buffer = std::make_shared<CardBuffer>();
  buffer->bytes = request.bytes;
  buffer->flags = request.flags;
  buffer->host = request.host;
  if (request.host == nullptr && request.with_host) {
    const uint64_t whole =
        (request.bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    void* host = std::aligned_alloc(kPageBytes, whole);
    if (host == nullptr) return -ENOMEM;
    std::memset(host, 0, whole);
    buffer->host = static_cast<std::byte*>(host);
    buffer->owns_host = true;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (request.bank.has_value()) {
    if (lost_) return -ENODEV;
    if (!loaded_.has_value()) return -EINVAL;
    if (request.bank->value() >= options_.board.banks.size()) return -EINVAL;
    if (faults_.Next(CardOperation::kAllocate).has_value()) return -ENOSPC;
    const auto address = memory_->Allocate(*request.bank, request.bytes);
    if (!address.ok()) return -ENOSPC;
    buffer->bank = *request.bank;
    buffer->address = *address;
  }
  *handle = next_buffer_++;
  buffers_.emplace(*handle, std::move(buffer));
  return 0;
}

void Card::FreeBuffer(uint32_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return;
  if (found->second->bank != kNoBank) {
    PAGED_KV_CHECK(memory_->Free(found->second->address).ok());
  }
  buffers_.erase(found);
}

std::shared_ptr<CardBuffer> Card::Buffer(uint32_t handle) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = buffers_.find(handle);
  return found == buffers_.end() ? nullptr : found->second;
}

uint64_t Card::BytesToBufferEnd(uint64_t address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [handle, buffer] : buffers_) {
    if (buffer->bank == kNoBank || address < buffer->address) continue;
    const uint64_t offset = address - buffer->address;
    if (offset < buffer->bytes) return buffer->bytes - offset;
  }
  return 0;
}

// ---- What is to happen to a call ----

void Card::Bind(uint64_t ticket) { bound_ticket = ticket; }

CallPlan Card::DrawPlan(CardOperation operation) {
  CallPlan plan;
  plan.fault = faults_.Next(operation);
  plan.slowdown = 1 + (options_.max_slowdown - 1) * NextUniform(&jitter_);
  plan.card_lost = lost_ || loss_announced_;
  return plan;
}

CardCall Card::BeginCall(CardOperation operation) {
  const uint64_t ticket = std::exchange(bound_ticket, 0);
  std::lock_guard<std::mutex> lock(mutex_);
  CardCall call;
  call.generation = generation_;
  if (const CallPlan* plan = timeline_.Find(ticket); plan != nullptr) {
    call.ticket = ticket;
    call.plan = *plan;
    return call;
  }
  call.plan = DrawPlan(operation);
  const auto& fault = call.plan.fault;
  if (fault.has_value() && fault->kind == FaultKind::kLoseDevice) lost_ = true;
  return call;
}

// ---- The virtual clock ----

CardOperation ToOperation(CallKind kind) {
  switch (kind) {
    case CallKind::kUpload:
      return CardOperation::kUpload;
    case CallKind::kDownload:
      return CardOperation::kDownload;
    case CallKind::kCopy:
      return CardOperation::kCopy;
    case CallKind::kKernel:
      break;
  }
  return CardOperation::kKernel;
}

uint64_t Card::Announce(CallKind kind, uint32_t index, bool* hangs) {
  std::lock_guard<std::mutex> lock(mutex_);
  const CallPlan plan = DrawPlan(ToOperation(kind));
  *hangs = plan.hangs();
  const uint64_t ticket = timeline_.Announce(kind, index, plan);
  if (!plan.card_lost && plan.fault.has_value() &&
      plan.fault->kind == FaultKind::kLoseDevice) {
    // Later calls find no card; those that were announced before still end.
    loss_announced_ = true;
    losing_ticket_ = ticket;
  }
  return ticket;
}

std::optional<ModelledTimes::Finish> Card::NextFinish(absl::Time now) {
  std::lock_guard<std::mutex> lock(mutex_);
  return timeline_.NextFinish(now);
}

void Card::Retire(uint64_t ticket) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (loss_announced_ && ticket == losing_ticket_) lost_ = true;
  timeline_.Retire(ticket);
}

void Card::GiveUp(absl::Time now) {
  std::lock_guard<std::mutex> lock(mutex_);
  timeline_.GiveUp(now);
}

}  // namespace paged_kv::fpga_dma

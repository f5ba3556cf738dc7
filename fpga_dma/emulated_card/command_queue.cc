// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/emulated_card/command_queue.h"

#include <ert.h>

#include <cerrno>
#include <utility>

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kStateMask = 0xF;

// The words of a packet after its header that its buffer has room for.
uint32_t PayloadWords(const CardBuffer& packet) {
  return static_cast<uint32_t>(packet.bytes / 4) - 1;
}

uint32_t ToState(Card::KernelResult result) {
  switch (result) {
    case Card::KernelResult::kCompleted:
      return ERT_CMD_STATE_COMPLETED;
    case Card::KernelResult::kError:
      return ERT_CMD_STATE_ERROR;
    case Card::KernelResult::kAborted:
      break;
  }
  return ERT_CMD_STATE_ABORT;
}

}  // namespace

CommandQueue::CommandQueue(Card* card)
    : card_(card), units_(card->board().compute_units.size()) {}

CommandQueue::~CommandQueue() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    quit_ = true;
  }
  work_.notify_all();
  for (Unit& unit : units_) {
    if (unit.thread.joinable()) unit.thread.join();
  }
}

int CommandQueue::Submit(uint32_t handle) {
  const std::shared_ptr<CardBuffer> packet = card_->Buffer(handle);
  if (packet == nullptr || packet->host == nullptr ||
      packet->bytes < sizeof(ert_start_copybo_cmd)) {
    return -EINVAL;
  }
  const auto* header = reinterpret_cast<const ert_packet*>(packet->host);
  switch (header->opcode) {
    case ERT_START_CU:
      return SubmitRun(packet);
    case ERT_START_COPYBO:
      return SubmitCopy(packet);
    default:
      return -EOPNOTSUPP;
  }
}

int CommandQueue::SubmitRun(const std::shared_ptr<CardBuffer>& packet) {
  const auto* command =
      reinterpret_cast<const ert_start_kernel_cmd*>(packet->host);
  const uint32_t masks = 1 + command->extra_cu_masks;
  if (command->count < masks || command->count > PayloadWords(*packet)) {
    return -EINVAL;
  }
  const uint32_t* words = &command->cu_mask;
  Run run{packet, {}, {words + masks, words + command->count}};

  std::unique_lock<std::mutex> lock(mutex_);
  // XRT numbers units by base address, which is the board's order. Of those
  // that the packet allows, the one with the least to do.
  uint32_t chosen = static_cast<uint32_t>(units_.size());
  for (uint32_t i = 0; i < units_.size() && i < 32 * masks; ++i) {
    if ((words[i / 32] >> (i % 32) & 1) == 0) continue;
    if (chosen == units_.size() || units_[i].depth() < units_[chosen].depth()) {
      chosen = i;
    }
  }
  if (chosen == units_.size()) return -EINVAL;
  if (const int error = card_->StartKernel(&run.call); error != 0) {
    return error;
  }
  Unit& unit = units_[chosen];
  unit.queue.push_back(std::move(run));
  if (!unit.thread.joinable()) {
    unit.thread = std::thread([this, chosen] { Work(chosen); });
  }
  work_.notify_all();
  return 0;
}

int CommandQueue::SubmitCopy(const std::shared_ptr<CardBuffer>& packet) {
  auto* command = reinterpret_cast<ert_start_copybo_cmd*>(packet->host);
  const int error = card_->Copy(
      command->dst_bo_hdl, ert_copybo_dst_offset(command), command->src_bo_hdl,
      ert_copybo_src_offset(command), ert_copybo_size(command));
  if (error == -ENODEV || error == -EINVAL) return error;
  Finish(packet.get(),
         error == 0 ? ERT_CMD_STATE_COMPLETED : ERT_CMD_STATE_ERROR);
  return 0;
}

void CommandQueue::Work(uint32_t index) {
  std::unique_lock<std::mutex> lock(mutex_);
  Unit& unit = units_[index];
  while (true) {
    work_.wait(lock, [&] { return quit_ || !unit.queue.empty(); });
    if (quit_) return;
    const Run run = std::move(unit.queue.front());
    unit.queue.pop_front();
    unit.busy = true;
    lock.unlock();
    const Card::KernelResult result =
        card_->RunKernel(run.call, index, run.registers);
    lock.lock();
    unit.busy = false;
    lock.unlock();
    Finish(run.packet.get(), ToState(result));
    lock.lock();
  }
}

void CommandQueue::Finish(CardBuffer* packet, uint32_t state) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto* header = reinterpret_cast<uint32_t*>(packet->host);
    const uint32_t old = __atomic_load_n(header, __ATOMIC_RELAXED);
    __atomic_store_n(header, (old & ~kStateMask) | state, __ATOMIC_RELEASE);
    ++events_;
  }
  event_.notify_all();
}

bool CommandQueue::WaitForEvent(std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto happened = [&] { return events_ > 0; };
  if (limit.count() < 0) {
    event_.wait(lock, happened);
  } else if (!event_.wait_for(lock, limit, happened)) {
    return false;
  }
  --events_;
  return true;
}

}  // namespace paged_kv::fpga_dma

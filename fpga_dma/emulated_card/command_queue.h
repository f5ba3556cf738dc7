// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_COMMAND_QUEUE_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_COMMAND_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fpga_dma/emulated_card/card.h"

namespace paged_kv::fpga_dma {

// Executes XRT's command packets (ert.h) on a card: a thread per compute unit
// takes its runs in order, and tells the end in the packet's state and by an
// event, as the card's scheduler does.
//
// Thread safety: thread-safe.
class CommandQueue {
 public:
  // `card` outlives the queue.
  explicit CommandQueue(Card* card);
  // REQUIRES: nothing hangs (Card::Reset()).
  ~CommandQueue();

  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  // Submits the packet in buffer `handle`: a kernel run, or a copy on the card,
  // which is made at once. 0 or a negative errno value.
  int Submit(uint32_t handle);

  // Waits for the end of a command that no wait has told of yet; a negative
  // limit is none. Whether there was one.
  bool WaitForEvent(std::chrono::milliseconds limit);

 private:
  struct Run {
    std::shared_ptr<CardBuffer> packet;
    CardCall call;
    std::vector<uint32_t> registers;
  };
  struct Unit {
    std::deque<Run> queue;
    bool busy = false;
    std::thread thread;

    size_t depth() const { return queue.size() + (busy ? 1 : 0); }
  };

  int SubmitRun(const std::shared_ptr<CardBuffer>& packet);
  int SubmitCopy(const std::shared_ptr<CardBuffer>& packet);
  void Work(uint32_t unit);
  // Writes the state where XRT polls it, and posts the event.
  void Finish(CardBuffer* packet, uint32_t state);

  Card* const card_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable event_;
  std::vector<Unit> units_;
  uint64_t events_ = 0;
  bool quit_ = false;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_COMMAND_QUEUE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random traffic (admit, fork, append, swap out and in, write back, cancel) of
// the manager and the transfer queue over a card on which everything goes
// wrong. A token's K/V is a function of all tokens up to it, in every byte;
// what a sequence holds is compared wherever it is. So each sequence is right
// to the byte or was reported as failed, whatever the card does.

#ifndef PAGED_KV_TESTS_FPGA_DMA_FAULT_WORLD_H_
#define PAGED_KV_TESTS_FPGA_DMA_FAULT_WORLD_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fpga_dma/card_model/random_stream.h"
#include "fpga_dma/transfers/transfer_queue.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/fpga_dma/fault_card.h"

namespace paged_kv::fpga_dma {

class FaultWorld {
 public:
  using MakePages = std::function<std::unique_ptr<CardPages>(
      OperationTracker*, const DevicePool*)>;
  struct Counts {
    uint64_t steps = 0, device_steps = 0, bytes_compared = 0;
    uint64_t uploads = 0, downloads = 0, failed_transfers = 0, cancels = 0;
    uint64_t failed_requests = 0, lost_requests = 0, losses = 0, full_banks = 0;
    uint64_t corruptions = 0, timeouts = 0, resets = 0, dead_cards = 0;

    void Add(const Counts& other);
    std::string ToString() const;
  };

  // `device` outlives the world. A pool with host-side images only, if the
  // device's memory is reached by transfers alone.
  FaultWorld(Device* device, uint64_t seed, bool images,
             const MakePages& make_pages);

  // Ends with everything given back.
  void Run(int ticks);
  const Counts& counts() const { return counts_; }

 private:
  static constexpr uint32_t kBlockTokens = 4, kRowBytes = 16;
  static constexpr uint32_t kHostBlocks = 26, kDevicePages = 12;

  static BlockShape Shape() {
    BlockShape shape;
    shape.layers = 2;
    shape.kv_heads = 3;
    shape.head_dim = 8;
    shape.block_tokens = kBlockTokens;
    return shape;
  }
  uint64_t Random() { return NextRandom(&random_); }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(Random() % n); }
  bool OneIn(uint32_t n) { return Below(n) == 0; }

  // Calls f(offset of a token's row in its page, what is there) for all rows.
  template <typename F>
  static void ForEachRow(const std::vector<TokenId>& tokens, uint32_t at, F f) {
    uint64_t hash = 1469598103934665603u;
    for (uint32_t i = 0; i <= at; ++i) {
      hash = (hash ^ static_cast<uint64_t>(tokens[i])) * 1099511628211u;
    }
    const uint32_t rows = 2 * Shape().kv_heads * Shape().layers;
    for (uint32_t row = 0; row < rows; ++row) {
      uint64_t bytes[kRowBytes / 8];
      for (uint64_t& word : bytes) word = NextRandom(&hash);
      f((row * kBlockTokens + at % kBlockTokens) * kRowBytes, bytes);
    }
  }
  uint8_t* HostPage(uint32_t page) {
    return memory_.data() + page * PageBytes(Shape()).value();
  }

  void MakeQueue(Device* device, uint64_t seed, bool images);
  template <typename T, typename Make>
  void MakeOnFullBanks(T* made, Make make);
  void Tick();
  std::vector<SequenceId> Some(uint32_t most);
  SequenceId Any() { return Some(1).empty() ? SequenceId(0) : Some(1)[0]; }

  void Admit();
  void Append();
  void Fork();
  void Free(SequenceId id, bool failed);
  void Swap(bool in);
  void RunStep(const Admission& step, const std::vector<TokenId>& tokens);
  bool Execute(const StepView& view, SequenceId id,
               const std::vector<TokenId>& tokens);
  bool WriteTokens(const PlannedSequence& planned, Tier tier,
                   const std::vector<TokenId>& tokens);
  std::vector<int32_t> Table(SequenceId id, Tier tier);
  bool ReadCard(uint32_t page, PageContent* content);
  bool WriteCard(uint32_t page, const PageContent& content);
  void Compare(SequenceId id);

  void Send(absl::Span<const TierTransfer> transfers,
            TransferPriority priority);
  void Advance();
  void Report();
  // Until nothing moves.
  void Drain();
  // What a reset took is told to the manager, before anything else happens.
  bool NoticeLoss();
  void Check();

  uint64_t random_;
  Counts counts_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<OperationTracker> tracker_;
  std::unique_ptr<DevicePool> pool_;
  std::unique_ptr<TransferQueue> queue_;
  std::unique_ptr<CardPages> pages_;
  uint64_t generation_ = 0;
  std::map<SequenceId, std::vector<TokenId>> sequences_;
  std::map<TransferListId, std::vector<TierTransfer>> lists_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_FAULT_WORLD_H_

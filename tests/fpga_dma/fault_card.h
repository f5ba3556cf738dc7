// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the fault suite needs of a card, simulated or behind XRT: pages as
// kernels read and write them, and plans of faults.

#ifndef PAGED_KV_TESTS_FPGA_DMA_FAULT_CARD_H_
#define PAGED_KV_TESTS_FPGA_DMA_FAULT_CARD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/simulated_device.h"

namespace paged_kv::fpga_dma {

// Faults of every kind, each in some seeds alone and in others together, in the
// words of ParseFaultPlan().
inline constexpr uint64_t kFaultMixes = 9;
inline std::string FaultMix(uint64_t seed) {
  switch (seed % kFaultMixes) {
    case 0:
      return "upload:fail%0.08 download:fail%0.08 kernel:fail%0.08";
    case 1:
      return "upload:flip%0.12 download:flip%0.12";
    case 2:
      return "upload:hang%0.015 download:hang%0.015 kernel:hang%0.015";
    case 3:
      return "upload:delay=40ms%0.03 download:delay=40ms%0.03 "
             "kernel:delay=40ms%0.03";
    case 4:
      return "upload:silent%0.04 download:silent%0.04 kernel:silent%0.04";
    case 5:
      return "upload:lose%0.01 download:lose%0.01 kernel:lose%0.01";
    case 6:
      return "upload:hang%0.06 reset:fail%0.7";
    case 7:
      return "allocate:fail%0.1 upload:fail%0.03 upload:flip%0.03 "
             "download:flip%0.03 upload:hang%0.005 download:silent%0.02 "
             "kernel:fail%0.03 kernel:delay=40ms%0.01 download:lose%0.003";
    default:
      return "";
  }
}

// A page in own order: [layer][head][K|V][token], as in host memory.
using PageContent = std::vector<uint8_t>;

// Pages of a pool as kernels see them.
class CardPages {
 public:
  virtual ~CardPages() = default;
  // False if the card did not let it be done; then nothing is known of the page
  // that was to be written. REQUIRES: no transfer of the page is in flight.
  virtual bool Read(uint32_t page, PageContent* content) = 0;
  virtual bool Write(uint32_t page, const PageContent& content) = 0;

 protected:
  // Calls f(range of whole beats, offset in the content, bytes) for each layer
  // of each stripe.
  template <typename F>
  static void ForEachRun(const DevicePool& pool, uint32_t page, F f) {
    const PoolGeometry& geometry = pool.geometry();
    uint64_t first_head = 0;
    for (uint32_t stripe = 0; stripe < geometry.stripes(); ++stripe) {
      for (uint32_t l = 0; l < geometry.shape().layers; ++l) {
        const uint64_t head = l * geometry.shape().kv_heads + first_head;
        f(pool.Range(page, stripe, {l, 1}), head * geometry.HeadBytes(),
          geometry.LayerBytes(stripe));
      }
      first_head += geometry.Heads(stripe);
    }
  }
};

// Those of a simulated device: its memory itself.
class SimulatedCardPages final : public CardPages {
 public:
  SimulatedCardPages(SimulatedDevice* device, const DevicePool* pool)
      : device_(device), pool_(pool) {}

  bool Read(uint32_t page, PageContent* content) override {
    ForEachRun(*pool_, page, [&](SlabRange range, uint64_t at, uint64_t n) {
      std::memcpy(content->data() + at,
                  device_->DeviceMemory(range).value().data(), n);
    });
    return true;
  }
  bool Write(uint32_t page, const PageContent& content) override {
    ForEachRun(*pool_, page, [&](SlabRange range, uint64_t at, uint64_t n) {
      std::memcpy(device_->DeviceMemory(range).value().data(),
                  content.data() + at, n);
    });
    return true;
  }

 private:
  SimulatedDevice* const device_;
  const DevicePool* const pool_;
};

// Those of any device whose pool has host-side images: by transfers of its own,
// over the same faults, repeated until two readings agree.
class TransferredCardPages final : public CardPages {
 public:
  TransferredCardPages(OperationTracker* tracker, const DevicePool* pool)
      : tracker_(tracker), pool_(pool) {}

  bool Read(uint32_t page, PageContent* content) override {
    PageContent again(content->size());
    const uint64_t generation = tracker_->generation();
    for (int i = 0; i < kAttempts; ++i) {
      if (Once(page, content) && Once(page, &again) && *content == again) {
        return tracker_->generation() == generation;
      }
      if (tracker_->generation() != generation) return false;
    }
    return false;
  }
  bool Write(uint32_t page, const PageContent& content) override {
    const uint64_t generation = tracker_->generation();
    PageContent found(content.size());
    for (int i = 0; i < kAttempts; ++i) {
      bool good = true;
      ForEachRun(*pool_, page, [&](SlabRange range, uint64_t at, uint64_t n) {
        std::memcpy(Image(range), content.data() + at, n);
        good = good && Move(range, /*up=*/true);
      });
      good = good && Read(page, &found) && found == content;
      if (tracker_->generation() != generation) return false;
      if (good) return true;
    }
    return false;
  }

 private:
  static constexpr int kAttempts = 30;

  std::byte* Image(SlabRange range) {
    return tracker_->device()->HostImage(range.slab).value().data() +
           range.offset;
  }
  bool Once(uint32_t page, PageContent* content) {
    bool good = true;
    ForEachRun(*pool_, page, [&](SlabRange range, uint64_t at, uint64_t n) {
      good = good && Move(range, /*up=*/false);
      if (good) std::memcpy(content->data() + at, Image(range), n);
    });
    return good;
  }
  bool Move(SlabRange range, bool up) {
    const auto op =
        up ? tracker_->StartUpload(range, tracker_->QuietestUpload())
           : tracker_->StartDownload(range, tracker_->QuietestDownload());
    if (!op.ok()) return false;
    while (true) {
      const auto completion = tracker_->Take(*op);
      if (completion.has_value()) return completion->status.ok();
      tracker_->Pump(absl::InfiniteFuture());
    }
  }

  OperationTracker* const tracker_;
  const DevicePool* const pool_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_FAULT_CARD_H_

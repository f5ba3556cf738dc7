// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A transfer queue on a simulated card, with host pages in random bytes and a
// model that copies page by page and byte by byte.

#ifndef PAGED_KV_TESTS_FPGA_DMA_TRANSFER_RIG_H_
#define PAGED_KV_TESTS_FPGA_DMA_TRANSFER_RIG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/card_model/random_stream.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/simulated_device.h"
#include "fpga_dma/transfers/transfer_queue.h"
#include "gtest/gtest.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::fpga_dma {

// Banks of which all but the last have a unit of kv_scatter and one of
// paged_decode, whose lists are in the last one, as on the U280.
inline Board RigBoard(uint32_t pool_banks, uint32_t channels) {
  Board board;
  board.name = "rig";
  for (uint32_t i = 0; i <= pool_banks; ++i) {
    BoardBank bank;
    bank.name = absl::StrCat("BANK[", i, "]");
    bank.base_address = uint64_t{i} << 40;
    bank.bytes = uint64_t{2} << 30;
    bank.bytes_per_second = 19.2e9;
    board.banks.push_back(bank);
  }
  board.dma = {channels, absl::Microseconds(13), 12e9};
  board.copy = {absl::Microseconds(50), 19.2e9};
  board.launch = absl::Microseconds(50);
  board.clock_hz = 300e6;
  board.dsps = 100;
  board.dsp_budget = 0.6;
  for (uint32_t i = 0; i < pool_banks; ++i) {
    BoardComputeUnit unit;
    unit.kernel = "kv_scatter";
    unit.instance = absl::StrCat("kv_scatter_", i);
    unit.ports = {{"slab", BankId(i)},
                  {"kv", BankId(i)},
                  {"work", BankId(pool_banks)},
                  {"status", BankId(pool_banks)}};
    board.compute_units.push_back(unit);
    unit.kernel = "paged_decode";
    unit.instance = absl::StrCat("paged_decode_", i);
    unit.ports = {{"kv", BankId(i)}};
    for (const char* port : {"work", "table", "queries", "out", "status"}) {
      unit.ports.emplace_back(port, BankId(pool_banks));
    }
    unit.lanes = 64;
    board.compute_units.push_back(unit);
  }
  return board;
}

struct RigOptions {
  // An audit of the queue looks at every page that it has room for.
  RigOptions() { queue.max_pages = 4096; }

  BlockShape shape;
  uint32_t host_pages = 16;
  uint32_t device_pages = 16;
  uint32_t stripes = 1;
  uint32_t splits = 1;
  SlabKind kind = SlabKind::kHostVisible;
  uint32_t channels = 2;
  bool scatter = true;     // the card has the kernel
  bool host_gaps = false;  // between pages, layers, heads, K and V
  bool detect_misuse = true;
  double max_slowdown = 1;
  uint64_t seed = 1;
  FaultPlanOptions faults;
  absl::Span<const KernelSpec> kernels = Kernels();  // outlive the rig
  OperationLimits limits;
  TransferQueueOptions queue;
};

class TransferRig {
 public:
  using Page = std::vector<uint8_t>;  // as an own page without gaps

  explicit TransferRig(const RigOptions& options)
      : options_(options), random_(options.seed) {
    SimulatedDeviceOptions device;
    device.board = RigBoard(options.stripes * options.splits, options.channels);
    if (options.scatter) {
      device.kernels = options.kernels;
    } else {
      device.board.compute_units.clear();
    }
    device.seed = options.seed;
    device.max_slowdown = options.max_slowdown;
    device.faults = options.faults;
    device.detect_misuse = options.detect_misuse;
    device_ = SimulatedDevice::Create(device).value();
    tracker_ =
        std::make_unique<OperationTracker>(device_.get(), options.limits);
    DevicePoolOptions pool;
    pool.shape = options.shape;
    pool.num_pages = options.device_pages;
    pool.stripes = options.stripes;
    pool.splits = options.splits;
    pool.kind = options.kind;
    pool_ = DevicePool::Create(device_.get(), pool).value();
    MakeHostPages();
    queue_ =
        TransferQueue::Create(tracker_.get(), pool_.get(), host_, options.queue)
            .value();
  }

  uint64_t Random() { return NextRandom(&random_); }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(Random() % n); }

  SimulatedDevice& device() { return *device_; }
  OperationTracker& tracker() { return *tracker_; }
  DevicePool& pool() { return *pool_; }
  TransferQueue& queue() { return *queue_; }
  const attention::KvPages& host() const { return host_; }
  LayerRange AllLayers() const { return {0, options_.shape.layers}; }

  // Fills a host page, or layers of a device page as a kernel would, with
  // random bytes.
  void FillHost(uint32_t page) {
    for (uint32_t layer = 0; layer < options_.shape.layers; ++layer) {
      ForEachHostRun(page, layer, [&](uint8_t* bytes, uint64_t, uint64_t n) {
        FillRandom(bytes, n);
      });
    }
  }
  void FillDevice(uint32_t page, LayerRange layers) {
    for (uint32_t l = layers.first; l < layers.end(); ++l) {
      for (uint32_t head = 0; head < options_.shape.kv_heads; ++head) {
        const absl::Span<std::byte> bytes = DeviceHead(page, l, head);
        FillRandom(bytes.data(), bytes.size());
      }
    }
  }

  Page HostPage(uint32_t page) const {
    Page result(PageBytes(options_.shape).value());
    const uint64_t layer_bytes = result.size() / options_.shape.layers;
    for (uint32_t layer = 0; layer < options_.shape.layers; ++layer) {
      ForEachHostRun(page, layer,
                     [&](const uint8_t* bytes, uint64_t at, uint64_t n) {
                       std::memcpy(&result[layer * layer_bytes + at], bytes, n);
                     });
    }
    return result;
  }
  Page DevicePage(uint32_t page) {
    Page result(PageBytes(options_.shape).value());
    uint8_t* to = result.data();
    for (uint32_t layer = 0; layer < options_.shape.layers; ++layer) {
      for (uint32_t head = 0; head < options_.shape.kv_heads; ++head) {
        const absl::Span<const std::byte> bytes = DeviceHead(page, layer, head);
        std::memcpy(to, bytes.data(), bytes.size());
        to += bytes.size();
      }
    }
    return result;
  }
  // Copies layers of `from` to `to`.
  void CopyLayers(const Page& from, LayerRange layers, Page* to) const {
    const size_t n = from.size() / options_.shape.layers;
    std::memcpy(to->data() + layers.first * n, from.data() + layers.first * n,
                layers.count * n);
  }

  // One head of one layer of a device page, found without PoolGeometry.
  absl::Span<std::byte> DeviceHead(uint32_t page, uint32_t layer,
                                   uint32_t head) {
    const uint32_t heads = options_.shape.kv_heads;
    const uint64_t head_bytes =
        PageBytes(options_.shape).value() / heads / options_.shape.layers;
    uint32_t stripe = 0, first = 0, end = 0;
    for (;; ++stripe) {
      first = stripe * heads / options_.stripes;
      end = (stripe + 1) * heads / options_.stripes;
      if (head < end) break;
    }
    const uint64_t layer_stride = ((end - first) * head_bytes + 63) / 64 * 64;
    const uint32_t per_split = options_.device_pages / options_.splits;
    const SlabId slab =
        pool_->slab(stripe * options_.splits + page / per_split);
    const uint64_t offset =
        (uint64_t{page % per_split} * options_.shape.layers + layer) *
            layer_stride +
        (head - first) * head_bytes;
    // Whole beats, as the device wants ranges; then what was asked for.
    const uint64_t begin = offset / 64 * 64;
    const uint64_t bytes = (offset + head_bytes + 63) / 64 * 64 - begin;
    return device_->DeviceMemory({slab, begin, bytes})
        .value()
        .subspan(offset - begin, head_bytes);
  }

  // Submits, waits, returns the result.
  TransferResult Move(const std::vector<PageTransfer>& pages,
                      TransferPriority priority = TransferPriority::kDecode) {
    const TransferListId id = queue_->Submit(pages, priority).value();
    EXPECT_TRUE(queue_->Wait(id, absl::InfiniteFuture()).ok());
    absl::optional<TransferResult> result = queue_->TakeResult();
    EXPECT_TRUE(result.has_value());
    EXPECT_EQ(result->id, id);
    return *std::move(result);
  }

  void ExpectNoMisuse() const {
    for (const std::string& misuse : device_->misuses()) {
      ADD_FAILURE() << misuse;
    }
  }

 private:
  void MakeHostPages() {
    const BlockShape& shape = options_.shape;
    host_.shape = shape;
    host_.num_pages = options_.host_pages;
    host_.layout = OwnPageLayout(shape, nullptr);
    if (options_.host_gaps) {
      host_.layout.kv_stride += 64;
      host_.layout.head_stride += 192;
      host_.layout.layer_stride =
          host_.layout.head_stride * shape.kv_heads + 320;
      host_.layout.page_stride =
          host_.layout.layer_stride * shape.layers + 4096;
    }
    memory_.resize(static_cast<size_t>(host_.layout.page_stride) *
                   options_.host_pages);
    host_.layout.base = memory_.data();
    for (uint32_t page = 0; page < options_.host_pages; ++page) FillHost(page);
  }

  void FillRandom(void* bytes, uint64_t n) {
    auto* to = static_cast<uint8_t*>(bytes);
    for (uint64_t i = 0; i < n; i += sizeof(uint64_t)) {
      const uint64_t random = Random();
      std::memcpy(to + i, &random, std::min(n - i, sizeof(random)));
    }
  }

  // run(host bytes, offset in the layer of an own page, bytes)
  template <typename Run>
  void ForEachHostRun(uint32_t page, uint32_t layer, Run run) const {
    const BlockShape& shape = options_.shape;
    const uint64_t k = KDataBytes(shape).value() + ScaleBytes(shape).value();
    const uint64_t v = VDataBytes(shape).value() + ScaleBytes(shape).value();
    auto* base = static_cast<uint8_t*>(host_.layout.base);
    for (uint32_t head = 0; head < shape.kv_heads; ++head) {
      run(base + KSliceOffset(host_.layout, page, layer, head), head * (k + v),
          k);
      run(base + VSliceOffset(host_.layout, page, layer, head),
          head * (k + v) + k, v);
    }
  }

  const RigOptions options_;
  uint64_t random_;
  std::vector<uint8_t> memory_;
  attention::KvPages host_;
  std::unique_ptr<SimulatedDevice> device_;
  std::unique_ptr<OperationTracker> tracker_;
  std::unique_ptr<DevicePool> pool_;
  std::unique_ptr<TransferQueue> queue_;
};

inline PageTransfer Up(uint32_t host, uint32_t device, LayerRange layers) {
  return {TransferDirection::kUpload, host, device, layers};
}
inline PageTransfer Down(uint32_t device, uint32_t host, LayerRange layers) {
  return {TransferDirection::kDownload, host, device, layers};
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_TRANSFER_RIG_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Moves pages to a card without hardware and back, so that the card library's
// headers and its link line are needed.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/decode/decode_costs.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/simulated_device.h"
#include "fpga_dma/transfers/thread_safe_transfer_queue.h"
#include "fpga_dma/transfers/transfer_queue.h"

namespace {

namespace dma = paged_kv::fpga_dma;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "move_pages: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Require(absl::StatusOr<T> value) {
  Require(value.status());
  return *std::move(value);
}

void Move(dma::TransferQueue* queue, dma::TransferDirection direction) {
  std::vector<dma::PageTransfer> pages;
  for (uint32_t page = 0; page < 4; ++page) {
    pages.push_back({direction, page, 7 - 2 * page, {0, 2}});
  }
  const dma::TransferListId list =
      Require(queue->Submit(pages, dma::TransferPriority::kDecode));
  Require(queue->Wait(list, absl::InfiniteFuture()));
  Require(queue->TakeResult()->status);
}

}  // namespace

int main() {
  dma::SimulatedDeviceOptions options;
  options.board = Require(dma::BuiltinBoard("u250"));
  options.kernels = dma::Kernels();
  const std::unique_ptr<dma::SimulatedDevice> device =
      Require(dma::SimulatedDevice::Create(std::move(options)));

  paged_kv::BlockShape shape;
  shape.layers = 2;
  shape.kv_heads = 4;
  shape.head_dim = 64;
  shape.block_tokens = 16;
  dma::DevicePoolOptions pool_options;
  pool_options.shape = shape;
  pool_options.num_pages = 8;
  pool_options.stripes = 4;
  const std::unique_ptr<dma::DevicePool> pool =
      Require(dma::DevicePool::Create(device.get(), pool_options));

  std::vector<uint8_t> memory(4 * paged_kv::PageBytes(shape).value());
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<uint8_t>(i * 31 + i / 251);
  }
  const std::vector<uint8_t> sent = memory;
  paged_kv::attention::KvPages host;
  host.shape = shape;
  host.num_pages = 4;
  host.layout = paged_kv::OwnPageLayout(shape, memory.data());

  dma::OperationTracker tracker(device.get(), dma::OperationLimits());
  const std::unique_ptr<dma::TransferQueue> queue =
      Require(dma::TransferQueue::Create(&tracker, pool.get(), host, {}));
  Move(queue.get(), dma::TransferDirection::kUpload);
  memory.assign(memory.size(), 0);
  Move(queue.get(), dma::TransferDirection::kDownload);
  if (memory != sent) {
    std::fprintf(stderr, "move_pages: other bytes came back\n");
    return 1;
  }
  std::printf("4 pages moved in %s of the card's time\n",
              absl::FormatDuration(device->Now() - absl::UnixEpoch()).c_str());
  return 0;
}

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/transfer_order.h"

#include <algorithm>

#include "paged_kv/check.h"

namespace paged_kv::fpga_dma {
namespace {

bool Writes(const PageTransfer& transfer, bool host) {
  return host == (transfer.direction == TransferDirection::kDownload);
}

bool Contains(LayerRange outer, LayerRange inner) {
  return outer.first <= inner.first && inner.end() <= outer.end();
}

}  // namespace

uint32_t TransferOrder::Add(Item item, const PageTransfer& transfer) {
  const bool inserted =
      nodes_.emplace(item, Node{transfer, 0, false, {}}).second;
  PAGED_KV_CHECK(inserted);
  uint32_t waits = 0;
  for (const bool host : {true, false}) {
    waits += WaitForEarlier(item, transfer, host);
    pages_[host ? HostKey(transfer.host_page) : DeviceKey(transfer.device_page)]
        .push_back(item);
  }
  nodes_.at(item).waits = waits;
  return waits;
}

uint32_t TransferOrder::WaitForEarlier(Item item, const PageTransfer& transfer,
                                       bool host) {
  const auto found = pages_.find(host ? HostKey(transfer.host_page)
                                      : DeviceKey(transfer.device_page));
  if (found == pages_.end()) return 0;
  const bool writes = Writes(transfer, host);
  uint32_t waits = 0;
  // Newest first: a write that a later one covers leaves nothing to read.
  absl::InlinedVector<LayerRange, 4> written;
  for (auto it = found->second.rbegin(); it != found->second.rend(); ++it) {
    Node& earlier = nodes_.at(*it);
    if (!Overlap(earlier.transfer.layers, transfer.layers)) continue;
    const bool earlier_writes = Writes(earlier.transfer, host);
    // Two that read a device page could meet in its host-side image.
    if (host && !writes && !earlier_writes) continue;
    const bool covered =
        std::any_of(written.begin(), written.end(), [&](LayerRange later) {
          return Contains(later, earlier.transfer.layers);
        });
    earlier.later.push_back({item, !writes && earlier_writes && !covered});
    ++waits;
    if (earlier_writes) written.push_back(earlier.transfer.layers);
  }
  return waits;
}

void TransferOrder::Finish(Item item, bool arrived,
                           std::vector<Released>* released) {
  const auto found = nodes_.find(item);
  PAGED_KV_CHECK(found != nodes_.end());
  const Node node = std::move(found->second);
  nodes_.erase(found);
  Remove(HostKey(node.transfer.host_page), item);
  Remove(DeviceKey(node.transfer.device_page), item);
  for (const Edge& edge : node.later) {
    Node& later = nodes_.at(edge.item);
    later.spoiled = later.spoiled || (edge.reads_it && !arrived);
    PAGED_KV_CHECK(later.waits > 0);
    if (--later.waits == 0) released->push_back({edge.item, later.spoiled});
  }
}

void TransferOrder::Remove(uint64_t key, Item item) {
  const auto found = pages_.find(key);
  PAGED_KV_CHECK(found != pages_.end());
  Items& items = found->second;
  items.erase(std::find(items.begin(), items.end(), item));
  if (items.empty()) pages_.erase(found);
}

bool TransferOrder::HostPageBusy(uint32_t page) const {
  return pages_.contains(HostKey(page));
}

bool TransferOrder::DevicePageBusy(uint32_t page) const {
  return pages_.contains(DeviceKey(page));
}

}  // namespace paged_kv::fpga_dma

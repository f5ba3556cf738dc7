// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_ORDER_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "fpga_dma/transfers/transfer.h"

namespace paged_kv::fpga_dma {

// Which page transfers must wait for which. Two that touch common layers of a
// page, of the host or of the device, happen in the order in which they were
// added unless both only read a host page. What reads a page that an earlier
// one failed to write is spoiled: it must not run.
//
// Thread safety: thread-compatible.
class TransferOrder {
 public:
  using Item = uint32_t;  // the caller's name for a transfer, reusable
  struct Released {
    Item item;
    bool spoiled;
  };

  // How many earlier ones `item` waits for; 0: it may run.
  uint32_t Add(Item item, const PageTransfer& transfer);
  // `item` ended, and wrote its target if `arrived`. Appends those that waited
  // for it last.
  void Finish(Item item, bool arrived, std::vector<Released>* released);

  // Whether an unfinished transfer reads or writes the page.
  bool HostPageBusy(uint32_t page) const;
  bool DevicePageBusy(uint32_t page) const;
  size_t size() const { return nodes_.size(); }

 private:
  struct Edge {
    Item item;
    bool reads_it;  // `item` reads what this one writes
  };
  struct Node {
    PageTransfer transfer;
    uint32_t waits = 0;
    bool spoiled = false;
    std::vector<Edge> later;
  };
  using Items = absl::InlinedVector<Item, 4>;

  static uint64_t HostKey(uint32_t page) { return page; }
  static uint64_t DeviceKey(uint32_t page) { return page | uint64_t{1} << 32; }
  uint32_t WaitForEarlier(Item item, const PageTransfer& transfer, bool host);
  void Remove(uint64_t key, Item item);

  absl::flat_hash_map<Item, Node> nodes_;
  absl::flat_hash_map<uint64_t, Items> pages_;  // oldest first
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_ORDER_H_

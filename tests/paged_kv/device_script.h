// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The notation of the failure cases for caches with a device tier.

#ifndef PAGED_KV_TESTS_PAGED_KV_DEVICE_SCRIPT_H_
#define PAGED_KV_TESTS_PAGED_KV_DEVICE_SCRIPT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {

using Ids = std::vector<SequenceId>;
using Transfers = std::vector<TierTransfer>;

inline KvCacheOptions DeviceOptions(uint32_t blocks, uint32_t block_tokens,
                                    uint32_t pages, uint32_t splits = 1) {
  KvCacheOptions options = PoolOptions(blocks, block_tokens);
  options.device.pages = BlockCount(pages);
  options.device.splits = splits;
  return options;
}

class DeviceScript : public CacheScript {
 public:
  using CacheScript::CacheScript;

  Transfers In(const Ids& ids) { return Checked(cache().SwapIn(ids)); }
  Transfers Out(const Ids& ids) { return Checked(cache().SwapOut(ids)); }
  Transfers Back(uint32_t pages) {
    return Checked(cache().WriteBack(BlockCount(pages)));
  }
  void Done(const Transfers& transfers, bool moved = true) {
    for (const TierTransfer& transfer : transfers) {
      const absl::Status status = cache().FinishTransfer(transfer.id, moved);
      EXPECT_TRUE(status.ok()) << status;
      Check();
    }
  }
  // A sequence at home on the device.
  SequenceId NewOnDevice(const std::vector<TokenId>& prompt) {
    const SequenceId id = New(prompt);
    Done(In({id}));
    return id;
  }
  std::vector<uint32_t> Pages(SequenceId id) {
    const auto residency = Residency(id);
    std::vector<uint32_t> pages;
    for (const BlockResidency& block : residency) {
      pages.push_back(block.device_page);
    }
    return pages;
  }
  std::vector<BlockResidency> Residency(SequenceId id) {
    std::vector<BlockResidency> residency(Table(id).size());
    const auto blocks =
        cache().ExportResidency(id, GroupId(0), absl::MakeSpan(residency));
    EXPECT_TRUE(blocks.ok()) << blocks.status();
    return residency;
  }
  DevicePoolStats Device() { return cache().Stats().device_pools[0]; }

  // The page table of one sequence.
  absl::StatusOr<std::vector<int32_t>> Export(SequenceId id, Tier tier) {
    std::vector<int32_t> pages(Table(id).size()), indptr(2), last(1), first(1);
    const PageTableBuffers buffers{absl::MakeSpan(indptr),
                                   absl::MakeSpan(pages), absl::MakeSpan(last),
                                   absl::MakeSpan(first)};
    const Ids ids = {id};
    const auto table = cache().ExportPageTable(ids, GroupId(0), buffers, tier);
    if (!table.ok()) return table.status();
    return std::vector<int32_t>(table->page_indices.begin(),
                                table->page_indices.end());
  }

 private:
  Transfers Checked(
      const absl::StatusOr<absl::Span<const TierTransfer>>& transfers) {
    EXPECT_TRUE(transfers.ok()) << transfers.status();
    Check();
    if (!transfers.ok()) return {};
    return Transfers(transfers->begin(), transfers->end());
  }
};

}  // namespace paged_kv

#endif  // PAGED_KV_TESTS_PAGED_KV_DEVICE_SCRIPT_H_

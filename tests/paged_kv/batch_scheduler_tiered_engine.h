// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// FakeEngine's sibling with two memories: prompts are computed in the host's,
// decodes on the device, and what the scheduler asks for is moved in between,
// a page at a time, whenever the test says so. The target of a transfer is
// overwritten with rubbish as soon as it begins and keeps it if it fails, so
// that whoever reads K/V too early, or from the wrong tier, is noticed.

#ifndef PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_TIERED_ENGINE_H_
#define PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_TIERED_ENGINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/status_macros.h"
#include "tests/paged_kv/batch_scheduler_fake_engine.h"

namespace paged_kv {

class TieredEngine {
 public:
  // Both are borrowed.
  TieredEngine(KvCacheManager* cache, BatchScheduler* scheduler)
      : cache_(cache), scheduler_(scheduler) {
    const auto& groups = cache->options().groups;
    const CacheStats stats = cache->Stats();
    for (uint32_t g = 0; g < groups.size(); ++g) {
      uint32_t first = 0;
      while (!SamePool(groups[first].shape, groups[g].shape)) ++first;
      pool_of_.push_back(first);
      const size_t tokens = groups[g].shape.block_tokens;
      uint32_t sharing = 0;
      for (const LayerGroup& group : groups) {
        sharing += SamePool(group.shape, groups[g].shape) ? 1 : 0;
      }
      host_.emplace_back(cache->PoolBlocks(GroupId(g)).value() * tokens);
      device_.emplace_back(cache->options().device.pages.value() * sharing *
                           tokens);
    }
  }

  absl::Status Submit(const TestRequest& request) {
    PAGED_KV_RETURN_IF_ERROR(request.Borrow(
        [this](const GenerationRequest& r) { return scheduler_->Submit(r); }));
    histories_[request.id] =
        std::vector<TokenHistory>(request.samples, TokenHistory(request));
    return absl::OkStatus();
  }

  // Proposes drafts of which the first `right` are, and then `wrong` are not.
  absl::Status Propose(RequestId id, uint32_t sample, size_t right,
                       size_t wrong) {
    const TokenHistory& history = histories_[id][sample];
    return scheduler_->Propose(
        id, sample, Guess(history, id, sample, right + wrong, right));
  }

  size_t in_flight() const { return launched_.size(); }
  size_t transfers() const { return transfers_.size(); }
  const std::vector<WorkItem>& newest_items() const {
    return launched_.back().items;
  }

  // Schedules a step and begins its transfers. False if there is nothing to do.
  // A step that cannot run yet stays the newest until Export() succeeds.
  absl::StatusOr<bool> Launch() {
    PAGED_KV_ASSIGN_OR_RETURN(const ScheduledStep step, scheduler_->Schedule());
    if (!step.empty()) {
      Launched launched;
      launched.id = step.id;
      launched.outputs = step.outputs;
      launched.items.assign(step.items.begin(), step.items.end());
      for (const WorkItem& item : step.items) {
        launched.inputs.emplace_back(item.tokens.begin(), item.tokens.end());
        launched.drafts.emplace_back(item.drafts.begin(), item.drafts.end());
      }
      PAGED_KV_ASSIGN_OR_RETURN(const StepView view, cache_->View(step.id));
      launched.copies.assign(view.copies.begin(), view.copies.end());
      launched_.push_back(std::move(launched));
    }
    BeginTransfers();
    return !step.empty();
  }

  // Reads the newest step's tables; false if its K/V has not arrived.
  absl::StatusOr<bool> Export() {
    Launched& step = launched_.back();
    if (!step.tables.empty()) return true;
    PAGED_KV_ASSIGN_OR_RETURN(const bool ready,
                              scheduler_->ReadyToRun(step.id));
    if (!ready) return false;
    for (const WorkItem& item : step.items) {
      for (uint32_t g = 0; g < pool_of_.size(); ++g) {
        PAGED_KV_RETURN_IF_ERROR(ExportOne(g, item, &step));
      }
    }
    return true;
  }

  // Runs the oldest launched step and completes it.
  absl::Status Land() {
    const Launched step = std::move(launched_.front());
    launched_.pop_front();
    for (const BlockCopy& copy : step.copies) {
      const uint32_t g = copy.group.value();
      const uint32_t source =
          copy.tier == Tier::kHost ? copy.source.value() : copy.source_page;
      const uint32_t target =
          copy.tier == Tier::kHost ? copy.target.value() : copy.target_page;
      std::copy_n(Page(copy.tier, g, source), copy.filled_tokens,
                  Page(copy.tier, g, target));
    }
    PAGED_KV_RETURN_IF_ERROR(ForEachSlot(step, /*write=*/true));
    PAGED_KV_RETURN_IF_ERROR(ForEachSlot(step, /*write=*/false));
    const std::vector<TokenId> sampled = Sample(step);
    if (sampled.size() != step.outputs) {
      return absl::InternalError(absl::StrCat(
          "step wants ", step.outputs, " outputs, its items ", sampled.size()));
    }
    return scheduler_->Complete(step.id, sampled);
  }

  absl::Status Crash() {
    launched_.clear();
    return scheduler_->AbandonStepsInFlight();
  }

  // The device is reset: nobody knows how steps and transfers in flight went,
  // and its memory holds rubbish.
  absl::StatusOr<DeviceLoss> LoseDevice() {
    PAGED_KV_RETURN_IF_ERROR(Crash());
    for (const TierTransfer& transfer : std::exchange(transfers_, {})) {
      PAGED_KV_RETURN_IF_ERROR(scheduler_->FinishTransfer(transfer.id, false));
    }
    for (std::vector<uint64_t>& pool : device_) {
      std::fill(pool.begin(), pool.end(), 0xBADu);
    }
    return scheduler_->LoseDevice();
  }

  // Ends the transfer at `index` of those in flight.
  absl::Status EndTransfer(size_t index, bool moved) {
    const TierTransfer transfer = transfers_[index];
    transfers_.erase(transfers_.begin() + static_cast<ptrdiff_t>(index));
    const uint32_t g = transfer.group.value();
    if (moved) {
      std::copy_n(Page(transfer.source_tier, g, transfer.source_page),
                  transfer.filled_tokens,
                  Page(transfer.target_tier, g, transfer.target_page));
    }
    const absl::Status status = scheduler_->FinishTransfer(transfer.id, moved);
    BeginTransfers();  // a download that failed may have been started again
    return status;
  }
  const TierTransfer& transfer(size_t index) const { return transfers_[index]; }

 private:
  struct Table {
    std::vector<int32_t> pages;
    size_t block_tokens = 0, sink_pages = 0, first_token = 0;
    size_t PageAt(size_t position) const {
      size_t place = position / block_tokens;
      if (first_token > 0 && place >= sink_pages) {
        place = sink_pages + (position - first_token) / block_tokens;
      }
      return static_cast<size_t>(pages[place]);
    }
    // Whether the window has not released it.
    bool Holds(size_t position) const {
      return first_token == 0 || position >= first_token ||
             position / block_tokens < sink_pages;
    }
  };
  struct Launched {
    StepId id;
    uint32_t outputs = 0;
    std::vector<WorkItem> items;
    std::vector<std::vector<TokenId>> inputs;
    std::vector<std::vector<TokenId>> drafts;
    std::vector<BlockCopy> copies;
    std::vector<Table> tables;  // [items][groups]
  };

  static bool SamePool(const BlockShape& a, const BlockShape& b) {
    return PageBytes(a) == PageBytes(b) && a.block_tokens == b.block_tokens;
  }

  uint64_t* Page(Tier tier, uint32_t g, size_t page) {
    auto& pools = tier == Tier::kHost ? host_ : device_;
    const size_t tokens = cache_->options().groups[g].shape.block_tokens;
    return pools[pool_of_[g]].data() + page * tokens;
  }

  void BeginTransfers() {
    for (const TierTransfer& transfer : scheduler_->TakeTransfers()) {
      const uint32_t g = transfer.group.value();
      std::fill_n(Page(transfer.target_tier, g, transfer.target_page),
                  cache_->options().groups[g].shape.block_tokens, 0xDEADu);
      transfers_.push_back(transfer);
    }
  }

  absl::Status ExportOne(uint32_t g, const WorkItem& item, Launched* launched) {
    const std::vector<SequenceId> ids = {item.sequence};
    Table table;
    if (!cache_->Describe(item.sequence).ok()) {  // ended meanwhile
      launched->tables.push_back(table);
      return absl::OkStatus();
    }
    PAGED_KV_ASSIGN_OR_RETURN(const PageTableSize size,
                              cache_->TableSize(ids, GroupId(g)));
    std::vector<int32_t> indptr(2), last(1), first(1);
    table.pages.resize(size.pages);
    PAGED_KV_ASSIGN_OR_RETURN(
        const PageTable csr,
        cache_->ExportPageTable(
            ids, GroupId(g),
            {absl::MakeSpan(indptr), absl::MakeSpan(table.pages),
             absl::MakeSpan(last), absl::MakeSpan(first)},
            item.tier));
    table.block_tokens = static_cast<size_t>(csr.block_tokens);
    table.sink_pages = static_cast<size_t>(csr.sink_pages);
    table.first_token = static_cast<size_t>(first[0]);
    const size_t end =
        item.first_new.value() + item.new_tokens.value() + item.drafts.size();
    if (csr.SequenceTokens(0) != static_cast<int64_t>(end)) {
      return Wrong(item, "has a page table of another length");
    }
    launched->tables.push_back(std::move(table));
    return absl::OkStatus();
  }

  // Writes the new tokens' K/V, or compares that of all tokens.
  absl::Status ForEachSlot(const Launched& step, bool write) {
    for (size_t i = 0; i < step.items.size(); ++i) {
      const WorkItem& item = step.items[i];
      const TokenHistory history =
          WithDrafts(histories_[item.request][item.sample], step.drafts[i]);
      const size_t first = item.first_new.value();
      const size_t end =
          first + item.new_tokens.value() + step.drafts[i].size();
      if (end > history.tokens().size()) {
        return Wrong(item, "computes a token that nobody sampled");
      }
      for (size_t j = 0; j < step.inputs[i].size(); ++j) {
        if (step.inputs[i][j] != history.tokens()[first + j]) {
          return Wrong(item, "reads a wrong token");
        }
      }
      for (uint32_t g = 0; g < pool_of_.size(); ++g) {
        const Table& table = step.tables[i * pool_of_.size() + g];
        if (table.pages.empty()) continue;
        for (size_t at = write ? first : 0; at < end; ++at) {
          if (!table.Holds(at)) continue;
          uint64_t& slot =
              Page(item.tier, g, table.PageAt(at))[at % table.block_tokens];
          if (write) slot = history.Kv(at, g);
          if (slot == history.Kv(at, g)) continue;
          return Wrong(item, absl::StrCat("sees foreign K/V at position ", at,
                                          " of group ", g));
        }
      }
    }
    return absl::OkStatus();
  }

  std::vector<TokenId> Sample(const Launched& step) {
    std::vector<TokenId> sampled;
    for (size_t i = 0; i < step.items.size(); ++i) {
      const WorkItem& item = step.items[i];
      SampleItem(item, step.drafts[i], &histories_[item.request], &sampled);
    }
    return sampled;
  }

  static absl::Status Wrong(const WorkItem& item, const std::string& what) {
    return absl::InternalError(absl::StrCat(
        "request ", item.request.value(), " sample ", item.sample, ", ",
        item.new_tokens.value(), " tokens from ", item.first_new.value(),
        item.tier == Tier::kHost ? " in host memory: " : " on the device: ",
        what));
  }

  KvCacheManager* const cache_;
  BatchScheduler* const scheduler_;
  std::vector<uint32_t> pool_of_;  // per group: index in the pools
  std::vector<std::vector<uint64_t>> host_, device_;  // K/V of every slot
  std::map<RequestId, std::vector<TokenHistory>> histories_;
  std::deque<Launched> launched_;
  std::vector<TierTransfer> transfers_;
};

}  // namespace paged_kv

#endif  // PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_TIERED_ENGINE_H_

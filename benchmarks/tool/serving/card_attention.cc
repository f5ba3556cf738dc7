// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/card_attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "attention/append_kv.h"
#include "attention/attention_plan.h"
#include "attention/copy_blocks.h"
#include "benchmarks/tool/card/card_units.h"
#include "fpga_dma/decode/card_decode.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/transfers/transfer_queue.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using attention::AttentionPlan;
using fpga_dma::CardDecode;
using fpga_dma::DevicePool;

absl::StatusOr<std::unique_ptr<DevicePool>> MakePool(
    fpga_dma::Device* device, const attention::KvPages& pages) {
  PAGED_KV_ASSIGN_OR_RETURN(
      DecodeUnits units, FindDecodeUnits(device->info(), pages.shape.kv_heads));
  fpga_dma::DevicePoolOptions pool;
  pool.shape = pages.shape;
  pool.stripes = units.stripes;
  pool.splits = units.splits;
  // As many for each split.
  pool.num_pages =
      (pages.num_pages + pool.splits - 1) / pool.splits * pool.splits;
  pool.banks = std::move(units.banks);
  return DevicePool::Create(device, pool);
}

class CardAttentionImpl final : public CardAttention {
 public:
  CardAttentionImpl(fpga_dma::Device* device, const attention::KvPages& pages,
                    uint32_t query_heads, attention::ParallelFor* parallel,
                    CardUse* use)
      : device_(device),
        pages_(pages),
        query_heads_(query_heads),
        parallel_(parallel),
        use_(use),
        tracker_(device, {}),
        uploaded_(pages.num_pages, false),
        written_(pages.num_pages, false) {}

  absl::Status Setup() {
    PAGED_KV_ASSIGN_OR_RETURN(pool_, MakePool(device_, pages_));
    fpga_dma::TransferQueueOptions transfers;
    transfers.parallel = parallel_;
    PAGED_KV_ASSIGN_OR_RETURN(
        queue_, fpga_dma::TransferQueue::Create(&tracker_, pool_.get(), pages_,
                                                transfers));
    fpga_dma::CardDecodeOptions decode;
    decode.query_heads = query_heads_;
    PAGED_KV_ASSIGN_OR_RETURN(
        decode_, CardDecode::Create(&tracker_, pool_.get(), pages_, decode));
    return absl::OkStatus();
  }

  absl::Status BeginStep(const llm::StepBatch& step) override {
    PAGED_KV_RETURN_IF_ERROR(
        attention::CopyBlocks(pages_, step.copies, *parallel_));
    NoteWrites(step);
    step_ = &step;
    plan_.reset();
    on_card_ = step.IsDecode() && BeginOnCard(step);
    if (step.IsDecode()) {
      ++use_->steps;
      return absl::OkStatus();
    }
    ++use_->host_steps;
    return PlanOnHost();
  }

  absl::Status Attend(uint32_t layer, absl::Span<const float> q,
                      const attention::KvRows& k, const attention::KvRows& v,
                      absl::Span<float> out) override {
    PAGED_KV_RETURN_IF_ERROR(
        attention::AppendKv(pages_, layer, k, v, step_->slots, *parallel_));
    const absl::Time begin = device_->Now();
    if (on_card_) {
      const absl::Status status =
          decode_->Attend(layer, q, {out, {}}, *parallel_);
      on_card_ = status.ok();
      use_->attention += device_->Now() - begin;
      if (status.ok()) {
        use_->kv_read_by_card += layer_bytes_on_card_;
        return absl::OkStatus();
      }
      LoseCard();
    }
    if (step_->IsDecode()) ++use_->failures;
    PAGED_KV_RETURN_IF_ERROR(PlanOnHost());
    return plan_->Run(pages_, layer, q, {out, {}}, *parallel_);
  }

  void PageReplaced(uint32_t page) override { uploaded_[page] = false; }

 private:
  // Pages that change in this step are on the card no more.
  void NoteWrites(const llm::StepBatch& step) {
    std::fill(written_.begin(), written_.end(), false);
    const auto write = [&](size_t page) {
      written_[page] = true;
      uploaded_[page] = false;
    };
    for (const attention::PageCopy& copy : step.copies) {
      uploaded_[copy.target] = false;
    }
    for (const int64_t slot : step.slots) {
      if (slot >= 0)
        write(static_cast<size_t>(slot) / pages_.shape.block_tokens);
    }
  }

  // Uploads what the step reads and does not write, and tells the card where
  // everything is. False if the card failed.
  bool BeginOnCard(const llm::StepBatch& step) {
    if (generation_ != tracker_.generation()) LoseCard();
    fpga_dma::DecodeBlocks blocks;
    blocks.indptr.assign(step.table.indptr.begin(), step.table.indptr.end());
    blocks.last_page_tokens.assign(step.table.last_page_tokens.begin(),
                                   step.table.last_page_tokens.end());
    std::vector<fpga_dma::PageTransfer> missing;
    layer_bytes_on_card_ = 0;
    for (const int32_t index : step.table.page_indices) {
      const auto page = static_cast<uint32_t>(index);
      blocks.host_pages.push_back(page);
      blocks.device_pages.push_back(written_[page] ? fpga_dma::kNoDevicePage
                                                   : page);
      if (written_[page]) continue;
      layer_bytes_on_card_ +=
          PageBytes(pages_.shape).value() / pages_.shape.layers;
      if (uploaded_[page]) continue;
      uploaded_[page] = true;
      missing.push_back({fpga_dma::TransferDirection::kUpload,
                         page,
                         page,
                         {0, pages_.shape.layers}});
    }
    const absl::Status status = BeginOnCard(missing, blocks);
    if (!status.ok()) LoseCard();
    return status.ok();
  }

  absl::Status BeginOnCard(const std::vector<fpga_dma::PageTransfer>& missing,
                           const fpga_dma::DecodeBlocks& blocks) {
    if (!missing.empty()) {
      PAGED_KV_ASSIGN_OR_RETURN(
          const fpga_dma::TransferListId list,
          queue_->Submit(missing, fpga_dma::TransferPriority::kDecode));
      PAGED_KV_RETURN_IF_ERROR(queue_->Wait(list, absl::InfiniteFuture()));
      const absl::optional<fpga_dma::TransferResult> result =
          queue_->TakeResult();
      if (result) PAGED_KV_RETURN_IF_ERROR(result->status);
      use_->pages_uploaded += missing.size();
      use_->bytes_uploaded += missing.size() * PageBytes(pages_.shape).value();
      generation_ = tracker_.generation();
    }
    return decode_->BeginStep(blocks);
  }

  void LoseCard() {
    std::fill(uploaded_.begin(), uploaded_.end(), false);
    generation_ = tracker_.generation();
  }

  absl::Status PlanOnHost() {
    if (plan_) return absl::OkStatus();
    absl::StatusOr<AttentionPlan> plan =
        step_->IsDecode()
            ? AttentionPlan::ForDecode(pages_, query_heads_, step_->table, {})
            : AttentionPlan::ForPrefill(pages_, query_heads_, step_->table,
                                        step_->qo_indptr, {});
    PAGED_KV_RETURN_IF_ERROR(plan.status());
    plan_.emplace(*std::move(plan));
    return absl::OkStatus();
  }

  fpga_dma::Device* const device_;
  const attention::KvPages pages_;
  const uint32_t query_heads_;
  attention::ParallelFor* const parallel_;
  CardUse* const use_;
  fpga_dma::OperationTracker tracker_;
  std::unique_ptr<DevicePool> pool_;
  std::unique_ptr<fpga_dma::TransferQueue> queue_;
  std::unique_ptr<CardDecode> decode_;
  // Of host pages: the page of the same number on the card holds the same.
  std::vector<bool> uploaded_;
  uint64_t generation_ = 0;  // of the card's memory, when that was so

  // Of the step.
  const llm::StepBatch* step_ = nullptr;
  std::vector<bool> written_;
  bool on_card_ = false;
  uint64_t layer_bytes_on_card_ = 0;
  absl::optional<AttentionPlan> plan_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CardAttention>> CardAttention::Create(
    fpga_dma::Device* device, const attention::KvPages& pages,
    uint32_t query_heads, attention::ParallelFor* parallel, CardUse* use) {
  auto card = std::make_unique<CardAttentionImpl>(device, pages, query_heads,
                                                  parallel, use);
  PAGED_KV_RETURN_IF_ERROR(card->Setup());
  return card;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_batch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "attention/paged_decode.h"
#include "benchmarks/tool/card/card_units.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using fpga_dma::DecodeBlocks;
using fpga_dma::LayerRange;
using fpga_dma::PageTransfer;
using fpga_dma::TransferDirection;
using fpga_dma::TransferPriority;

constexpr GroupId kGroup(0);
constexpr size_t kNormals = size_t{1} << 20;

uint32_t RoundUp(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

double HandOff::Hidden() const {
  if (upload_busy <= absl::ZeroDuration()) return 1.0;
  return 1.0 - std::min(1.0, absl::FDivDuration(exposed, upload_busy));
}

CardBatch::CardBatch(fpga_dma::Device* device, const CardCase& card_case)
    : device_(device), case_(card_case), random_(card_case.seed) {
  std::normal_distribution<float> normal;
  // Rows begin anywhere in the first half.
  normals_.resize(kNormals + uint64_t{case_.batch} * case_.context * 2 +
                  uint64_t{case_.shape.kv_heads} * case_.shape.head_dim);
  for (size_t i = 0; i < kNormals; ++i) normals_[i] = normal(random_);
  for (size_t i = kNormals; i < normals_.size(); ++i) {
    normals_[i] = normals_[i - kNormals];
  }
}

absl::StatusOr<std::unique_ptr<CardBatch>> CardBatch::Create(
    fpga_dma::Device* device, const CardCase& card_case) {
  std::unique_ptr<CardBatch> batch(new CardBatch(device, card_case));
  PAGED_KV_RETURN_IF_ERROR(batch->Setup());
  return batch;
}

absl::Status CardBatch::Setup() {
  PAGED_KV_ASSIGN_OR_RETURN(
      const DecodeUnits units,
      FindDecodeUnits(device_->info(), case_.shape.kv_heads));
  const uint32_t last = case_.context + case_.steps;
  const uint32_t per_sequence =
      RoundUp(std::max(1u, case_.ResidentBlocks(last)), units.splits);
  fpga_dma::DevicePoolOptions pool;
  pool.shape = case_.shape;
  pool.num_pages = case_.batch * per_sequence;
  pool.stripes = units.stripes;
  pool.splits = units.splits;
  pool.banks = units.banks;
  PAGED_KV_RETURN_IF_ERROR(MakeManager(units.splits, pool.num_pages));
  PAGED_KV_ASSIGN_OR_RETURN(pool_, fpga_dma::DevicePool::Create(device_, pool));
  tracker_ = std::make_unique<fpga_dma::OperationTracker>(
      device_, fpga_dma::OperationLimits{});
  PAGED_KV_ASSIGN_OR_RETURN(
      queue_,
      fpga_dma::TransferQueue::Create(tracker_.get(), pool_.get(), host_, {}));
  fpga_dma::CardDecodeOptions decode;
  decode.query_heads = case_.query_heads;
  decode.host_bytes_per_second = case_.host_bytes_per_second;
  PAGED_KV_ASSIGN_OR_RETURN(
      decode_,
      fpga_dma::CardDecode::Create(tracker_.get(), pool_.get(), host_, decode));
  return absl::OkStatus();
}

absl::Status CardBatch::MakeManager(uint32_t splits, uint32_t device_pages) {
  const uint32_t last = case_.context + case_.steps;
  const uint32_t blocks =
      case_.batch *
      (RoundUp(last, case_.shape.block_tokens) / case_.shape.block_tokens);
  KvCacheOptions options;
  LayerGroup group;
  group.shape = case_.shape;
  options.groups = {group};
  options.host_blocks = BlockCount(std::max(blocks, device_pages));
  options.max_sequences = case_.batch;
  options.max_tokens_per_sequence = last;
  options.device.pages = BlockCount(device_pages);
  options.device.splits = splits;
  options.memory = MemoryMode::kOwnMemory;
  options.hash_seed = case_.seed;
  PAGED_KV_ASSIGN_OR_RETURN(manager_, KvCacheManager::Create(options));
  host_.shape = case_.shape;
  PAGED_KV_ASSIGN_OR_RETURN(host_.layout, manager_->Layout(kGroup));
  host_.num_pages = manager_->PoolBlocks(kGroup).value();
  return absl::OkStatus();
}

attention::KvRows CardBatch::RandomRows() {
  attention::KvRows rows;
  rows.data = normals_.data() + random_() % (kNormals / 2);
  // Rows overlap: a few values apart is as random as their own values.
  rows.token_stride = 2 * sizeof(float);
  rows.head_stride = case_.shape.head_dim * sizeof(float);
  return rows;
}

absl::Status CardBatch::StartUploads() {
  const uint32_t tokens =
      case_.ResidentBlocks(tokens_) * case_.shape.block_tokens;
  if (tokens == 0) return absl::OkStatus();
  PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const TierTransfer> transfers,
                            manager_->SwapInPrefix(ids_, TokenCount(tokens)));
  for (const TierTransfer& transfer : transfers) {
    Upload upload;
    upload.id = transfer.id;
    upload.transfer = {TransferDirection::kUpload,
                       transfer.source_page,
                       transfer.target_page,
                       {}};
    upload.layers_left = case_.shape.layers;
    uploads_.push_back(upload);
  }
  return absl::OkStatus();
}

absl::Status CardBatch::SubmitLayers(LayerRange layers) {
  if (uploads_.empty()) return absl::OkStatus();
  std::vector<PageTransfer> pages;
  for (const Upload& upload : uploads_) {
    pages.push_back(upload.transfer);
    pages.back().layers = layers;
  }
  PAGED_KV_ASSIGN_OR_RETURN(const fpga_dma::TransferListId list,
                            queue_->Submit(pages, TransferPriority::kPrefetch));
  lists_[list] = layers.count;
  return absl::OkStatus();
}

// Lists are of all uploads under way, which the next ones wait for.
absl::Status CardBatch::TakeArrived() {
  while (const auto result = queue_->TakeResult()) {
    const uint32_t layers = lists_.at(result->id);
    lists_.erase(result->id);
    for (uint32_t index : result->failed) uploads_[index].failed = true;
    for (Upload& upload : uploads_) upload.layers_left -= layers;
  }
  if (uploads_.empty() || uploads_[0].layers_left > 0) return absl::OkStatus();
  for (const Upload& upload : uploads_) {
    PAGED_KV_RETURN_IF_ERROR(
        manager_->FinishTransfer(upload.id, !upload.failed));
  }
  uploads_.clear();
  return absl::OkStatus();
}

absl::StatusOr<HandOff> CardBatch::Prefill(Progress& progress) {
  std::vector<std::vector<TokenId>> prompts(case_.batch);
  std::vector<StepRequest> requests;
  for (std::vector<TokenId>& prompt : prompts) {
    for (uint32_t i = 0; i < case_.context; ++i) {
      prompt.push_back(static_cast<TokenId>(random_() % 100000));
    }
    requests.push_back(StepRequest::Admit(prompt));
    requests.back().share = false;
  }
  PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, manager_->Plan(requests));
  PAGED_KV_ASSIGN_OR_RETURN(const StepId step,
                            manager_->Commit(std::move(plan)));
  PAGED_KV_ASSIGN_OR_RETURN(const StepView view, manager_->View(step));
  for (const PlannedSequence& sequence : view.sequences) {
    ids_.push_back(sequence.id);
  }
  tokens_ = case_.context;
  std::vector<int64_t> slots(size_t{case_.batch} * case_.context);
  PAGED_KV_RETURN_IF_ERROR(
      manager_->ExportSlotMapping(step, kGroup, absl::MakeSpan(slots)));
  PAGED_KV_RETURN_IF_ERROR(StartUploads());

  HandOff result;
  result.bytes = uploads_.size() * PageBytes(case_.shape).value();
  const absl::Time start = device_->Now();
  // K and V of a layer are among the first that it computes.
  const double tokens = static_cast<double>(slots.size());
  const double row = 2.0 * case_.shape.kv_heads * case_.shape.head_dim;
  const double hidden =
      static_cast<double>(case_.query_heads) * case_.shape.head_dim;
  const double kv_flops = 2 * tokens * row * hidden;
  const double layer_flops =
      2 * tokens * static_cast<double>(case_.layer_parameters) +
      2 * tokens * case_.context * hidden;  // causal: half of 4
  for (uint32_t layer = 0; layer < case_.shape.layers; ++layer) {
    progress.Update(layer, case_.shape.layers);
    PAGED_KV_RETURN_IF_ERROR(attention::AppendKv(
        host_, layer, RandomRows(), RandomRows(), slots, threads_));
    PAGED_KV_RETURN_IF_ERROR(manager_->MarkWritten(step, layer));
    device_->HostWorks(absl::Seconds(kv_flops / case_.prefill_flops));
    PAGED_KV_RETURN_IF_ERROR(SubmitLayers({layer, 1}));
    const absl::Time end =
        device_->Now() +
        absl::Seconds((layer_flops - kv_flops) / case_.prefill_flops);
    while (queue_->unfinished() > 0 && device_->Now() < end) {
      queue_->Advance(end);
    }
    device_->HostWorks(end - device_->Now());
  }
  const absl::Time end = device_->Now();
  result.prefill = end - start;
  PAGED_KV_RETURN_IF_ERROR(manager_->Retire(step));
  while (queue_->unfinished() > 0) queue_->Advance(absl::InfiniteFuture());
  PAGED_KV_RETURN_IF_ERROR(TakeArrived());
  result.exposed = device_->Now() - end;
  for (uint32_t i = 0; i < device_->info().channels; ++i) {
    result.upload_busy =
        std::max(result.upload_busy, tracker_->UploadStats(i).busy);
  }
  return result;
}

// Of a step in flight that adds a token to each sequence.
absl::StatusOr<DecodeBlocks> CardBatch::Blocks(CardMode mode) const {
  DecodeBlocks blocks;
  blocks.indptr = {0};
  std::vector<BlockResidency> where;
  for (SequenceId id : ids_) {
    PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const BlockId> table,
                              manager_->BlockTable(id, kGroup));
    where.resize(table.size());
    PAGED_KV_RETURN_IF_ERROR(
        manager_->ExportResidency(id, kGroup, absl::MakeSpan(where)).status());
    for (size_t i = 0; i < table.size(); ++i) {
      const bool whole = i < case_.WholeBlocks(tokens_);
      const bool on_card =
          whole && where[i].device_valid && !where[i].in_transfer;
      uint32_t page = fpga_dma::kNoDevicePage;
      if (mode != CardMode::kHost && on_card) page = where[i].device_page;
      if (mode == CardMode::kStreamed && whole && !on_card) {
        page = fpga_dma::kStreamedPage;
      }
      blocks.device_pages.push_back(page);
      blocks.host_pages.push_back(table[i].value());
    }
    blocks.indptr.push_back(static_cast<int32_t>(blocks.host_pages.size()));
    blocks.last_page_tokens.push_back(
        static_cast<int32_t>(tokens_ % case_.shape.block_tokens) + 1);
  }
  return blocks;
}

absl::StatusOr<CardStep> CardBatch::Step(CardMode mode) {
  std::vector<StepRequest> requests;
  const TokenId token = static_cast<TokenId>(random_() % 100000);
  for (SequenceId id : ids_) {
    requests.push_back(StepRequest::Extend(id, absl::MakeSpan(&token, 1)));
  }
  PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, manager_->Plan(requests));
  PAGED_KV_ASSIGN_OR_RETURN(const StepId step,
                            manager_->Commit(std::move(plan)));
  PAGED_KV_ASSIGN_OR_RETURN(const DecodeBlocks blocks, Blocks(mode));
  ++tokens_;
  PAGED_KV_RETURN_IF_ERROR(decode_->BeginStep(blocks));
  std::vector<int64_t> slots(case_.batch);
  PAGED_KV_RETURN_IF_ERROR(
      manager_->ExportSlotMapping(step, kGroup, absl::MakeSpan(slots)));

  CardStep result;
  result.traffic = decode_->traffic();
  std::vector<float> q(size_t{case_.batch} * case_.query_heads *
                       case_.shape.head_dim);
  for (uint32_t layer = 0; layer < case_.shape.layers; ++layer) {
    PAGED_KV_RETURN_IF_ERROR(attention::AppendKv(
        host_, layer, RandomRows(), RandomRows(), slots, threads_));
    const size_t first = random_() % (kNormals / 2);
    for (size_t i = 0; i < q.size(); ++i) {
      // As the card sees it, so that rounding is no difference.
      q[i] = attention::Bf16ToF32(attention::F32ToBf16(normals_[first + i]));
    }
    PAGED_KV_RETURN_IF_ERROR(AttendLayer(layer, q, &result));
    queue_->Advance(absl::InfinitePast());
  }
  result.events = decode_->TakeEvents();
  PAGED_KV_RETURN_IF_ERROR(manager_->Retire(step));
  PAGED_KV_RETURN_IF_ERROR(TakeArrived());
  if (uploads_.empty()) {
    PAGED_KV_RETURN_IF_ERROR(StartUploads());
    PAGED_KV_RETURN_IF_ERROR(SubmitLayers({0, case_.shape.layers}));
  }
  return result;
}

absl::Status CardBatch::AttendLayer(uint32_t layer, absl::Span<const float> q,
                                    CardStep* step) {
  std::vector<float> out(q.size());
  const absl::Time start = device_->Now();
  PAGED_KV_RETURN_IF_ERROR(
      decode_->Attend(layer, q, {absl::MakeSpan(out), {}}, threads_));
  step->time += device_->Now() - start;
  return CheckLayer(layer, q, out, &step->max_error);
}

absl::Status CardBatch::CheckLayer(uint32_t layer, absl::Span<const float> q,
                                   absl::Span<const float> out,
                                   double* max_error) {
  PAGED_KV_ASSIGN_OR_RETURN(const PageTableSize size,
                            manager_->TableSize(ids_, kGroup));
  std::vector<int32_t> indptr(size.sequences + 1), pages(size.pages),
      last(size.sequences), first(size.sequences);
  PAGED_KV_ASSIGN_OR_RETURN(
      const PageTable table,
      manager_->ExportPageTable(ids_, kGroup,
                                {absl::MakeSpan(indptr), absl::MakeSpan(pages),
                                 absl::MakeSpan(last), absl::MakeSpan(first)}));
  std::vector<float> want(out.size());
  PAGED_KV_RETURN_IF_ERROR(
      attention::PagedDecode({host_, layer, table, case_.query_heads, q}, {},
                             {absl::MakeSpan(want), {}}, threads_));
  for (size_t i = 0; i < out.size(); ++i) {
    const double error = std::fabs(double{out[i]} - double{want[i]});
    // Also if it is NaN.
    if (!(error <= *max_error)) *max_error = error;
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::tool

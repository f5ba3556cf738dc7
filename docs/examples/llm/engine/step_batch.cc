// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/step_batch.h"

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

absl::Status CheckRows(const StepView& view,
                       absl::Span<const SequenceRows> sequences) {
  if (view.sequences.size() != sequences.size()) {
    return absl::InvalidArgumentError(absl::StrCat("rows of ", sequences.size(),
                                                   " sequences for a step of ",
                                                   view.sequences.size()));
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    const PlannedSequence& planned = view.sequences[i];
    const SequenceRows& rows = sequences[i];
    if (planned.Rows().value() != rows.tokens.size() ||
        planned.first_new.value() != rows.first_position ||
        rows.logits > rows.tokens.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sequence ", i, " brings ", rows.tokens.size(), " tokens from ",
          rows.first_position, " and wants logits of ", rows.logits,
          "; the step has ", planned.Rows().value(), " from ",
          planned.first_new.value()));
    }
  }
  return absl::OkStatus();
}

void AppendRows(const SequenceRows& rows, StepBatch* batch) {
  const auto count = static_cast<uint32_t>(rows.tokens.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (i + rows.logits >= count) {
      batch->logit_rows.push_back(static_cast<uint32_t>(batch->tokens.size()));
    }
    batch->tokens.push_back(rows.tokens[i]);
    batch->positions.push_back(rows.first_position + i);
  }
  batch->qo_indptr.push_back(static_cast<int32_t>(batch->tokens.size()));
}

attention::PageCopy CopyOf(const BlockCopy& copy, uint32_t first_device_page) {
  if (copy.tier == Tier::kHost) {
    return {copy.source.value(), copy.target.value(), copy.filled_tokens};
  }
  return {first_device_page + copy.source_page,
          first_device_page + copy.target_page, copy.filled_tokens};
}

void ResizeTables(const PageTableSize& size, StepBatch* batch) {
  batch->indptr.resize(size.sequences + 1);
  batch->page_indices.resize(size.pages);
  batch->last_page_tokens.resize(size.sequences);
  batch->first_token.resize(size.sequences);
}

absl::Status FillTables(const KvCacheManager& cache, StepId step,
                        StepBatch* batch) {
  PAGED_KV_RETURN_IF_ERROR(
      cache.ExportSlotMapping(step, kAllLayers, absl::MakeSpan(batch->slots)));
  PAGED_KV_ASSIGN_OR_RETURN(const PageTableSize size,
                            cache.TableSize(step, kAllLayers));
  ResizeTables(size, batch);
  PAGED_KV_ASSIGN_OR_RETURN(
      batch->table,
      cache.ExportPageTable(
          step, kAllLayers,
          {absl::MakeSpan(batch->indptr), absl::MakeSpan(batch->page_indices),
           absl::MakeSpan(batch->last_page_tokens),
           absl::MakeSpan(batch->first_token)}));
  return absl::OkStatus();
}

// The same where sequences are in different tiers: each is exported by itself,
// and the slots are read off its pages.
absl::Status FillTieredTables(const KvCacheManager& cache, StepId step,
                              absl::Span<const SequenceRows> sequences,
                              uint32_t first_device_page, StepBatch* batch) {
  PAGED_KV_ASSIGN_OR_RETURN(const StepView view, cache.View(step));
  PAGED_KV_ASSIGN_OR_RETURN(const PageTableSize size,
                            cache.TableSize(step, kAllLayers));
  ResizeTables(size, batch);
  size_t pages = 0, row = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const SequenceRows& rows = sequences[i];
    const uint32_t first_page =
        rows.tier == Tier::kDevice ? first_device_page : 0;
    int32_t indptr[2] = {0, 0};
    const absl::Span<int32_t> own =
        absl::MakeSpan(batch->page_indices).subspan(pages);
    PAGED_KV_ASSIGN_OR_RETURN(
        batch->table,
        cache.ExportPageTable(absl::MakeConstSpan(&view.sequences[i].id, 1),
                              kAllLayers,
                              {absl::MakeSpan(indptr), own,
                               absl::MakeSpan(&batch->last_page_tokens[i], 1),
                               absl::MakeSpan(&batch->first_token[i], 1)},
                              rows.tier));
    const auto count = static_cast<size_t>(indptr[1]);
    for (int32_t& page : own.first(count)) {
      page += static_cast<int32_t>(first_page);
    }
    const auto block_tokens = static_cast<uint32_t>(batch->table.block_tokens);
    for (uint32_t j = 0; j < rows.tokens.size(); ++j, ++row) {
      const uint32_t position = rows.first_position + j;
      batch->slots[row] = int64_t{own[position / block_tokens]} * block_tokens +
                          position % block_tokens;
    }
    batch->indptr[i] = static_cast<int32_t>(pages);
    pages += count;
  }
  batch->indptr[sequences.size()] = static_cast<int32_t>(pages);
  batch->table.indptr = batch->indptr;
  batch->table.page_indices =
      absl::MakeConstSpan(batch->page_indices).first(pages);
  batch->table.last_page_tokens = batch->last_page_tokens;
  batch->table.first_token = batch->first_token;
  return absl::OkStatus();
}

}  // namespace

absl::Status FillStepBatch(const KvCacheManager& cache, StepId step,
                           absl::Span<const SequenceRows> sequences,
                           StepBatch* batch, uint32_t first_device_page) {
  PAGED_KV_ASSIGN_OR_RETURN(const StepView view, cache.View(step));
  PAGED_KV_RETURN_IF_ERROR(CheckRows(view, sequences));
  batch->tokens.clear();
  batch->positions.clear();
  batch->logit_rows.clear();
  batch->copies.clear();
  batch->qo_indptr.assign(1, 0);
  for (const SequenceRows& rows : sequences) AppendRows(rows, batch);
  for (const BlockCopy& copy : view.copies) {
    batch->copies.push_back(CopyOf(copy, first_device_page));
  }
  batch->slots.resize(batch->rows());
  for (const SequenceRows& rows : sequences) {
    if (rows.tier == Tier::kHost) continue;
    return FillTieredTables(cache, step, sequences, first_device_page, batch);
  }
  return FillTables(cache, step, batch);
}

}  // namespace paged_kv::llm

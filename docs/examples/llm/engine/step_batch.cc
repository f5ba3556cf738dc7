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

}  // namespace

absl::Status FillStepBatch(const KvCacheManager& cache, StepId step,
                           absl::Span<const SequenceRows> sequences,
                           StepBatch* batch) {
  PAGED_KV_ASSIGN_OR_RETURN(const StepView view, cache.View(step));
  PAGED_KV_RETURN_IF_ERROR(CheckRows(view, sequences));
  batch->tokens.clear();
  batch->positions.clear();
  batch->logit_rows.clear();
  batch->copies.clear();
  batch->qo_indptr.assign(1, 0);
  for (const SequenceRows& rows : sequences) AppendRows(rows, batch);
  for (const BlockCopy& copy : view.copies) {
    batch->copies.push_back(
        {copy.source.value(), copy.target.value(), copy.filled_tokens});
  }

  batch->slots.resize(batch->rows());
  PAGED_KV_RETURN_IF_ERROR(
      cache.ExportSlotMapping(step, kAllLayers, absl::MakeSpan(batch->slots)));
  PAGED_KV_ASSIGN_OR_RETURN(const PageTableSize size,
                            cache.TableSize(step, kAllLayers));
  batch->indptr.resize(size.sequences + 1);
  batch->page_indices.resize(size.pages);
  batch->last_page_tokens.resize(size.sequences);
  batch->first_token.resize(size.sequences);
  PAGED_KV_ASSIGN_OR_RETURN(
      batch->table,
      cache.ExportPageTable(
          step, kAllLayers,
          {absl::MakeSpan(batch->indptr), absl::MakeSpan(batch->page_indices),
           absl::MakeSpan(batch->last_page_tokens),
           absl::MakeSpan(batch->first_token)}));
  return absl::OkStatus();
}

}  // namespace paged_kv::llm

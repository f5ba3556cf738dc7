// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_speculation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

using Phase = SampleState::Phase;

// Drafts that a decode of one token could check, of those proposed.
uint32_t Checkable(const SchedulerState& state, const DraftItem& item) {
  const RequestState& request = state.requests.at(item.ref.request);
  const SampleState& sample = request.samples[item.ref.sample];
  if (sample.phase != Phase::kRunning || item.tokens != 1) return 0;
  // The token before the first draft must have a value, and be the last one.
  const auto values = static_cast<uint32_t>(sample.tokens.size());
  if (sample.outputs_in_flight > 0 || sample.scheduled + 1 != values) return 0;
  const uint32_t outputs = values - request.prompt_tokens;
  return std::min({static_cast<uint32_t>(sample.drafts.size()),
                   request.max_output_tokens - outputs - 1,
                   state.options.max_chunk_tokens - 1});
}

}  // namespace

absl::Status ProposeDrafts(SchedulerState* state, SampleRef ref,
                           absl::Span<const TokenId> drafts) {
  const RequestState& request = state->requests.at(ref.request);
  SampleState& sample = state->requests.at(ref);
  const char* why = nullptr;
  if (sample.phase == Phase::kEnded) {
    why = "it has ended";
  } else if (sample.items_in_flight > 0) {
    why = "a step of it is in flight";
  } else if (sample.tokens.size() == request.prompt_tokens) {
    why = "it has no output yet";
  }
  if (why != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("request ", request.id.value(), " sample ", ref.sample,
                     " takes no drafts: ", why));
  }
  const size_t kept =
      std::min<size_t>(drafts.size(), state->options.max_draft_tokens);
  sample.drafts.assign(drafts.begin(),
                       drafts.begin() + static_cast<ptrdiff_t>(kept));
  return absl::OkStatus();
}

bool ChooseDrafts(const SchedulerState& state, StepDraft* draft) {
  if (state.options.max_draft_tokens == 0 || !draft->AllFit()) return false;
  uint32_t left = state.options.max_batch_tokens;
  for (const DraftItem& item : draft->items()) left -= item.tokens;
  bool any = false;
  for (size_t i = 0; i < draft->size() && left > 0; ++i) {
    const uint32_t drafts = std::min(Checkable(state, draft->item(i)), left);
    draft->SetDrafts(i, drafts);
    left -= drafts;
    any = any || drafts > 0;
  }
  return any;
}

absl::Status KeepDrafts(SchedulerState* state, SampleRef ref,
                        absl::Span<const TokenId> drafts, uint32_t accepted) {
  SampleState& sample = state->requests.at(ref);
  PAGED_KV_RETURN_IF_ERROR(
      state->cache->Accept(sample.sequence, drafts.first(accepted)));
  sample.scheduled += accepted;
  sample.written += accepted;
  sample.known += accepted;
  if (accepted == drafts.size()) return absl::OkStatus();
  NoteRelease(state);
  return state->cache->Truncate(sample.sequence, TokenCount(sample.scheduled));
}

}  // namespace paged_kv::internal

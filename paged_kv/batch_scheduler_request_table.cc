// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_request_table.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "paged_kv/check.h"
#include "paged_kv/key_extras.h"

namespace paged_kv {

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kUnfinished:
      return "unfinished";
    case FinishReason::kMaxTokens:
      return "max_tokens";
    case FinishReason::kStopToken:
      return "stop_token";
    case FinishReason::kStopped:
      return "stopped";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kFailed:
      return "failed";
  }
  return "unknown";
}

namespace internal {
namespace {

// Copies the extras; their values move into request->extra_bytes.
void CopyExtras(KeyExtras extras, RequestState* request) {
  request->extra_bytes.clear();
  for (const KeyExtra& extra : extras) {
    request->extra_bytes.append(extra.value.data(), extra.value.size());
  }
  absl::string_view bytes = request->extra_bytes;
  request->extras.assign(extras.begin(), extras.end());
  for (KeyExtra& extra : request->extras) {
    const size_t size = extra.value.size();
    extra.value = bytes.substr(0, size);
    bytes.remove_prefix(size);
  }
}

}  // namespace

RequestTable::RequestTable(uint32_t max_requests, uint32_t max_draft_tokens)
    : max_draft_tokens_(max_draft_tokens), requests_(max_requests) {
  free_.reserve(max_requests);
  for (uint32_t slot = max_requests; slot-- > 0;) free_.push_back(slot);
  slots_.reserve(max_requests);
}

absl::Status RequestTable::CheckRoomFor(RequestId id) const {
  if (slots_.contains(id)) {
    return absl::AlreadyExistsError(
        absl::StrCat("request ", id.value(), " is known already"));
  }
  if (free_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("request ", id.value(), ": ", slots(), " of ", slots(),
                     " requests are waiting, running or not taken"));
  }
  return absl::OkStatus();
}

uint32_t RequestTable::Insert(const GenerationRequest& request) {
  PAGED_KV_CHECK(!free_.empty());
  const uint32_t slot = free_.back();
  const bool is_new = slots_.emplace(request.id, slot).second;
  PAGED_KV_CHECK(is_new);
  free_.pop_back();

  RequestState& state = requests_[slot];
  state.id = request.id;
  state.generation = ++last_generation_;
  state.in_use = true;
  state.prompt_tokens = static_cast<uint32_t>(request.prompt.size());
  state.max_output_tokens = request.max_output_tokens;
  state.cache_priority = request.cache_priority;
  state.share = request.share;
  state.stop_tokens.assign(request.stop_tokens.begin(),
                           request.stop_tokens.end());
  CopyExtras(request.extras, &state);
  state.samples.assign(request.samples, SampleState{});
  for (SampleState& sample : state.samples) {
    sample.tokens.reserve(request.prompt.size() + request.max_output_tokens);
    sample.tokens.assign(request.prompt.begin(), request.prompt.end());
    sample.drafts.reserve(max_draft_tokens_);
  }
  state.forked = request.samples == 1;
  state.ended_samples = 0;
  state.status = absl::OkStatus();
  state.timing = RequestTiming{};
  state.costs = RequestCosts{};
  return slot;
}

void RequestTable::Release(uint32_t slot) {
  RequestState& state = requests_[slot];
  PAGED_KV_CHECK(state.in_use);
  slots_.erase(state.id);
  state.in_use = false;
  state.samples.clear();
  free_.push_back(slot);
}

uint32_t RequestTable::Find(RequestId id) const {
  const auto it = slots_.find(id);
  return it == slots_.end() ? kNone : it->second;
}

absl::Status RequestTable::CheckInvariants() const {
  if (slots_.size() + free_.size() != requests_.size()) {
    return absl::InternalError(absl::StrCat(
        slots_.size(), " known requests and ", free_.size(),
        " free slots do not add up to ", requests_.size(), " slots"));
  }
  for (const auto& [id, slot] : slots_) {
    if (!requests_[slot].in_use || requests_[slot].id != id) {
      return absl::InternalError(
          absl::StrCat("request ", id.value(), " is not in its slot ", slot));
    }
  }
  for (uint32_t slot : free_) {
    if (requests_[slot].in_use) {
      return absl::InternalError(absl::StrCat("free slot ", slot, " is used"));
    }
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace paged_kv

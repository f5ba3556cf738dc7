// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/op_log_format.h"

#include "paged_kv/check.h"
#include "paged_kv/op_log_framing.h"

namespace paged_kv::internal {
namespace {

LoggedEviction NameOf(EvictionPolicyFactory eviction) {
  if (eviction == nullptr || eviction == &MakeLruPolicy) {
    return LoggedEviction::kLru;
  }
  if (eviction == &MakeSegmentedLruPolicy) return LoggedEviction::kSegmentedLru;
  return LoggedEviction::kOther;
}

void PutGroup(const LayerGroup& group, std::string* out) {
  PutVarint(group.shape.layers, out);
  PutVarint(group.shape.kv_heads, out);
  PutVarint(group.shape.head_dim, out);
  PutVarint(group.shape.v_head_dim, out);
  PutVarint(group.shape.block_tokens, out);
  PutVarint(static_cast<uint64_t>(group.shape.dtype), out);
  PutVarint(group.window, out);
  PutVarint(group.sink_tokens, out);
}

}  // namespace

const char* OpKindName(OpKind kind) {
  switch (kind) {
    case OpKind::kCommit:
      return "Commit";
    case OpKind::kRetire:
      return "Retire";
    case OpKind::kMarkWritten:
      return "MarkWritten";
    case OpKind::kSetTokens:
      return "SetTokens";
    case OpKind::kAccept:
      return "Accept";
    case OpKind::kTruncate:
      return "Truncate";
    case OpKind::kFork:
      return "Fork";
    case OpKind::kFree:
      return "Free";
    case OpKind::kFreeAll:
      return "FreeAll";
    case OpKind::kReset:
      return "Reset";
    case OpKind::kPin:
      return "Pin";
    case OpKind::kUnpin:
      return "Unpin";
    case OpKind::kDrainEvents:
      return "DrainEvents";
    case OpKind::kSwapIn:
      return "SwapIn";
    case OpKind::kSwapOut:
      return "SwapOut";
    case OpKind::kWriteBack:
      return "WriteBack";
    case OpKind::kFinishTransfer:
      return "FinishTransfer";
    case OpKind::kLoseDevice:
      return "LoseDevice";
  }
  PAGED_KV_CHECK(false);
}

KeyExtra AsKeyExtra(const OpExtra& extra) {
  return KeyExtra{extra.kind, TokenPos(extra.position), extra.value};
}

std::vector<KeyExtra> AsKeyExtras(const std::vector<OpExtra>& extras) {
  std::vector<KeyExtra> views;
  views.reserve(extras.size());
  for (const OpExtra& extra : extras) views.push_back(AsKeyExtra(extra));
  return views;
}

std::vector<StepRequest> AsStepRequests(
    const std::vector<OpRequest>& ops,
    std::vector<std::vector<KeyExtra>>* storage) {
  storage->clear();
  storage->reserve(ops.size());  // the spans below must not move
  std::vector<StepRequest> requests;
  requests.reserve(ops.size());
  for (const OpRequest& op : ops) {
    storage->push_back(AsKeyExtras(op.extras));
    StepRequest request;
    request.kind = op.kind;
    request.id = SequenceId(op.id);
    request.tokens = op.tokens;
    request.new_tokens = TokenCount(op.new_tokens);
    request.lookahead = TokenCount(op.lookahead);
    request.reserve_tokens = TokenCount(op.reserve_tokens);
    request.extras = storage->back();
    request.priority = op.priority;
    request.share = op.share;
    requests.push_back(request);
  }
  return requests;
}

void PutTokens(absl::Span<const TokenId> tokens, std::string* out) {
  PutVarint(tokens.size(), out);
  for (TokenId token : tokens) PutZigzag(token, out);
}

void PutExtras(KeyExtras extras, std::string* out) {
  PutVarint(extras.size(), out);
  for (const KeyExtra& extra : extras) {
    PutVarint(static_cast<uint64_t>(extra.kind), out);
    PutVarint(extra.position.value(), out);
    PutBytes(extra.value, out);
  }
}

void PutRequest(const StepRequest& request, std::string* out) {
  PutVarint(static_cast<uint64_t>(request.kind), out);
  PutVarint(request.id.value(), out);
  PutVarint(request.new_tokens.value(), out);
  PutVarint(request.lookahead.value(), out);
  PutVarint(request.reserve_tokens.value(), out);
  PutVarint(request.priority, out);
  PutVarint(request.share ? 1 : 0, out);
  PutTokens(request.tokens, out);
  PutExtras(request.extras, out);
}

std::string EncodeOptions(const KvCacheOptions& options) {
  std::string payload;
  PutBytes(kOpLogMagic, &payload);
  PutVarint(kOpLogVersion, &payload);
  PutVarint(options.groups.size(), &payload);
  for (const LayerGroup& group : options.groups) PutGroup(group, &payload);
  PutVarint(options.host_blocks.value(), &payload);
  PutVarint(options.max_sequences, &payload);
  PutVarint(options.max_tokens_per_sequence, &payload);
  PutVarint(options.max_steps_in_flight, &payload);
  PutVarint(options.prefix_caching ? 1 : 0, &payload);
  PutVarint(options.watermark_blocks.value(), &payload);
  PutVarint(static_cast<uint64_t>(NameOf(options.eviction)), &payload);
  PutVarint(options.max_extra_bytes_per_sequence, &payload);
  PutVarint(options.index_extra_bytes, &payload);
  PutVarint(options.max_pins, &payload);
  PutVarint(options.event_capacity, &payload);
  PutBytes(options.digest_domain, &payload);
  PutVarint(options.hash_seed, &payload);
  PutVarint(options.device.pages.value(), &payload);
  PutVarint(options.device.splits, &payload);
  PutVarint(options.device.watermark_pages.value(), &payload);
  return payload;
}

}  // namespace paged_kv::internal

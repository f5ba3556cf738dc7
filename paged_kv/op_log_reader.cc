// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <limits>

#include "absl/strings/str_cat.h"
#include "paged_kv/op_log_format.h"
#include "paged_kv/op_log_framing.h"

namespace paged_kv::internal {
namespace {

// Cuts fields from a payload. After the first that is missing or out of range
// every further one reads as zero or empty, and ok() stays false.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view payload) : rest_(payload) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && rest_.empty(); }

  uint64_t Number(uint64_t max = std::numeric_limits<uint64_t>::max()) {
    uint64_t value = 0;
    return Keep(GetVarint(&rest_, &value) && value <= max) ? value : 0;
  }
  uint32_t Number32() {
    return static_cast<uint32_t>(Number(std::numeric_limits<uint32_t>::max()));
  }
  bool Bool() { return Number(1) != 0; }

  std::string Bytes() {
    absl::string_view bytes;
    if (!Keep(GetBytes(&rest_, &bytes))) return {};
    return std::string(bytes);
  }

  // Length of a list whose elements take at least one byte each, so that a
  // corrupt length cannot ask for more memory than the log has bytes.
  size_t Size() {
    const uint64_t size = Number();
    return Keep(size <= rest_.size()) ? size : 0;
  }

  std::vector<TokenId> Tokens() {
    std::vector<TokenId> tokens(Size());
    for (TokenId& token : tokens) token = Token();
    return tokens;
  }

  std::vector<OpExtra> Extras() {
    std::vector<OpExtra> extras(Size());
    for (OpExtra& extra : extras) {
      extra.kind = static_cast<KeyExtra::Kind>(Number(0xFF));
      extra.position = Number32();
      extra.value = Bytes();
    }
    return extras;
  }

  std::vector<OpRequest> Requests() {
    std::vector<OpRequest> requests(Size());
    for (OpRequest& request : requests) {
      request.kind = static_cast<StepRequest::Kind>(
          Number(static_cast<uint64_t>(StepRequest::Kind::kExtend)));
      request.id = Number();
      request.new_tokens = Number32();
      request.lookahead = Number32();
      request.reserve_tokens = Number32();
      request.priority = Number32();
      request.share = Bool();
      request.tokens = Tokens();
      request.extras = Extras();
    }
    return requests;
  }

  std::vector<SequenceId> SequenceIds() {
    std::vector<SequenceId> ids(Size());
    for (SequenceId& id : ids) id = SequenceId(Number());
    return ids;
  }

  LayerGroup Group() {
    LayerGroup group;
    group.shape.layers = Number32();
    group.shape.kv_heads = Number32();
    group.shape.head_dim = Number32();
    group.shape.v_head_dim = Number32();
    group.shape.block_tokens = Number32();
    group.shape.dtype = static_cast<DType>(Number(0xFF));
    group.window = Number32();
    group.sink_tokens = Number32();
    return group;
  }

 private:
  bool Keep(bool good) {
    ok_ = ok_ && good;
    if (!ok_) rest_ = {};
    return ok_;
  }

  TokenId Token() {
    int64_t value = 0;
    const bool good = GetZigzag(&rest_, &value) &&
                      value >= std::numeric_limits<TokenId>::min() &&
                      value <= std::numeric_limits<TokenId>::max();
    return Keep(good) ? static_cast<TokenId>(value) : 0;
  }

  absl::string_view rest_;
  bool ok_ = true;
};

// Reads what follows kind and code.
void ReadBody(FieldReader* in, OpRecord* record) {
  switch (record->kind) {
    case OpKind::kCommit:
      record->result = in->Number();
      record->fitting = in->Bool();
      record->requests = in->Requests();
      record->sequences = in->SequenceIds();
      return;
    case OpKind::kMarkWritten:
    case OpKind::kTruncate:
      record->id = in->Number();
      record->number = in->Number32();
      return;
    case OpKind::kSetTokens:
      record->id = in->Number();
      record->number = in->Number32();
      record->tokens = in->Tokens();
      return;
    case OpKind::kAccept:
      record->id = in->Number();
      record->tokens = in->Tokens();
      return;
    case OpKind::kFork:
      record->result = in->Number();
      record->id = in->Number();
      return;
    case OpKind::kRetire:
    case OpKind::kFree:
    case OpKind::kUnpin:
      record->id = in->Number();
      return;
    case OpKind::kFreeAll:
    case OpKind::kReset:
      return;
    case OpKind::kPin:
      record->result = in->Number();
      record->tokens = in->Tokens();
      record->extras = in->Extras();
      return;
    case OpKind::kDrainEvents:
      record->result = in->Number();
      record->number = in->Number();
      return;
    case OpKind::kSwapIn:
      record->result = in->Number();
      record->sequences = in->SequenceIds();
      record->number = in->Number32();
      return;
    case OpKind::kSwapOut:
    case OpKind::kLoseDevice:
      record->result = in->Number();
      record->sequences = in->SequenceIds();
      return;
    case OpKind::kWriteBack:
      record->result = in->Number();
      record->number = in->Number32();
      return;
    case OpKind::kFinishTransfer:
      record->id = in->Number();
      record->moved = in->Bool();
      return;
  }
}

LoggedOptions ReadOptionFields(FieldReader* in) {
  LoggedOptions logged;
  KvCacheOptions& options = logged.options;
  options.groups.resize(in->Size());
  for (LayerGroup& group : options.groups) group = in->Group();
  options.host_blocks = BlockCount(in->Number32());
  options.max_sequences = in->Number32();
  options.max_tokens_per_sequence = in->Number32();
  options.max_steps_in_flight = in->Number32();
  options.prefix_caching = in->Bool();
  options.watermark_blocks = BlockCount(in->Number32());
  logged.eviction = static_cast<LoggedEviction>(
      in->Number(static_cast<uint64_t>(LoggedEviction::kOther)));
  options.max_extra_bytes_per_sequence = in->Number32();
  options.index_extra_bytes = in->Number32();
  options.max_pins = in->Number32();
  options.event_capacity = in->Number32();
  options.digest_domain = in->Bytes();
  options.hash_seed = in->Number();
  options.device.pages = BlockCount(in->Number32());
  options.device.splits = in->Number32();
  options.device.watermark_pages = BlockCount(in->Number32());
  if (logged.eviction == LoggedEviction::kLru) {
    options.eviction = &MakeLruPolicy;
  } else if (logged.eviction == LoggedEviction::kSegmentedLru) {
    options.eviction = &MakeSegmentedLruPolicy;
  }
  return logged;
}

}  // namespace

absl::StatusOr<absl::string_view> OpLogReader::NextPayload() {
  const uint64_t number = next_number_++;
  absl::string_view payload;
  if (UnframeRecord(number, &rest_, &payload)) return payload;
  rest_ = {};
  return absl::DataLossError(
      absl::StrCat("record ", number, " of the log is cut short or corrupt"));
}

absl::StatusOr<LoggedOptions> OpLogReader::ReadOptions() {
  absl::StatusOr<absl::string_view> payload = NextPayload();
  if (!payload.ok()) return payload.status();
  FieldReader in(*payload);
  if (in.Bytes() != kOpLogMagic) {
    return absl::DataLossError("record 0 is not the header of a PagedKV log");
  }
  if (const uint64_t version = in.Number(); version != kOpLogVersion) {
    return absl::DataLossError(absl::StrCat("record 0 has version ", version,
                                            ", expected ", kOpLogVersion));
  }
  LoggedOptions logged = ReadOptionFields(&in);
  if (!in.AtEnd()) {
    return absl::DataLossError("record 0 of the log is not a set of options");
  }
  return logged;
}

absl::StatusOr<OpRecord> OpLogReader::Next() {
  absl::StatusOr<absl::string_view> payload = NextPayload();
  if (!payload.ok()) return payload.status();
  FieldReader in(*payload);
  OpRecord record;
  const uint64_t kind = in.Number();
  record.code = static_cast<absl::StatusCode>(
      in.Number(static_cast<uint64_t>(absl::StatusCode::kUnauthenticated)));
  if (in.ok() && kind >= static_cast<uint64_t>(OpKind::kCommit) &&
      kind <= static_cast<uint64_t>(OpKind::kLoseDevice)) {
    record.kind = static_cast<OpKind>(kind);
    ReadBody(&in, &record);
    if (in.AtEnd()) return record;
  }
  return absl::DataLossError(
      absl::StrCat("record ", number(), " of the log is not an operation"));
}

}  // namespace paged_kv::internal

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Mooncake and Bailian traces: one JSON object a line.
//
// Mooncake (Qin et al., "Mooncake: A KVCache-centric Disaggregated
// Architecture for LLM Serving", FAST '25): timestamp in milliseconds,
// input_length, output_length, hash_ids of 512 tokens.
// Bailian (Wang et al., "KVCache Cache in the Wild", ATC '25): timestamp in
// seconds, the same lengths, hash_ids of 16 tokens, and the conversation a
// request belongs to (chat_id, parent_chat_id, turn, type), which the hash
// ids already say and which is therefore only checked to be an object's key.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmarks/tool/trace.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "nlohmann/json.hpp"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using nlohmann::json;

absl::StatusOr<const json*> Field(const json& line, const char* key) {
  const auto it = line.find(key);
  if (it == line.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no key '", key, "'"));
  }
  return &*it;
}

// A value for an error message. Structures go by their kind: json::dump() calls
// itself once per level, of which a line may have a million.
std::string Shown(const json& value) {
  return QuoteForError(value.is_structured() ? value.type_name()
                                             : value.dump());
}

absl::StatusOr<uint32_t> TokenCountField(const json& line, const char* key,
                                         uint32_t min) {
  PAGED_KV_ASSIGN_OR_RETURN(const json* value, Field(line, key));
  const bool whole = value->is_number() &&
                     value->get<double>() == std::floor(value->get<double>());
  if (!whole) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " ", Shown(*value), " is not a whole number"));
  }
  const double count = value->get<double>();
  PAGED_KV_RETURN_IF_ERROR(CheckTokenCount(key, count, min));
  return static_cast<uint32_t>(count);
}

absl::StatusOr<absl::Duration> TimeField(const json& line, const char* key,
                                         absl::Duration unit) {
  PAGED_KV_ASSIGN_OR_RETURN(const json* value, Field(line, key));
  if (!value->is_number()) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " ", Shown(*value), " is not a number"));
  }
  const double count = value->get<double>();
  const double max = kMaxTraceSeconds / absl::ToDoubleSeconds(unit);
  if (!(count >= 0) || count > max) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " ", Shown(*value), " is ",
                     count < 0 ? "negative" : "too far in the future"));
  }
  return unit * count;
}

absl::StatusOr<std::vector<uint64_t>> HashIds(const json& line) {
  PAGED_KV_ASSIGN_OR_RETURN(const json* value, Field(line, "hash_ids"));
  if (!value->is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hash_ids ", Shown(*value), " is not an array"));
  }
  std::vector<uint64_t> ids;
  ids.reserve(value->size());
  for (const json& id : *value) {
    if (!id.is_number_unsigned()) {
      return absl::InvalidArgumentError(
          absl::StrCat("hash id ", Shown(id), " is not a whole number from 0"));
    }
    ids.push_back(id.get<uint64_t>());
  }
  return ids;
}

class JsonLineParser : public TraceLineParser {
 public:
  JsonLineParser(uint32_t hash_block_tokens, absl::Duration time_unit)
      : hash_block_tokens_(hash_block_tokens), time_unit_(time_unit) {}

  uint32_t hash_block_tokens() const override { return hash_block_tokens_; }

  absl::StatusOr<RawRequest> Parse(absl::string_view text) const override {
    const json line = json::parse(text.begin(), text.end(), nullptr,
                                  /*allow_exceptions=*/false);
    if (line.is_discarded() || !line.is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(QuoteForError(text), " is not a complete JSON object"));
    }
    RawRequest request;
    PAGED_KV_ASSIGN_OR_RETURN(request.time,
                              TimeField(line, "timestamp", time_unit_));
    PAGED_KV_ASSIGN_OR_RETURN(request.prompt_tokens,
                              TokenCountField(line, "input_length", 1));
    PAGED_KV_ASSIGN_OR_RETURN(request.output_tokens,
                              TokenCountField(line, "output_length", 0));
    PAGED_KV_ASSIGN_OR_RETURN(request.hash_ids, HashIds(line));
    PAGED_KV_RETURN_IF_ERROR(CheckHashIdCount(
        request.hash_ids.size(), request.prompt_tokens, hash_block_tokens_));
    return request;
  }

 private:
  const uint32_t hash_block_tokens_;
  const absl::Duration time_unit_;
};

}  // namespace

std::unique_ptr<TraceLineParser> NewMooncakeParser() {
  return std::make_unique<JsonLineParser>(512, absl::Milliseconds(1));
}

std::unique_ptr<TraceLineParser> NewBailianParser() {
  return std::make_unique<JsonLineParser>(16, absl::Seconds(1));
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/trace_line_parser.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/trace.h"

namespace paged_kv::tool {

std::string QuoteForError(absl::string_view text) {
  constexpr size_t kShown = 48;
  const bool cut = text.size() > kShown;
  const absl::string_view shown = text.substr(0, kShown);
  return absl::StrCat("'", absl::CHexEscape(shown), cut ? "...'" : "'");
}

absl::Status CheckTokenCount(absl::string_view what, double value,
                             uint32_t min) {
  if (value < min) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " ", value, " is ", value < 0 ? "negative" : "too small",
        ", must be at least ", min));
  }
  if (value > kMaxTraceTokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " ", value, " is above the limit of ", kMaxTraceTokens));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ParseTokenCount(absl::string_view what,
                                         absl::string_view text, uint32_t min) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  double value = 0;
  if (!absl::SimpleAtod(trimmed, &value) || std::isnan(value) ||
      (std::isfinite(value) && value != std::floor(value))) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", QuoteForError(text), " is not a whole number"));
  }
  if (absl::Status status = CheckTokenCount(what, value, min); !status.ok()) {
    return status;
  }
  return static_cast<uint32_t>(value);
}

absl::StatusOr<absl::Duration> ParseSeconds(absl::string_view what,
                                            absl::string_view text) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  double seconds = 0;
  if (!absl::SimpleAtod(trimmed, &seconds) || std::isnan(seconds)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", QuoteForError(text), " is not a number"));
  }
  if (seconds < 0 || seconds > kMaxTraceSeconds) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", QuoteForError(text), " is ",
                     seconds < 0 ? "negative" : "too far in the future"));
  }
  return absl::Seconds(seconds);
}

absl::Status CheckHashIdCount(size_t ids, uint32_t prompt_tokens,
                              uint32_t hash_block_tokens) {
  const size_t needed =
      (static_cast<size_t>(prompt_tokens) + hash_block_tokens - 1) /
      hash_block_tokens;
  if (ids == needed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "hash_ids has ", ids, " ids, but input_length ", prompt_tokens, " needs ",
      needed, " of ", hash_block_tokens, " tokens each"));
}

}  // namespace paged_kv::tool

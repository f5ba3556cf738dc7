// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the readers of the single formats share: one line in, one request out.

#ifndef PAGED_KV_BENCHMARKS_TOOL_TRACE_LINE_PARSER_H_
#define PAGED_KV_BENCHMARKS_TOOL_TRACE_LINE_PARSER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace paged_kv::tool {

// A line as it stands in the file, before ids are renumbered and the first
// arrival is subtracted.
struct RawRequest {
  absl::Duration time;  // since an origin that all lines of a file share
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;
  std::vector<uint64_t> hash_ids;
};

class TraceLineParser {
 public:
  virtual ~TraceLineParser() = default;

  // Tokens per hash id; 0 if the format has none.
  virtual uint32_t hash_block_tokens() const = 0;
  // Errors name the value, not the line: the caller knows its number.
  virtual absl::StatusOr<RawRequest> Parse(absl::string_view line) const = 0;
};

std::unique_ptr<TraceLineParser> NewMooncakeParser();
std::unique_ptr<TraceLineParser> NewBailianParser();
std::unique_ptr<TraceLineParser> NewAzureParser();
// Finds its columns by the names in `header`; InvalidArgument if there is
// none for the prompt or the output length.
absl::StatusOr<std::unique_ptr<TraceLineParser>> NewCsvParser(
    absl::string_view header);

// True if `header` is the first line of an Azure LLM inference trace.
bool IsAzureHeader(absl::string_view header);

// A quoted, escaped and shortened form of `text` for a one-line message.
std::string QuoteForError(absl::string_view text);

// Checks that are the same in every format. `what` names the field.
absl::StatusOr<uint32_t> ParseTokenCount(absl::string_view what,
                                         absl::string_view text, uint32_t min);
absl::StatusOr<absl::Duration> ParseSeconds(absl::string_view what,
                                            absl::string_view text);
absl::Status CheckTokenCount(absl::string_view what, double value,
                             uint32_t min);
absl::Status CheckHashIdCount(size_t ids, uint32_t prompt_tokens,
                              uint32_t hash_block_tokens);

// Seconds a time stamp may reach (the year 2286 as Unix time).
inline constexpr double kMaxTraceSeconds = 1e10;

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_TRACE_LINE_PARSER_H_

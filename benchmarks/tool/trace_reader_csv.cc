// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Traces in CSV: Azure LLM inference (2023 and 2024), BurstGPT, and files
// that name their length columns in the ways of ShareGPT-derived tools.
//
// The reader is our own and small: it takes RFC 4180 fields (quotes, doubled
// quotes, commas inside quotes) but one record per line, because an open
// quote that swallows the following lines would hide which line is bad.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "benchmarks/tool/trace.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

absl::StatusOr<std::vector<std::string>> SplitCsvLine(absl::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      const bool doubled =
          c == '"' && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) ++i;
      if (c == '"' && !doubled) {
        quoted = false;
      } else {
        fields.back().push_back(c);
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back().push_back(c);
    }
  }
  if (quoted) {
    return absl::InvalidArgumentError(
        absl::StrCat("unclosed quote in ", QuoteForError(line)));
  }
  return fields;
}

// "Request tokens", "request_tokens" and "RequestTokens" are one name.
std::string NormalizedName(absl::string_view name) {
  std::string normalized;
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      normalized.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
    }
  }
  return normalized;
}

// First the names of BurstGPT, then those of common serving benchmarks.
constexpr std::array kTimeNames = {"timestamp", "arrivaltime", "arrival",
                                   "arrivedat", "time"};
constexpr std::array kPromptNames = {
    "requesttokens", "contexttokens", "prompttokens",     "inputtokens",
    "promptlen",     "promptlength",  "numprompttokens",  "inputlen",
    "inputlength",   "prefilltokens", "numprefilltokens", "promptsize"};
constexpr std::array kOutputNames = {
    "responsetokens",   "generatedtokens", "outputtokens",
    "completiontokens", "outputlen",       "outputlength",
    "numoutputtokens",  "decodetokens",    "numdecodetokens",
    "tokensize",        "outputsize",      "numcompletiontokens"};

std::optional<size_t> FindColumn(absl::Span<const std::string> names,
                                 absl::Span<const char* const> wanted) {
  for (const char* name : wanted) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return i;
    }
  }
  return std::nullopt;
}

// Seconds as a number, or a date and time (UTC unless it says otherwise), from
// 1970 on.
absl::StatusOr<absl::Duration> ParseTimestamp(absl::string_view text) {
  constexpr std::array kFormats = {"%Y-%m-%d %H:%M:%E*S%Ez",
                                   "%Y-%m-%d %H:%M:%E*S"};
  const std::string spaced =
      absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{"T", " "}});
  for (const char* format : kFormats) {
    absl::Time time;
    std::string error;
    if (absl::ParseTime(format, spaced, &time, &error)) {
      // Far years, and "infinite-future", which ParseTime() knows in any
      // format.
      const absl::Duration since_1970 = time - absl::UnixEpoch();
      if (since_1970 < absl::ZeroDuration() ||
          since_1970 > absl::Seconds(kMaxTraceSeconds)) {
        return absl::InvalidArgumentError(
            absl::StrCat("timestamp ", QuoteForError(text),
                         " is not between 1970 and 2286"));
      }
      return since_1970;
    }
  }
  absl::StatusOr<absl::Duration> seconds = ParseSeconds("timestamp", text);
  if (seconds.ok() || text.find('-', 1) == absl::string_view::npos) {
    return seconds;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("timestamp ", QuoteForError(text),
                   " is neither a number of seconds nor "
                   "a date like 2023-11-16 18:17:03.97"));
}

struct CsvColumns {
  std::optional<size_t> time;  // none: everything arrives at once
  size_t prompt = 0;
  size_t output = 0;
  size_t count = 0;
  std::string prompt_name;
  std::string output_name;
};

class CsvLineParser : public TraceLineParser {
 public:
  explicit CsvLineParser(CsvColumns columns) : columns_(std::move(columns)) {}

  uint32_t hash_block_tokens() const override { return 0; }

  absl::StatusOr<RawRequest> Parse(absl::string_view line) const override {
    PAGED_KV_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                              SplitCsvLine(line));
    if (fields.size() != columns_.count) {
      return absl::InvalidArgumentError(
          absl::StrCat(QuoteForError(line), " has ", fields.size(),
                       " fields, the header has ", columns_.count));
    }
    RawRequest request;
    if (columns_.time.has_value()) {
      PAGED_KV_ASSIGN_OR_RETURN(request.time,
                                ParseTimestamp(fields[*columns_.time]));
    }
    PAGED_KV_ASSIGN_OR_RETURN(
        request.prompt_tokens,
        ParseTokenCount(columns_.prompt_name, fields[columns_.prompt], 1));
    PAGED_KV_ASSIGN_OR_RETURN(
        request.output_tokens,
        ParseTokenCount(columns_.output_name, fields[columns_.output], 0));
    return request;
  }

 private:
  const CsvColumns columns_;
};

}  // namespace

bool IsAzureHeader(absl::string_view header) {
  return header == "TIMESTAMP,ContextTokens,GeneratedTokens";
}

std::unique_ptr<TraceLineParser> NewAzureParser() {
  CsvColumns columns;
  columns.time = 0;
  columns.prompt = 1;
  columns.output = 2;
  columns.count = 3;
  columns.prompt_name = "ContextTokens";
  columns.output_name = "GeneratedTokens";
  return std::make_unique<CsvLineParser>(std::move(columns));
}

absl::StatusOr<std::unique_ptr<TraceLineParser>> NewCsvParser(
    absl::string_view header) {
  PAGED_KV_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                            SplitCsvLine(header));
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const std::string& field : fields) {
    names.push_back(NormalizedName(field));
  }
  const std::optional<size_t> prompt = FindColumn(names, kPromptNames);
  const std::optional<size_t> output = FindColumn(names, kOutputNames);
  if (!prompt.has_value() || !output.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the header ", QuoteForError(header), " names no column for the ",
        prompt.has_value() ? "output" : "prompt",
        " tokens (such as 'Request tokens' and 'Response tokens')"));
  }
  CsvColumns columns;
  columns.time = FindColumn(names, kTimeNames);
  columns.prompt = *prompt;
  columns.output = *output;
  columns.count = fields.size();
  columns.prompt_name = fields[*prompt];
  columns.output_name = fields[*output];
  return std::make_unique<CsvLineParser>(std::move(columns));
}

}  // namespace paged_kv::tool

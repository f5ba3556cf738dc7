// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/sha256.h"
#include "benchmarks/tool/trace.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// Hands out the lines of a text without their ends (LF or CRLF). A last line
// without an end counts; the empty rest after a final end does not.
class LineCursor {
 public:
  explicit LineCursor(absl::string_view text) : rest_(text) {
    absl::ConsumePrefix(&rest_, "\xEF\xBB\xBF");  // UTF-8 byte order mark
  }

  bool Next(absl::string_view* line) {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    *line = rest_.substr(0, end);
    rest_ = end == absl::string_view::npos ? absl::string_view()
                                           : rest_.substr(end + 1);
    absl::ConsumeSuffix(line, "\r");
    ++number_;
    return true;
  }

  uint64_t number() const { return number_; }  // of the last line, from 1

 private:
  absl::string_view rest_;
  uint64_t number_ = 0;
};

absl::Status LineError(const std::string& name, uint64_t line,
                       const absl::Status& why) {
  return absl::Status(why.code(),
                      absl::StrCat(name, ":", line, ": ", why.message()));
}

TraceFormat DetectFormat(absl::string_view first_line) {
  if (absl::StartsWith(first_line, "{")) {
    return absl::StrContains(first_line, "\"chat_id\"")
               ? TraceFormat::kBailian
               : TraceFormat::kMooncake;
  }
  return IsAzureHeader(first_line) ? TraceFormat::kAzure : TraceFormat::kCsv;
}

// Takes the header line where the format has one.
absl::StatusOr<std::unique_ptr<TraceLineParser>> OpenParser(
    TraceFormat format, absl::string_view first_line, LineCursor* lines) {
  absl::string_view header;
  switch (format) {
    case TraceFormat::kMooncake:
      return NewMooncakeParser();
    case TraceFormat::kBailian:
      return NewBailianParser();
    case TraceFormat::kAzure:
      lines->Next(&header);
      if (!IsAzureHeader(header)) {
        return absl::InvalidArgumentError(
            absl::StrCat("the header is ", QuoteForError(header),
                         ", an Azure trace begins with "
                         "'TIMESTAMP,ContextTokens,GeneratedTokens'"));
      }
      return NewAzureParser();
    default:
      lines->Next(&header);
      return NewCsvParser(first_line);
  }
}

// Gives ids numbers from 0 in order of first appearance, which keeps token
// values small whatever hash the trace uses.
class HashIdNumbers {
 public:
  uint32_t NumberOf(uint64_t id) {
    return numbers_.try_emplace(id, static_cast<uint32_t>(numbers_.size()))
        .first->second;
  }
  uint32_t size() const { return static_cast<uint32_t>(numbers_.size()); }

 private:
  absl::flat_hash_map<uint64_t, uint32_t> numbers_;
};

absl::StatusOr<RawRequest> ParseLine(const TraceLineParser& parser,
                                     absl::string_view line) {
  if (line.empty()) return absl::InvalidArgumentError("the line is empty");
  return parser.Parse(line);
}

absl::Status CheckOrder(absl::Duration time, absl::Duration last) {
  if (time >= last) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("timestamp is ", absl::FormatDuration(last - time),
                   " earlier than the line before; sort the trace by time"));
}

}  // namespace

absl::string_view TraceFormatName(TraceFormat format) {
  switch (format) {
    case TraceFormat::kAuto:
      return "auto";
    case TraceFormat::kMooncake:
      return "mooncake";
    case TraceFormat::kBailian:
      return "bailian";
    case TraceFormat::kAzure:
      return "azure";
    case TraceFormat::kCsv:
      return "csv";
    case TraceFormat::kGenerated:
      return "generated";
  }
  return "unknown";
}

absl::StatusOr<TraceFormat> ParseTraceFormat(absl::string_view name) {
  for (const TraceFormat format :
       {TraceFormat::kAuto, TraceFormat::kMooncake, TraceFormat::kBailian,
        TraceFormat::kAzure, TraceFormat::kCsv}) {
    if (name == TraceFormatName(format)) return format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown trace format ", QuoteForError(name),
                   "; use auto, mooncake, bailian, azure or csv"));
}

uint64_t Trace::prompt_tokens() const {
  uint64_t total = 0;
  for (const Request& request : requests) total += request.prompt_tokens;
  return total;
}

uint32_t Trace::max_total_tokens() const {
  uint32_t longest = 0;
  for (const Request& request : requests) {
    longest = std::max(longest, request.total_tokens());
  }
  return longest;
}

std::string Trace::short_name() const {
  return name.substr(name.rfind('/') + 1);
}

absl::StatusOr<Trace> ParseTrace(absl::string_view contents,
                                 const std::string& name,
                                 const TraceReadOptions& options) {
  Trace trace;
  trace.name = name;
  trace.sha256 = Sha256Hex(contents);

  absl::string_view line;
  if (LineCursor first(contents); !first.Next(&line)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": the file is empty"));
  }
  trace.format = options.format == TraceFormat::kAuto ? DetectFormat(line)
                                                      : options.format;
  LineCursor lines(contents);
  absl::StatusOr<std::unique_ptr<TraceLineParser>> parser =
      OpenParser(trace.format, line, &lines);
  if (!parser.ok()) return LineError(name, 1, parser.status());
  trace.hash_block_tokens = (*parser)->hash_block_tokens();

  HashIdNumbers numbers;
  absl::Duration first_time, last_time;
  while (lines.Next(&line)) {
    absl::StatusOr<RawRequest> raw = ParseLine(**parser, line);
    const bool first = trace.requests.empty();
    absl::Status status = raw.status();
    if (status.ok() && !first) status = CheckOrder(raw->time, last_time);
    if (!status.ok()) {
      if (!options.skip_bad_lines) {
        return LineError(name, lines.number(), status);
      }
      ++trace.skipped_lines;
      continue;
    }
    if (first) first_time = raw->time;
    last_time = raw->time;

    Request& request = trace.requests.emplace_back();
    request.arrival = raw->time - first_time;
    request.prompt_tokens = raw->prompt_tokens;
    request.output_tokens = raw->output_tokens;
    request.hash_ids.reserve(raw->hash_ids.size());
    for (const uint64_t id : raw->hash_ids) {
      request.hash_ids.push_back(numbers.NumberOf(id));
    }
    if (trace.requests.size() == options.max_requests) break;
  }
  trace.distinct_hash_ids = numbers.size();
  if (trace.requests.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": no request to replay (", trace.skipped_lines,
                     " bad lines left out)"));
  }
  return trace;
}

absl::StatusOr<Trace> ReadTrace(const std::string& path,
                                const TraceReadOptions& options) {
  PAGED_KV_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseTrace(contents, path, options);
}

}  // namespace paged_kv::tool

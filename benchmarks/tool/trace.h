// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A serving trace: what arrived when, how long it was and which parts of the
// prompts are equal. Everything that the tool replays is one of these,
// whether it was read from a file or generated.

#ifndef PAGED_KV_BENCHMARKS_TOOL_TRACE_H_
#define PAGED_KV_BENCHMARKS_TOOL_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace paged_kv::tool {

enum class TraceFormat { kAuto, kMooncake, kBailian, kAzure, kCsv, kGenerated };

// "mooncake", "azure", ... for reports.
absl::string_view TraceFormatName(TraceFormat format);
// InvalidArgument names the formats that exist.
absl::StatusOr<TraceFormat> ParseTraceFormat(absl::string_view name);

struct Request {
  absl::Duration arrival;      // since the first request of the trace
  uint32_t prompt_tokens = 0;  // >= 1
  uint32_t output_tokens = 0;
  // One id per Trace::hash_block_tokens prompt tokens, the last one for the
  // rest; equal ids mean equal tokens. Empty: the prompt is like no other.
  std::vector<uint32_t> hash_ids;

  uint32_t total_tokens() const { return prompt_tokens + output_tokens; }
};

struct Trace {
  std::string name;    // the file, or the name of the workload
  std::string sha256;  // of the file's bytes; empty if generated
  TraceFormat format = TraceFormat::kGenerated;
  uint32_t hash_block_tokens = 0;  // 0: no request has hash ids
  uint32_t distinct_hash_ids = 0;  // ids are dense: 0 .. this - 1
  uint64_t skipped_lines = 0;      // bad lines left out on request
  std::vector<Request> requests;   // by arrival

  uint64_t prompt_tokens() const;
  uint32_t max_total_tokens() const;
  // The name without folders, for titles.
  std::string short_name() const;
};

struct TraceReadOptions {
  TraceFormat format = TraceFormat::kAuto;
  // Leaves bad lines out and counts them, instead of refusing the file.
  bool skip_bad_lines = false;
  // Stops after this many requests; 0 reads them all.
  uint64_t max_requests = 0;
};

// Longest prompt, and longest output, that a line may claim. Far above every
// model; it keeps one absurd number from asking for a terabyte.
inline constexpr uint32_t kMaxTraceTokens = 1u << 24;

// Reads a trace file. Every error is one line that names the file, the line
// number and the offending value:
//   NotFound          the file cannot be opened;
//   InvalidArgument   the format is unknown, a line is bad (truncated, empty,
//                     non-numeric, negative, huge, earlier than the line
//                     before, hash ids that do not cover the prompt), or
//                     nothing is left to replay.
absl::StatusOr<Trace> ReadTrace(const std::string& path,
                                const TraceReadOptions& options);

// The same for contents already in memory; `name` stands for the file.
absl::StatusOr<Trace> ParseTrace(absl::string_view contents,
                                 const std::string& name,
                                 const TraceReadOptions& options);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_TRACE_H_

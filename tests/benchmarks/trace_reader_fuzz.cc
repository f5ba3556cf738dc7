// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a trace of any format: read or refused, never a crash, and what
// is read keeps the promises of trace.h.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "benchmarks/tool/trace.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

void CheckTrace(const Trace& trace) {
  PAGED_KV_CHECK(!trace.requests.empty());
  absl::Duration last;
  for (const Request& request : trace.requests) {
    PAGED_KV_CHECK(request.arrival >= last);
    PAGED_KV_CHECK(request.arrival <= absl::Hours(24 * 366 * 317));
    last = request.arrival;
    PAGED_KV_CHECK(request.prompt_tokens >= 1);
    PAGED_KV_CHECK(request.prompt_tokens <= kMaxTraceTokens);
    PAGED_KV_CHECK(request.output_tokens <= kMaxTraceTokens);
    if (trace.hash_block_tokens == 0) {
      PAGED_KV_CHECK(request.hash_ids.empty());
      continue;
    }
    PAGED_KV_CHECK(request.hash_ids.size() ==
                   (request.prompt_tokens + trace.hash_block_tokens - 1) /
                       trace.hash_block_tokens);
    for (const uint32_t id : request.hash_ids) {
      PAGED_KV_CHECK(id < trace.distinct_hash_ids);
    }
  }
}

// The first byte chooses format and options, the rest is the file. Every other
// file gets a header that the reader knows, so that lines are reached.
void ReadOne(const uint8_t* data, size_t size) {
  constexpr TraceFormat kFormats[] = {
      TraceFormat::kAuto, TraceFormat::kMooncake, TraceFormat::kBailian,
      TraceFormat::kAzure, TraceFormat::kCsv};
  constexpr absl::string_view kHeaders[] = {
      "", "TIMESTAMP,ContextTokens,GeneratedTokens\n",
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"};
  if (size == 0) return;
  TraceReadOptions options;
  options.format = kFormats[data[0] % 5];
  options.skip_bad_lines = (data[0] / 5) % 2 == 1;
  std::string contents(kHeaders[(data[0] / 10) % 3]);
  contents.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  const absl::StatusOr<Trace> trace = ParseTrace(contents, "fuzz", options);
  if (trace.ok()) {
    CheckTrace(*trace);
  } else {
    PAGED_KV_CHECK(trace.status().code() == absl::StatusCode::kInvalidArgument);
    PAGED_KV_CHECK(trace.status().message().find('\n') ==
                   absl::string_view::npos);
  }
}

}  // namespace
}  // namespace paged_kv::tool

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  paged_kv::tool::ReadOne(data, size);
  return 0;
}

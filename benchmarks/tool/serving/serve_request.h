// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Timed requests to a model, from JSON lines or made up.

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_REQUEST_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/serving/model_flags.h"
#include "benchmarks/tool/serving/prompts.h"
#include "benchmarks/tool/workload.h"
#include "docs/examples/llm/engine/sampling.h"

namespace paged_kv::tool {

struct ServeRequest {
  std::string id;        // as given, else the number of the line
  double arrival_s = 0;  // since the start
  Prompt prompt;
  uint32_t max_tokens = 128;
  llm::SamplingOptions sampling;
  bool ignore_end = false;
};

// A line that is no request, and why.
struct BadLine {
  uint64_t line = 0;
  std::string reason;
};

struct ServeRequests {
  std::vector<ServeRequest> requests;  // by arrival
  std::vector<BadLine> bad_lines;
  std::string trace_sha256;  // of the file that lengths came from, or empty
};

// One JSON object per line; blank lines are skipped. Keys: "prompt" (text) or
// "tokens" (ids); "id", "arrival_s", "max_tokens", "temperature", "top_k",
// "top_p", "seed", "chat", "system", "ignore_end". What a line leaves out comes
// from `defaults`. A bad line, one with an unknown key among them, is reported
// and the rest is read.
ServeRequests ParseServeRequests(absl::string_view lines,
                                 const LoadedModel& model,
                                 const ServeRequest& defaults);

// Requests in place of a file of them: lengths and arrivals of a trace, or like
// those of a public one; tokens at random.
struct ServeWorkload {
  WorkloadOptions trace;
  // A trace to take the first trace.requests requests from, in place of its
  // statistics. Arrivals are stretched to trace.requests_per_second.
  std::string trace_path{};
  uint32_t shared_prefix = 0;        // tokens with which all prompts begin
  uint32_t max_prompt_tokens = 512;  // longer prompts are cut to this
  uint32_t max_output_tokens = 128;  // and longer outputs to this
  bool timed = false;  // arrive as in the trace; else all at the start
};

// InvalidArgument if the prompts and outputs do not fit the model's context;
// errors of ReadTrace().
absl::StatusOr<ServeRequests> MakeServeRequests(const ServeWorkload& workload,
                                                const LoadedModel& model,
                                                const ServeRequest& defaults);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_REQUEST_H_

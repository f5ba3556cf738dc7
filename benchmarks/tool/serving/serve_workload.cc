// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/serving/serve_request.h"
#include "benchmarks/tool/trace.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// A token that stands for text.
TokenId TextToken(const LoadedModel& model, Random& random) {
  while (true) {
    const auto token = static_cast<TokenId>(random.Below(model.config().vocab));
    if (model.tokenizer == nullptr || !model.tokenizer->IsControl(token)) {
      return token;
    }
  }
}

void AppendText(const LoadedModel& model, uint32_t tokens, Random& random,
                std::vector<TokenId>* prompt) {
  for (uint32_t i = 0; i < tokens; ++i) {
    prompt->push_back(TextToken(model, random));
  }
}

// Arrivals as far apart as `requests_per_second` says, in the trace's rhythm.
void StretchArrivals(double requests_per_second, Trace* trace) {
  const absl::Duration last = trace->requests.back().arrival;
  if (requests_per_second <= 0 || last <= absl::ZeroDuration()) return;
  const double wanted_s =
      static_cast<double>(trace->requests.size()) / requests_per_second;
  const double factor = wanted_s / absl::ToDoubleSeconds(last);
  for (Request& request : trace->requests) request.arrival *= factor;
}

absl::StatusOr<Trace> LoadTrace(const ServeWorkload& workload) {
  if (workload.trace_path.empty()) return GenerateWorkload(workload.trace);
  TraceReadOptions options;
  options.max_requests = workload.trace.requests;
  PAGED_KV_ASSIGN_OR_RETURN(Trace trace,
                            ReadTrace(workload.trace_path, options));
  StretchArrivals(workload.trace.requests_per_second, &trace);
  return trace;
}

}  // namespace

absl::StatusOr<ServeRequests> MakeServeRequests(const ServeWorkload& workload,
                                                const LoadedModel& model,
                                                const ServeRequest& defaults) {
  const uint64_t longest = uint64_t{workload.shared_prefix} +
                           workload.max_prompt_tokens +
                           workload.max_output_tokens;
  if (longest > model.config().max_context) {
    return absl::InvalidArgumentError(
        absl::StrCat(workload.shared_prefix, " + ", workload.max_prompt_tokens,
                     " prompt tokens and ", workload.max_output_tokens,
                     " output tokens do not fit the model's context of ",
                     model.config().max_context,
                     "; lower --shared_prefix, --max_prompt_tokens or "
                     "--max_output_tokens"));
  }
  PAGED_KV_ASSIGN_OR_RETURN(const Trace trace, LoadTrace(workload));
  Random random(workload.trace.seed);
  std::vector<TokenId> shared;
  AppendText(model, workload.shared_prefix, random, &shared);
  ServeRequests result;
  result.trace_sha256 = trace.sha256;
  for (const Request& traced : trace.requests) {
    ServeRequest request = defaults;
    request.id = absl::StrCat(result.requests.size() + 1);
    if (workload.timed) {
      request.arrival_s = absl::ToDoubleSeconds(traced.arrival);
    }
    request.prompt.tokens = shared;
    AppendText(model,
               std::min(traced.prompt_tokens, workload.max_prompt_tokens),
               random, &request.prompt.tokens);
    request.max_tokens = std::clamp(traced.output_tokens, uint32_t{1},
                                    workload.max_output_tokens);
    // The lengths are those of the trace, whatever the model says.
    request.ignore_end = true;
    result.requests.push_back(std::move(request));
  }
  return result;
}

}  // namespace paged_kv::tool

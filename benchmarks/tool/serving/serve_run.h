// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_RUN_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "benchmarks/tool/serving/batch_options.h"
#include "benchmarks/tool/serving/model_flags.h"
#include "benchmarks/tool/serving/serve_request.h"
#include "benchmarks/tool/serving/serving_stats.h"
#include "paged_kv/batch_scheduler_request.h"

namespace paged_kv::tool {

enum class Batching : uint8_t {
  kNone,     // one request after the other
  kStatic,   // fill a batch, run it to its end, fill the next
  kDynamic,  // requests join and leave at every step
};

const char* BatchingName(Batching batching);
// InvalidArgument lists the names.
absl::StatusOr<Batching> ParseBatching(absl::string_view name);

struct ServeOptions : BatchOptions {
  Batching batching = Batching::kDynamic;
};

// Times are seconds since the start.
struct ServedRequest {
  FinishReason reason = FinishReason::kUnfinished;
  std::vector<TokenId> output;
  double arrival_s = 0;
  double first_token_s = 0;
  double finished_s = 0;
  uint32_t cached_tokens = 0;
  std::string error;  // why it was refused, or empty

  bool HasOutput() const { return !output.empty(); }
  double TimeToFirstToken() const { return first_token_s - arrival_s; }
  // Of the tokens behind the first; 0 if there is none.
  double TimePerOutputToken() const;
};

struct ServeResult {
  Batching batching = Batching::kDynamic;
  bool prefix_sharing = true;
  std::vector<ServedRequest> requests;  // in the order given
  ServingStats stats;
  bool interrupted = false;
};

// Serves the requests when they arrive, on the real clock. `interrupted` is
// asked before each step; true cancels all that is not done. `progress` hears
// how many requests are done.
absl::StatusOr<ServeResult> Serve(
    LoadedModel& model, absl::Span<const ServeRequest> requests,
    const ServeOptions& options, const std::function<bool()>& interrupted,
    const std::function<void(uint64_t)>& progress);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_RUN_H_

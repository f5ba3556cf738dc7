// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/serving/lengths_compare.h"
#include "benchmarks/tool/serving/serve_request.h"
#include "benchmarks/tool/table.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// Scores of longer prompts do not fit everybody's memory: at 4,096 tokens and
// 32 heads they take 2 GB.
constexpr uint32_t kMaxNaiveTokens = 4096;

LengthsCase RandomPrompt(const LoadedModel& model, uint32_t tokens,
                         uint64_t seed) {
  Random random(seed);
  LengthsCase length;
  length.name = absl::StrCat(Grouped(tokens), " tokens");
  for (uint32_t i = 0; i < tokens; ++i) {
    length.tokens.push_back(
        static_cast<TokenId>(random.Below(model.config().vocab)));
  }
  return length;
}

// Longer prompts are cut to this; outputs are not cut, for it is their spread
// that static batching suffers from.
constexpr uint32_t kMaxServedPrompt = 256;
constexpr uint32_t kMaxServedOutput = 1024;

// One workload, cut to the context.
absl::Status ServeByAll(LoadedModel& model, const CompareOptions& options,
                        const std::function<bool()>& interrupted,
                        const std::function<void(const std::string&)>& progress,
                        CompareResult* result) {
  const uint32_t context = model.config().max_context;
  ServeWorkload workload;
  workload.trace = {WorkloadProfile::kAzureConversation, options.seed,
                    options.requests, 0};
  workload.trace_path = options.trace_path;
  workload.max_prompt_tokens = std::min(kMaxServedPrompt, context / 2);
  workload.max_output_tokens =
      std::min(kMaxServedOutput, context - workload.max_prompt_tokens);
  PAGED_KV_ASSIGN_OR_RETURN(const ServeRequests requests,
                            MakeServeRequests(workload, model, {}));
  result->trace_sha256 = requests.trace_sha256;
  ServeOptions serve;
  serve.cache = options.lengths.cache;
  serve.step_tokens = options.lengths.step_tokens;
  for (const Batching batching :
       {Batching::kNone, Batching::kStatic, Batching::kDynamic}) {
    progress(absl::StrCat(BatchingName(batching), " batching"));
    serve.batching = batching;
    PAGED_KV_ASSIGN_OR_RETURN(
        ServeResult served,
        Serve(model, requests.requests, serve, interrupted, nullptr));
    result->interrupted = served.interrupted;
    result->batching.push_back(std::move(served));
    if (result->interrupted) break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompareResult> Compare(
    LoadedModel& model, const CompareOptions& options,
    const std::function<bool()>& interrupted,
    const std::function<void(const std::string&)>& progress) {
  CompareResult result;
  result.model = model.name;
  result.model_file = model.path;
  for (const uint32_t tokens : options.tokens) {
    if (tokens + options.generated + 1 > model.config().max_context) continue;
    progress(absl::StrCat("with and without the cache, ", tokens, " tokens"));
    absl::StatusOr<RecomputeRow> row =
        CompareRecompute(model, RandomPrompt(model, tokens, options.seed),
                         options.generated, options.lengths, interrupted);
    if (absl::IsCancelled(row.status())) {
      result.interrupted = true;
      return result;
    }
    PAGED_KV_RETURN_IF_ERROR(row.status());
    result.recompute.push_back(*row);
  }
  if (result.recompute.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no length fits the model's context of ",
                     model.config().max_context, " tokens"));
  }
  for (const uint32_t tokens : options.tokens) {
    if (tokens > std::min(kMaxNaiveTokens, model.config().max_context))
      continue;
    if (interrupted()) {
      result.interrupted = true;
      return result;
    }
    progress(absl::StrCat("naive and flash prefill, ", tokens, " tokens"));
    PAGED_KV_ASSIGN_OR_RETURN(const PrefillRow row,
                              ComparePrefill(model.config(), tokens,
                                             options.lengths.cache.block_tokens,
                                             options.seed, *model.threads));
    result.prefill.push_back(row);
  }
  PAGED_KV_RETURN_IF_ERROR(
      ServeByAll(model, options, interrupted, progress, &result));
  return result;
}

}  // namespace paged_kv::tool

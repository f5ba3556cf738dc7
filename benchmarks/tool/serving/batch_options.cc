// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/batch_options.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/trace_line_parser.h"

namespace paged_kv::tool {
namespace {

absl::StatusOr<Preemption> ParsePreemption(absl::string_view name) {
  if (name == "recompute") return Preemption::kRecompute;
  if (name == "swap") return Preemption::kSwap;
  if (name == "auto") return Preemption::kAuto;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown preemption ", QuoteForError(name),
                   "; use recompute, swap or auto"));
}

}  // namespace

llm::EngineOptions EngineOptionsFor(const BatchOptions& options,
                                    const BatchLoad& load) {
  llm::EngineOptions engine;
  engine.cache = options.cache;
  engine.cache.max_tokens = load.longest;
  engine.scheduler.max_batch_sequences = options.batch;
  // Each sequence that runs has at least a token in every step, and one that
  // drafts has room for its drafts.
  engine.scheduler.max_batch_tokens =
      std::max({options.step_tokens, options.batch, options.draft_tokens + 1});
  engine.scheduler.max_draft_tokens = options.draft_tokens;
  engine.scheduler.max_requests = std::max(load.requests, 1u);
  const uint64_t sequences = std::min<uint64_t>(options.batch, load.sequences);
  const uint64_t blocks = (load.longest + engine.cache.block_tokens - 1) /
                          engine.cache.block_tokens;
  const auto all =
      static_cast<uint32_t>(std::max<uint64_t>(sequences * blocks, 1));
  if (engine.cache.blocks == 0) engine.cache.blocks = all;
  if (options.preemption != Preemption::kRecompute) {
    engine.scheduler.decode_tier = Tier::kDevice;
    engine.cache.device_pages = engine.cache.blocks;
    engine.cache.blocks = std::max(engine.cache.blocks, all);
  }
  if (options.preemption == Preemption::kSwap) {
    engine.scheduler.recompute_token_bytes = 0;
  }
  return engine;
}

void AddBatchFlags(CLI::App& app, const std::string& group,
                   BatchOptions* options) {
  AddNumber(app, "--batch", &options->batch, 1, 1024,
            "Sequences that run at once")
      ->group(group);
  AddNumber(app, "--step_tokens", &options->step_tokens, 1, 1u << 20,
            "Tokens computed per step at most")
      ->group(group);
  AddNumber(app, "--speculate", &options->draft_tokens, 0, 64,
            "Check up to N tokens per decode that are looked up in what the "
            "sequence said before; answers stay the same")
      ->expected(0, 1)  // the flag alone: the default shown
      ->default_str("4")
      ->group(group);
  AddChoice(app, "--preempt", &options->preemption, ParsePreemption,
            "recompute|swap|auto", "recompute",
            "How sequences that had to give way for lack of blocks come back; "
            "swap and auto keep them in memory behind the pool")
      ->group(group);
}

}  // namespace paged_kv::tool

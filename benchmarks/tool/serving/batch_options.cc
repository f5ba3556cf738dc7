// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/batch_options.h"

#include <algorithm>

#include "benchmarks/tool/flags.h"

namespace paged_kv::tool {
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
  if (engine.cache.blocks == 0) {
    const uint64_t sequences =
        std::min<uint64_t>(options.batch, load.sequences);
    const uint64_t blocks = (load.longest + engine.cache.block_tokens - 1) /
                            engine.cache.block_tokens;
    engine.cache.blocks =
        static_cast<uint32_t>(std::max<uint64_t>(sequences * blocks, 1));
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
}

}  // namespace paged_kv::tool

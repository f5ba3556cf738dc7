// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ENGINE_TIMES_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ENGINE_TIMES_H_

#include <cstdint>

namespace paged_kv::llm {

// Where the time of all steps went; the forward pass: Transformer::times().
struct EngineTimes {
  uint64_t steps = 0;
  double schedule_s = 0;  // choosing, planning, committing, retiring
  double tables_s = 0;    // slots and page tables
  double forward_s = 0;
  double sample_s = 0;
  double draft_s = 0;  // guessing what comes next

  double Total() const {
    return schedule_s + tables_s + forward_s + sample_s + draft_s;
  }
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ENGINE_TIMES_H_

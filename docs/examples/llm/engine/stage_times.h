// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STAGE_TIMES_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STAGE_TIMES_H_

#include <chrono>

namespace paged_kv::llm {

// Where a forward pass spends its time.
struct StageTimes {
  double embedding_s = 0;
  double linear_s = 0;     // all products but the last
  double attention_s = 0;  // planning, block copies, append, attention
  double output_s = 0;     // logits
  double other_s = 0;      // norms, RoPE, SwiGLU, residual sums

  double Total() const {
    return embedding_s + linear_s + attention_s + output_s + other_s;
  }
};

// Gives each stretch of time to one stage.
class StageClock {
 public:
  explicit StageClock(StageTimes* times) : times_(times) {}

  // What passed since construction or the last call was spent on `stage`.
  void Charge(double StageTimes::*stage) {
    const auto now = std::chrono::steady_clock::now();
    times_->*stage += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  StageTimes* const times_;
  std::chrono::steady_clock::time_point last_ =
      std::chrono::steady_clock::now();
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STAGE_TIMES_H_

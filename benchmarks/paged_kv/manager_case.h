// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_MANAGER_CASE_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_MANAGER_CASE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "benchmarks/paged_kv/cost_case.h"
#include "benchmarks/paged_kv/filled_manager.h"
#include "benchmarks/paged_kv/token_content.h"

namespace paged_kv::benchmarks {

// Base of the cases that go through a manager's public calls.
class ManagerCase : public CostCase {
 public:
  explicit ManagerCase(uint32_t blocks) : manager_(blocks) {}
  size_t footprint_bytes() const override { return manager_.footprint_bytes(); }

 protected:
  FilledManager& manager() { return manager_; }

  // Makes `count` prompts of `prompt_tokens` tokens that nothing is cached of.
  void MakeNewPrompts(int count, uint32_t prompt_tokens) {
    StartPrompts(count, prompt_tokens);
    for (int i = 0; i < count; ++i) {
      FillText(manager_.NewText(), 0, MutablePrompt(i));
    }
  }
  void StartPrompts(int count, uint32_t prompt_tokens) {
    prompt_tokens_ = prompt_tokens;
    tokens_.resize(static_cast<size_t>(count) * prompt_tokens);
  }
  absl::Span<TokenId> MutablePrompt(int i) {
    return absl::MakeSpan(tokens_).subspan(
        static_cast<size_t>(i) * prompt_tokens_, prompt_tokens_);
  }
  absl::Span<const TokenId> Prompt(int i) { return MutablePrompt(i); }

 private:
  FilledManager manager_;
  uint32_t prompt_tokens_ = 0;
  std::vector<TokenId> tokens_;
};

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_MANAGER_CASE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_ATTENTION_OPTIONS_H_
#define PAGED_KV_ATTENTION_ATTENTION_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "attention/isa.h"

namespace paged_kv::attention {

struct AttentionOptions {
  // -- Affects results --

  // Factor on every query-key product; finite. 0: 1 / sqrt(head_dim).
  float scale = 0.0f;

  // A query at position p sees keys at p - window + 1 and later; 0: all keys.
  uint32_t window = 0;

  // The first tokens of a sequence, which every query sees even where its
  // window has moved on (attention sinks, Xiao et al. 2023,
  // arXiv:2309.17453). Without a window it has no meaning.
  uint32_t sink_tokens = 0;

  // Scaled products s become soft_cap * tanh(s / soft_cap) before the softmax
  // (Gemma 2); finite, not negative. 0: none.
  float soft_cap = 0.0f;

  // A query at position p sees no key after p. Only a prefill can turn it off:
  // a decode query has no key after it.
  bool causal = true;

  // -- Affects speed --

  // Sequences that decode read pages that they begin with in common once. Off,
  // each reads its own. Results differ by rounding.
  bool share_prefixes = true;

  // Instruction set to use. Results of different ones differ by rounding.
  Isa isa = Isa::kAuto;
};

// InvalidArgument, with the number, for a scale or soft_cap out of range or an
// ISA that does not run here.
absl::Status Validate(const AttentionOptions& options);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_ATTENTION_OPTIONS_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_SUPPORT_ATTENTION_RANDOM_SPEC_H_
#define PAGED_KV_TESTS_SUPPORT_ATTENTION_RANDOM_SPEC_H_

#include <cstdint>

#include "tests/support/attention_problem.h"

namespace paged_kv::attention::testing {

// A small problem, a function of the seed: any dtype, heads, ratio, head_dim,
// block size, page order, lengths around every boundary, windows with sinks and
// released blocks, caps, decode and ragged or mixed prefill batches.
AttentionSpec RandomSpec(uint64_t seed);

}  // namespace paged_kv::attention::testing

#endif  // PAGED_KV_TESTS_SUPPORT_ATTENTION_RANDOM_SPEC_H_

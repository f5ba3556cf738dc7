// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Included before Highway by kernels that need the size of a vector at compile
// time: leaves out the targets that do not have it.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FIXED_VECTORS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FIXED_VECTORS_H_

#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FIXED_VECTORS_H_

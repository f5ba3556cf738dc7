// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_SCOPED_TARGET_H_
#define PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_SCOPED_TARGET_H_

#include <cstdint>

#include "hwy/targets.h"

namespace paged_kv::llm {

// Makes the kernels use one of Highway's targets, as long as it lives.
class ScopedTarget {
 public:
  explicit ScopedTarget(int64_t target) { Use(target); }
  ~ScopedTarget() { Use(0); }
  ScopedTarget(const ScopedTarget&) = delete;
  ScopedTarget& operator=(const ScopedTarget&) = delete;

 private:
  static void Use(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_SCOPED_TARGET_H_

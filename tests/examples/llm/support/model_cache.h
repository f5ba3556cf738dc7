// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_MODEL_CACHE_H_
#define PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_MODEL_CACHE_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace paged_kv::llm {

// Where `make model` puts SmolLM2-135M-Instruct.
inline std::filesystem::path SmolLm2Path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder =
      cache != nullptr && *cache != '\0'
          ? std::filesystem::path(cache)
          : std::filesystem::path(home != nullptr ? home : ".") / ".cache";
  return folder / "pagedkv" / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

inline std::filesystem::path SharedFile(const std::string& name) {
  const char* folder = std::getenv("PAGED_KV_SHARED_DIR");
  return std::filesystem::path(folder != nullptr ? folder : "../shared") / name;
}

}  // namespace paged_kv::llm

#endif  // PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_MODEL_CACHE_H_

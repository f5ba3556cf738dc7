// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the public traces that some tests replay. They are not part of the
// sources; without them such a test is skipped and says why.

#ifndef PAGED_KV_TESTS_BENCHMARKS_SHARED_TRACES_H_
#define PAGED_KV_TESTS_BENCHMARKS_SHARED_TRACES_H_

#include <cstdlib>
#include <filesystem>
#include <string>

#include "benchmarks/tool/trace.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {

inline constexpr char kConversationTrace[] =
    "AzureLLMInferenceTrace_conv_2023.csv";
inline constexpr char kCodeTrace[] = "AzureLLMInferenceTrace_code_2023.csv";
inline constexpr char kMooncakeTrace[] = "mooncake_conversation_trace.jsonl";

// Where the trace would lie, whether it does or not.
inline std::string SharedTracePath(const std::string& file) {
  const char* shared = std::getenv("PAGED_KV_SHARED_DIR");
  const std::filesystem::path root = shared != nullptr
                                         ? std::filesystem::path(shared)
                                         : std::filesystem::path("../shared");
  return (root / "traces" / file).string();
}

// The whole trace, or as many requests as PAGED_KV_TEST_REQUESTS says: builds
// with sanitizers replay the beginning.
inline Trace ReadSharedTrace(const std::string& path) {
  TraceReadOptions options;
  if (const char* requests = std::getenv("PAGED_KV_TEST_REQUESTS")) {
    options.max_requests = std::stoull(requests);
  }
  return ReadTrace(path, options).value();
}

}  // namespace paged_kv::tool

// Skips the test, loudly, unless the trace is there; `path` gets its place.
#define PAGED_KV_NEEDS_TRACE(path, file)                                  \
  const std::string path = ::paged_kv::tool::SharedTracePath(file);       \
  if (!std::filesystem::exists(path)) {                                   \
    GTEST_SKIP() << "SKIPPED, NOT TESTED: no trace at " << path           \
                 << "; set PAGED_KV_SHARED_DIR to the folder that holds " \
                    "traces/";                                            \
  }                                                                       \
  static_assert(true)

#endif  // PAGED_KV_TESTS_BENCHMARKS_SHARED_TRACES_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

// A process of its own: the peak of a process does not fall again.

#include <filesystem>

#include "benchmarks/tool/command.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/examples/llm/support/model_cache.h"

namespace paged_kv::tool {
namespace {

TEST(PeakMemoryTest, IsTheSumOfProgramWeightsAndCache) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers hold memory of their own";
#endif
  const std::filesystem::path path = llm::SmolLm2Path();
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is not there; `make model` fetches it";
  }
  const Invocation outcome =
      Invoke({"generate", "--model=" + path.string(), "--weights=bf16",
              "--prompt=The capital of France is", "--max_tokens=4", "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto memory = nlohmann::json::parse(outcome.out)["stats"]["memory"];
  const double weights = memory["weight_bytes"];
  // 134,515,008 parameters, those of the tied embedding once, 35,136 of them
  // norms in f32.
  EXPECT_EQ(weights, 2 * 134'515'008 + 2 * 35'136);
  EXPECT_GT(memory["program_bytes"], 1'000'000);
  EXPECT_EQ(memory["parts_bytes"],
            weights + memory["program_bytes"].get<double>() +
                memory["cache_peak_bytes"].get<double>());
  EXPECT_GE(memory["process_peak_bytes"], weights);
  EXPECT_LE(memory["process_peak_bytes"],
            1.1 * memory["parts_bytes"].get<double>());
}

}  // namespace
}  // namespace paged_kv::tool

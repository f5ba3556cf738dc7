// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

// A process of its own: the peak of a process does not fall again.

#include <filesystem>
#include <string>

#include "benchmarks/tool/command.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/examples/llm/support/model_cache.h"

namespace paged_kv::tool {
namespace {

void ExpectPeakIsTheSumOfItsParts(const std::string& model,
                                  const std::string& prompt) {
  const Invocation outcome =
      Invoke({"generate", "--model=" + model, "--weights=bf16",
              "--prompt=" + prompt, "--max_tokens=4", "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto memory = nlohmann::json::parse(outcome.out)["stats"]["memory"];
  const double weights = memory["weight_bytes"];
  // 134,515,008 parameters, those of the tied embedding once, 35,136 of them
  // norms in f32.
  EXPECT_EQ(weights, 2 * 134'515'008 + 2 * 35'136);
  EXPECT_GT(memory["program_bytes"], 1'000'000);
  // A token's residual stream at least, and its logits.
  EXPECT_GT(memory["step_bytes"], (576 + 49'152) * sizeof(float));
  EXPECT_EQ(memory["parts_bytes"],
            weights + memory["program_bytes"].get<double>() +
                memory["cache_peak_bytes"].get<double>() +
                memory["step_bytes"].get<double>());
  EXPECT_GE(memory["process_peak_bytes"], weights);
  EXPECT_LE(memory["process_peak_bytes"],
            1.1 * memory["parts_bytes"].get<double>());
}

// In this order: the longer prompt needs more.
TEST(PeakMemoryTest, IsTheSumOfProgramWeightsCacheAndStep) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers hold memory of their own";
#endif
  const std::filesystem::path path = llm::SmolLm2Path();
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is not there; `make model` fetches it";
  }
  std::string prompt = "The capital of France is";
  ExpectPeakIsTheSumOfItsParts(path.string(), prompt);
  for (int i = 0; i < 250; ++i) prompt += ", the capital of France is";
  ExpectPeakIsTheSumOfItsParts(path.string(), prompt);
}

}  // namespace
}  // namespace paged_kv::tool

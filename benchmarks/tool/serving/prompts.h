// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_PROMPTS_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_PROMPTS_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/serving/model_flags.h"
#include "paged_kv/types.h"

namespace paged_kv::tool {

struct Prompt {
  std::string text;
  std::vector<TokenId> tokens;
};

struct PromptOptions {
  bool chat = false;   // the text is a user's message
  std::string system;  // the system message before it; empty: the model's own
};

// The tokens of a prompt. An empty one is the model's BOS token.
// InvalidArgument if there is none, for text that is not UTF-8, for a prompt
// that leaves no room in the model's context; FailedPrecondition for a model
// without a vocabulary, or one without a known chat format where that is asked
// for.
absl::StatusOr<Prompt> MakePrompt(const LoadedModel& model,
                                  absl::string_view text,
                                  const PromptOptions& options);

// Tokens after which an answer ends: EOS and its like.
std::vector<TokenId> EndTokens(const LoadedModel& model);

// --prompt, --prompts_file, --chat, --system.
struct PromptFlags {
  std::vector<std::string> texts;
  std::string file;
  PromptOptions options;

  void AddTo(CLI::App& app);
  // Those of --prompt, then those of the file. InvalidArgument if there is
  // none, or naming the one that is bad.
  absl::StatusOr<std::vector<Prompt>> Load(const LoadedModel& model) const;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_PROMPTS_H_

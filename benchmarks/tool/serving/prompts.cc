// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/prompts.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/flags.h"
#include "docs/examples/llm/tokenizer/chat_template.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

absl::StatusOr<std::vector<TokenId>> Encode(const LoadedModel& model,
                                            absl::string_view text,
                                            const PromptOptions& options) {
  if (!options.chat) return model.tokenizer->Encode(text);
  std::vector<llm::ChatMessage> messages;
  if (!options.system.empty()) {
    messages.push_back({llm::ChatRole::kSystem, options.system});
  }
  messages.push_back({llm::ChatRole::kUser, std::string(text)});
  return llm::EncodeChat(*model.tokenizer, messages);
}

}  // namespace

absl::StatusOr<Prompt> MakePrompt(const LoadedModel& model,
                                  absl::string_view text,
                                  const PromptOptions& options) {
  if (model.tokenizer == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        model.name, " has no vocabulary; name one with --tokenizer=FILE"));
  }
  Prompt prompt;
  prompt.text = std::string(text);
  PAGED_KV_ASSIGN_OR_RETURN(prompt.tokens, Encode(model, text, options));
  if (prompt.tokens.empty()) {
    if (!model.tokenizer->bos()) {
      return absl::InvalidArgumentError(
          "an empty prompt, and the model has no token to begin with");
    }
    prompt.tokens.push_back(*model.tokenizer->bos());
  }
  if (prompt.tokens.size() >= model.config().max_context) {
    return absl::InvalidArgumentError(
        absl::StrCat("a prompt of ", prompt.tokens.size(),
                     " tokens leaves no room in the model's context of ",
                     model.config().max_context));
  }
  return prompt;
}

std::vector<TokenId> EndTokens(const LoadedModel& model) {
  std::vector<TokenId> tokens;
  if (model.tokenizer == nullptr) return tokens;
  for (size_t i = 0; i < model.tokenizer->size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    if (model.tokenizer->EndsText(token)) tokens.push_back(token);
  }
  return tokens;
}

void PromptFlags::AddTo(CLI::App& app) {
  const std::string group = "Prompt";
  app.add_option("--prompt", texts, "What to continue; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->group(group);
  AddText(app, "--prompts_file", &file, "FILE", "One prompt per line")
      ->group(group);
  app.add_flag("--chat", options.chat,
               "Prompts are a user's messages, in the model's chat format")
      ->group(group);
  AddText(app, "--system", &options.system, "TEXT",
          "The system message before them (with --chat)")
      ->group(group);
}

absl::StatusOr<std::vector<Prompt>> PromptFlags::Load(
    const LoadedModel& model) const {
  if (!options.system.empty() && !options.chat) {
    return absl::InvalidArgumentError("--system needs --chat");
  }
  std::vector<std::string> all = texts;
  if (!file.empty()) {
    PAGED_KV_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file));
    for (absl::string_view line : absl::StrSplit(contents, '\n')) {
      absl::ConsumeSuffix(&line, "\r");
      if (!line.empty()) all.emplace_back(line);
    }
  }
  if (all.empty()) {
    return absl::InvalidArgumentError(
        "no prompt; give --prompt=TEXT (may be empty) or --prompts_file=FILE");
  }
  std::vector<Prompt> prompts;
  for (const std::string& text : all) {
    absl::StatusOr<Prompt> prompt = MakePrompt(model, text, options);
    if (!prompt.ok()) {
      return absl::Status(prompt.status().code(),
                          absl::StrCat("prompt ", prompts.size() + 1, ": ",
                                       prompt.status().message()));
    }
    prompts.push_back(*std::move(prompt));
  }
  return prompts;
}

}  // namespace paged_kv::tool

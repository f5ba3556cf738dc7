// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/sampling_flags.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/trace_line_parser.h"

namespace paged_kv::tool {
namespace {

// A number that fits the check of sampling options when set as `field`.
auto ParserOf(const char* flag, float llm::SamplingOptions::*field) {
  return [flag, field](absl::string_view text) -> absl::StatusOr<float> {
    llm::SamplingOptions options;
    if (!absl::SimpleAtof(text, &(options.*field))) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, "=", QuoteForError(text), " is not a number"));
    }
    const absl::Status status = Validate(options);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": ", status.message()));
    }
    return options.*field;
  };
}

}  // namespace

void AddSamplingFlags(CLI::App& app, llm::SamplingOptions* options) {
  const std::string group = "Generation";
  AddChoice(app, "--temperature", &options->temperature,
            ParserOf("--temperature", &llm::SamplingOptions::temperature), "X",
            absl::StrCat(options->temperature),
            "How evenly tokens are drawn; 0: always the most likely one")
      ->group(group);
  AddNumber(app, "--top_k", &options->top_k, 0, 1u << 24,
            "Draw from the K most likely tokens; 0: from all")
      ->group(group);
  AddChoice(app, "--top_p", &options->top_p,
            ParserOf("--top_p", &llm::SamplingOptions::top_p), "X",
            absl::StrCat(options->top_p),
            "Draw from the fewest tokens whose probabilities reach this")
      ->group(group);
}

}  // namespace paged_kv::tool

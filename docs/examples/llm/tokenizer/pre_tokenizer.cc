// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/pre_tokenizer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// What the original patterns write as \s inside a class: the White_Space
// property of Unicode. PCRE2's own \s has U+180E besides, which lost that
// property in Unicode 6.3.
#define PAGED_KV_SPACE                                        \
  R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a})" \
  R"(\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"

#define PAGED_KV_SPACES_LAST \
  "[" PAGED_KV_SPACE "]+(?![^" PAGED_KV_SPACE "])|[" PAGED_KV_SPACE "]+"

// GPT-2: encoder.py of github.com/openai/gpt-2.
constexpr char kGpt2[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" PAGED_KV_SPACE
    R"(\p{L}\p{N}]+|)" PAGED_KV_SPACES_LAST;

// SmolLM and StarCoder cut single digits out before that ("Digits",
// individual_digits, in their tokenizer.json).
constexpr char kDigit[] = R"(\p{N})";

// Llama 3 and Qwen2, from their tokenizer.json; they differ in how many digits
// stay together.
#define PAGED_KV_LLAMA3(digits)                                       \
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" digits  \
  R"(| ?[^)" PAGED_KV_SPACE R"(\p{L}\p{N}]+[\r\n]*|[)" PAGED_KV_SPACE \
  R"(]*[\r\n]+|)" PAGED_KV_SPACES_LAST

constexpr char kLlama3[] = PAGED_KV_LLAMA3(R"(\p{N}{1,3})");
constexpr char kQwen2[] = PAGED_KV_LLAMA3(R"(\p{N})");

struct Known {
  absl::string_view name;
  std::vector<absl::string_view> stages;
  bool whole_pieces_first;  // ignore_merges of tokenizer.json
};

// Names as llama.cpp's converter writes them.
const std::vector<Known>& KnownPreTokenizers() {
  static const auto* known = new std::vector<Known>{
      {"gpt-2", {kGpt2}, false},
      {"smollm", {kDigit, kGpt2}, false},
      {"starcoder", {kDigit, kGpt2}, false},
      {"qwen2", {kQwen2}, false},
      {"deepseek-r1-qwen", {kQwen2}, false},
      {"llama-bpe", {kLlama3}, true},
  };
  return *known;
}

}  // namespace

PreTokenizer::PreTokenizer(std::vector<SplitPattern> stages,
                           bool whole_pieces_first)
    : stages_(std::move(stages)), whole_pieces_first_(whole_pieces_first) {}

absl::StatusOr<PreTokenizer> PreTokenizer::Create(absl::string_view name) {
  std::string names;
  for (const Known& known : KnownPreTokenizers()) {
    if (known.name != name) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", known.name);
      continue;
    }
    std::vector<SplitPattern> stages;
    for (const absl::string_view pattern : known.stages) {
      PAGED_KV_ASSIGN_OR_RETURN(SplitPattern stage,
                                SplitPattern::Create(pattern));
      stages.push_back(std::move(stage));
    }
    return PreTokenizer(std::move(stages), known.whole_pieces_first);
  }
  return absl::UnimplementedError(
      absl::StrCat("the pre-tokenizer is \"", name, "\"; there are ", names));
}

absl::StatusOr<std::vector<absl::string_view>> PreTokenizer::Split(
    absl::string_view text) const {
  std::vector<absl::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  for (const SplitPattern& stage : stages_) {
    std::vector<absl::string_view> finer;
    for (const absl::string_view piece : pieces) {
      PAGED_KV_RETURN_IF_ERROR(stage.Split(piece, &finer));
    }
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace paged_kv::llm

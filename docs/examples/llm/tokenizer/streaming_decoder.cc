// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/streaming_decoder.h"

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "docs/examples/llm/tokenizer/utf8.h"

namespace paged_kv::llm {

StreamingDecoder::StreamingDecoder(const Tokenizer* tokenizer, bool at_start)
    : tokenizer_(tokenizer),
      at_start_(at_start && tokenizer->adds_first_space()),
      drops_space_(at_start_) {}

std::string StreamingDecoder::Next(TokenId token) {
  absl::string_view bytes = tokenizer_->TokenBytes(token);
  if (drops_space_) absl::ConsumePrefix(&bytes, " ");
  drops_space_ = tokenizer_->adds_first_space() && tokenizer_->IsSpecial(token);
  pending_.append(bytes.data(), bytes.size());

  absl::string_view rest = pending_;
  std::string text;
  while (!rest.empty()) {
    const Utf8Step step = NextUtf8(rest);
    if (step.kind == Utf8Kind::kIncomplete) break;
    if (step.kind == Utf8Kind::kCharacter) {
      text.append(rest.data(), step.bytes);
    } else {
      text += kReplacementCharacter;
    }
    rest.remove_prefix(step.bytes);
  }
  pending_ = std::string(rest);
  return text;
}

std::string StreamingDecoder::Finish() {
  const std::string text = ReplaceInvalidUtf8(pending_);
  pending_.clear();
  drops_space_ = at_start_;
  return text;
}

}  // namespace paged_kv::llm

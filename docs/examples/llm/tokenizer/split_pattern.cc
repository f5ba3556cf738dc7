// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/split_pattern.h"

#include <pcre2.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "docs/examples/llm/tokenizer/utf8.h"

namespace paged_kv::llm {
namespace {

std::string ErrorText(int error) {
  PCRE2_UCHAR text[128];
  pcre2_get_error_message(error, text, std::size(text));
  return reinterpret_cast<const char*>(text);
}

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

}  // namespace

void SplitPattern::FreeCode::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

SplitPattern::SplitPattern(Code code) : code_(std::move(code)) {}

absl::StatusOr<SplitPattern> SplitPattern::Create(absl::string_view pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  // UCP: \p{L} and case folding by Unicode.
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                          pattern.size(), PCRE2_UTF | PCRE2_UCP, &error,
                          &offset, nullptr));
  if (code == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "split pattern: ", ErrorText(error), " at character ", offset));
  }
  // Without machine code, as where memory may not become executable, PCRE2
  // interprets: slower, the same.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return SplitPattern(std::move(code));
}

absl::Status SplitPattern::Split(absl::string_view text,
                                 std::vector<absl::string_view>* pieces) const {
  const std::unique_ptr<pcre2_match_data, FreeMatchData> data(
      pcre2_match_data_create(1, nullptr));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto match = [&](size_t from, uint32_t options) {
    return pcre2_match(code_.get(), subject, text.size(), from,
                       PCRE2_NO_UTF_CHECK | options, data.get(), nullptr);
  };
  size_t done = 0;  // up to here the text is in pieces
  size_t from = 0;
  while (from < text.size()) {
    int result = match(from, 0);
    // The machine code's stack is small; the interpreter uses the heap.
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = match(from, PCRE2_NO_JIT);
    }
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return absl::InternalError(
          absl::StrCat("splitting at byte ", from, ": ", ErrorText(result)));
    }
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.get());
    if (bounds[1] <= bounds[0]) {  // an empty match cuts nothing off
      from = bounds[0] >= text.size()
                 ? text.size()
                 : bounds[0] + NextUtf8(text.substr(bounds[0])).bytes;
      continue;
    }
    if (bounds[0] > done) {
      pieces->push_back(text.substr(done, bounds[0] - done));
    }
    pieces->push_back(text.substr(bounds[0], bounds[1] - bounds[0]));
    done = from = bounds[1];
  }
  if (done < text.size()) pieces->push_back(text.substr(done));
  return absl::OkStatus();
}

}  // namespace paged_kv::llm

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SPLIT_PATTERN_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SPLIT_PATTERN_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// PCRE2's compiled pattern, whose header only the source includes.
struct pcre2_real_code_8;

namespace paged_kv::llm {

// A regular expression that cuts text into pieces: its matches, and what lies
// between them.
//
// Thread safety: immutable, so any number of threads may use one.
class SplitPattern {
 public:
  // InvalidArgument: no pattern, and where not.
  static absl::StatusOr<SplitPattern> Create(absl::string_view pattern);

  // Appends the pieces of `text`, which is UTF-8; none is empty, and together
  // they are the text. Internal: PCRE2 gave up.
  absl::Status Split(absl::string_view text,
                     std::vector<absl::string_view>* pieces) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  using Code = std::unique_ptr<pcre2_real_code_8, FreeCode>;

  explicit SplitPattern(Code code);

  Code code_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SPLIT_PATTERN_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_PRE_TOKENIZER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_PRE_TOKENIZER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "docs/examples/llm/tokenizer/split_pattern.h"

namespace paged_kv::llm {

// Cuts text into the pieces within which byte-level BPE merges.
//
// Thread safety: immutable, so any number of threads may use one.
class PreTokenizer {
 public:
  // By its name in tokenizer.ggml.pre. Unimplemented: an unknown one.
  static absl::StatusOr<PreTokenizer> Create(absl::string_view name);

  // The pieces of `text`, which is UTF-8: none empty, together the text.
  absl::StatusOr<std::vector<absl::string_view>> Split(
      absl::string_view text) const;

  // A piece that is a token as a whole becomes it, whatever its merges say.
  bool whole_pieces_first() const { return whole_pieces_first_; }

 private:
  PreTokenizer(std::vector<SplitPattern> stages, bool whole_pieces_first);

  std::vector<SplitPattern> stages_;  // each cuts the pieces of the one before
  bool whole_pieces_first_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_PRE_TOKENIZER_H_

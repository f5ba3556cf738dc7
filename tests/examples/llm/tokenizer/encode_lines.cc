// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tokenizes by a model file what stands on standard input, for comparison with
// other tokenizers. Texts end in a zero byte; each gives a line of token ids.
//
//   encode_lines MODEL.gguf < texts

#include <cstdio>
#include <iostream>
#include <string>

#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/gguf_file.h"
#include "docs/examples/llm/model_file/gguf_vocabulary.h"
#include "docs/examples/llm/tokenizer/tokenizer.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

absl::Status Run(const std::string& path) {
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source,
                            OpenFile(path));
  PAGED_KV_ASSIGN_OR_RETURN(GgufFile file, ReadGguf(*source));
  PAGED_KV_ASSIGN_OR_RETURN(Vocabulary vocabulary, TakeGgufVocabulary(&file));
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                            Tokenizer::Create(std::move(vocabulary)));
  for (std::string text; std::getline(std::cin, text, '\0');) {
    PAGED_KV_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                              tokenizer->Encode(text, {AddBos::kNo, true}));
    for (const TokenId token : tokens) std::cout << token << ' ';
    std::cout << '\n';
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace paged_kv::llm

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: encode_lines MODEL.gguf < texts\n");
    return 2;
  }
  const absl::Status status = paged_kv::llm::Run(argv[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The logits of token sequences, for comparison with other engines. Lines of
// token ids on standard input; for each, f32 [tokens, vocab] on standard
// output. Weights and K/V are f32. A sequence is computed in two parts, so that
// the second one reads pages that the first one wrote.
//
//   print_logits MODEL < sequences

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "docs/examples/llm/model_file/load_model.h"
#include "paged_kv/status_macros.h"
#include "tests/examples/llm/engine/support/engine_bench.h"

namespace paged_kv::llm {
namespace {

void Write(const std::vector<float>& logits) {
  std::cout.write(reinterpret_cast<const char*>(logits.data()),
                  static_cast<std::streamsize>(logits.size() * sizeof(float)));
}

absl::Status Run(const std::string& path) {
  LoadOptions load;
  load.weight_type = WeightType::kF32;
  load.on_demand = true;
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                            LoadModel(path, load));
  const uint32_t max_tokens = std::min(model->config.max_context, 2048u);
  ModelCacheOptions cache;
  cache.dtype = DType::kF32;
  cache.block_tokens = 16;
  cache.max_tokens = max_tokens;
  cache.prefix_caching = false;
  std::vector<std::vector<TokenId>> sequences;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream numbers(line);
    sequences.emplace_back();
    for (TokenId token; numbers >> token;) sequences.back().push_back(token);
    if (sequences.back().size() < 2 || sequences.back().size() > max_tokens) {
      return absl::InvalidArgumentError(
          "a sequence has less than 2 tokens or more than the context");
    }
    cache.blocks += static_cast<uint32_t>(sequences.back().size() / 16 + 1);
  }
  cache.max_sequences = static_cast<uint32_t>(sequences.size());
  EngineBench bench(std::move(model), cache);
  for (const std::vector<TokenId>& tokens : sequences) {
    const size_t half = tokens.size() / 2;
    const auto all = absl::MakeConstSpan(tokens);
    SequenceId id;
    Write(bench.Extend(&id, all.first(half)));
    Write(bench.Extend(&id, all.subspan(half)));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace paged_kv::llm

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: print_logits MODEL < sequences\n");
    return 2;
  }
  const absl::Status status = paged_kv::llm::Run(argv[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

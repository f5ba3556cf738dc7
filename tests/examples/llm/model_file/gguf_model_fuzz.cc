// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a GGUF model: read or refused, never a crash. The first byte
// chooses whether they are the file, or changes to a file that is right.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/gguf_model.h"
#include "docs/examples/llm/tokenizer/tokenizer.h"
#include "paged_kv/check.h"
#include "tests/examples/llm/support/tiny_gguf.h"

namespace paged_kv::llm {
namespace {

const std::string& RightFile(bool qwen2) {
  static const auto* llama =
      new std::string(TinyGguf("llama", /*tied=*/false).Finish());
  static const auto* other =
      new std::string(TinyGguf("qwen2", /*tied=*/true).Finish());
  return qwen2 ? *other : *llama;
}

// Each three bytes of `changes`: a place, in two bytes, and its new byte.
std::string Change(std::string file, const std::string& changes) {
  for (size_t i = 0; i + 2 < changes.size(); i += 3) {
    const size_t place = static_cast<uint8_t>(changes[i]) * size_t{256} +
                         static_cast<uint8_t>(changes[i + 1]);
    file[place % file.size()] = changes[i + 2];
  }
  return file;
}

void CheckModel(const Model& model) {
  PAGED_KV_CHECK(ValidateConfig(model.config).ok());
  PAGED_KV_CHECK(model.layers.size() == model.config.layers);
  PAGED_KV_CHECK(model.token_embedding.rows == model.config.vocab);
  PAGED_KV_CHECK(model.output.rows == model.config.vocab);
  for (const LayerWeights& layer : model.layers) {
    PAGED_KV_CHECK(layer.wq.rows == model.config.heads * model.config.head_dim);
    PAGED_KV_CHECK(layer.w_down.cols == model.config.intermediate);
    PAGED_KV_CHECK(layer.attention_norm.size() == model.config.hidden);
  }
}

void LoadOne(const uint8_t* data, size_t size) {
  if (size == 0) return;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string file =
      data[0] % 4 == 0 ? bytes : Change(RightFile(data[0] % 4 == 1), bytes);
  const auto model = LoadGgufModel(OpenMemory(file), {});
  if (!model.ok()) return;
  CheckModel(**model);
  const auto tokenizer = Tokenizer::Create((*model)->vocabulary);
  if (!tokenizer.ok()) return;
  const auto tokens =
      (*tokenizer)->Encode("ab <s> a \u65e5", {AddBos::kYes, true});
  if (tokens.ok()) (*tokenizer)->Decode(*tokens);
}

}  // namespace
}  // namespace paged_kv::llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  paged_kv::llm::LoadOne(data, size);
  return 0;
}

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_TINY_GGUF_H_
#define PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_TINY_GGUF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/examples/llm/support/gguf_writer.h"

namespace paged_kv::llm {

// Sizes that are all different, so that no two roles can be mixed up.
struct TinySizes {
  uint32_t hidden = 10;
  uint32_t intermediate = 20;
  uint32_t layers = 2;
  uint32_t heads = 6;
  uint32_t kv_heads = 3;
  uint32_t head_dim = 4;
  uint32_t context = 40;
};

inline const std::vector<std::string>& TinyTokens() {
  static const auto* tokens = new std::vector<std::string>{
      "<unk>", "<s>", "</s>", "<0x41>", "\u2581", "a", "b", "\u2581a", "ab"};
  return *tokens;
}

// The value of element i of a tensor: small, and its own.
inline float TinyValue(const std::string& name, uint64_t i) {
  uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
  hash = (hash ^ static_cast<uint32_t>(i)) * 16777619U;
  return static_cast<float>(static_cast<int32_t>(hash >> 16) - 32768) / 65536.F;
}

inline std::vector<float> TinyValues(const std::string& name, uint64_t count) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = TinyValue(name, i);
  return values;
}

inline void AddTinyTensor(GgufWriter* writer, const std::string& name,
                          std::vector<uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t size : shape) count *= size;
  writer->AddF32(name, std::move(shape), TinyValues(name, count));
}

// A whole f32 model of `architecture`, tied or not, with a vocabulary.
inline GgufWriter TinyGguf(const std::string& architecture, bool tied,
                           const TinySizes& sizes = {}) {
  GgufWriter writer;
  writer.Add("general.architecture", architecture);
  writer.Add("general.name", "tiny");
  const std::string prefix = architecture + ".";
  writer.Add(prefix + "block_count", sizes.layers);
  writer.Add(prefix + "context_length", sizes.context);
  writer.Add(prefix + "embedding_length", sizes.hidden);
  writer.Add(prefix + "feed_forward_length", sizes.intermediate);
  writer.Add(prefix + "attention.head_count", sizes.heads);
  writer.Add(prefix + "attention.head_count_kv", sizes.kv_heads);
  writer.Add(prefix + "attention.key_length", sizes.head_dim);
  writer.Add(prefix + "attention.value_length", sizes.head_dim);
  writer.Add(prefix + "attention.layer_norm_rms_epsilon", 1e-6F);
  writer.Add(prefix + "rope.freq_base", 50000.0F);
  writer.Add("tokenizer.ggml.model", "llama");
  writer.Add("tokenizer.ggml.tokens", TinyTokens());
  writer.Add("tokenizer.ggml.scores",
             std::vector<float>{0, 0, 0, 0, -3, -4, -5, -1, -2});
  writer.Add("tokenizer.ggml.token_type",
             std::vector<int32_t>{2, 3, 3, 6, 1, 1, 1, 1, 1});
  writer.Add("tokenizer.ggml.bos_token_id", uint32_t{1});
  writer.Add("tokenizer.ggml.eos_token_id", uint32_t{2});

  const uint64_t vocab = TinyTokens().size();
  const uint64_t q_rows = uint64_t{sizes.heads} * sizes.head_dim;
  const uint64_t kv_rows = uint64_t{sizes.kv_heads} * sizes.head_dim;
  AddTinyTensor(&writer, "token_embd.weight", {sizes.hidden, vocab});
  for (uint32_t i = 0; i < sizes.layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    AddTinyTensor(&writer, layer + "attn_norm.weight", {sizes.hidden});
    AddTinyTensor(&writer, layer + "attn_q.weight", {sizes.hidden, q_rows});
    AddTinyTensor(&writer, layer + "attn_k.weight", {sizes.hidden, kv_rows});
    AddTinyTensor(&writer, layer + "attn_v.weight", {sizes.hidden, kv_rows});
    AddTinyTensor(&writer, layer + "attn_output.weight",
                  {q_rows, sizes.hidden});
    AddTinyTensor(&writer, layer + "ffn_norm.weight", {sizes.hidden});
    AddTinyTensor(&writer, layer + "ffn_gate.weight",
                  {sizes.hidden, sizes.intermediate});
    AddTinyTensor(&writer, layer + "ffn_up.weight",
                  {sizes.hidden, sizes.intermediate});
    AddTinyTensor(&writer, layer + "ffn_down.weight",
                  {sizes.intermediate, sizes.hidden});
    if (architecture == "qwen2") {
      AddTinyTensor(&writer, layer + "attn_q.bias", {q_rows});
      AddTinyTensor(&writer, layer + "attn_k.bias", {kv_rows});
      AddTinyTensor(&writer, layer + "attn_v.bias", {kv_rows});
    }
  }
  AddTinyTensor(&writer, "output_norm.weight", {sizes.hidden});
  if (!tied) AddTinyTensor(&writer, "output.weight", {sizes.hidden, vocab});
  return writer;
}

}  // namespace paged_kv::llm

#endif  // PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_TINY_GGUF_H_

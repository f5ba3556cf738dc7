// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/model_shapes.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmarks/tool/trace_line_parser.h"

namespace paged_kv::tool {
namespace {

using llm::ModelConfig;

struct NamedShape {
  const char* name;
  ModelConfig config;
};

ModelConfig Llama(uint32_t vocab, uint32_t hidden, uint32_t intermediate,
                  uint32_t layers, uint32_t heads, uint32_t kv_heads) {
  ModelConfig c;
  c.vocab = vocab;
  c.hidden = hidden;
  c.intermediate = intermediate;
  c.layers = layers;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = hidden / heads;
  return c;
}

ModelConfig Qwen2(ModelConfig c, bool tied) {
  c.architecture = llm::Architecture::kQwen2;
  c.max_context = 32768;
  c.rope_theta = 1e6F;
  c.rope_style = llm::RopeStyle::kHalfSplit;
  c.rms_epsilon = 1e-6F;
  c.tied_embeddings = tied;
  c.qkv_bias = true;
  return c;
}

// HuggingFaceTB/SmolLM2-135M.
ModelConfig SmolLm2() {
  ModelConfig c = Llama(49152, 576, 1536, 30, 9, 3);
  c.max_context = 8192;
  c.rope_theta = 1e5F;
  c.tied_embeddings = true;
  return c;
}

// meta-llama/Llama-3.2-1B, without the stretching of RoPE beyond 8,192.
ModelConfig Llama32() {
  ModelConfig c = Llama(128256, 2048, 8192, 16, 32, 8);
  c.max_context = 131072;
  c.rope_theta = 5e5F;
  c.tied_embeddings = true;
  return c;
}

const std::vector<NamedShape>& Shapes() {
  static const auto* const shapes = new std::vector<NamedShape>{
      {"smollm2-135m", SmolLm2()},
      {"qwen2.5-0.5b", Qwen2(Llama(151936, 896, 4864, 24, 14, 2), true)},
      {"qwen2.5-1.5b", Qwen2(Llama(151936, 1536, 8960, 28, 12, 2), true)},
      {"qwen2.5-7b", Qwen2(Llama(152064, 3584, 18944, 28, 28, 4), false)},
      {"llama-3.2-1b", Llama32()}};
  return *shapes;
}

}  // namespace

std::string ShapeNames() {
  return absl::StrJoin(Shapes(), "|",
                       [](std::string* out, const NamedShape& shape) {
                         absl::StrAppend(out, shape.name);
                       });
}

absl::StatusOr<ModelConfig> ShapeByName(absl::string_view name) {
  for (const NamedShape& shape : Shapes()) {
    if (name == shape.name) return shape.config;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown shape ", QuoteForError(std::string(name)),
                   "; use one of ", ShapeNames()));
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/gguf_config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "docs/examples/llm/model_file/gguf_metadata.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

absl::Status CannotCompute(const std::string& what) {
  return absl::UnimplementedError(
      absl::StrCat("the model has ", what, ", which this engine lacks"));
}

// Keys of one model: "<architecture>.<name>".
class Keys {
 public:
  Keys(const GgufFile* file, const std::string& architecture)
      : file_(file), prefix_(absl::StrCat(architecture, ".")) {}

  absl::StatusOr<uint32_t> Get(absl::string_view name) const {
    return GetUint32(*file_, absl::StrCat(prefix_, name));
  }
  absl::StatusOr<uint32_t> GetOr(absl::string_view name,
                                 uint32_t fallback) const {
    PAGED_KV_ASSIGN_OR_RETURN(const absl::optional<uint32_t> value,
                              FindUint32(*file_, absl::StrCat(prefix_, name)));
    return value.value_or(fallback);
  }
  absl::StatusOr<float> GetFloatOr(absl::string_view name,
                                   float fallback) const {
    PAGED_KV_ASSIGN_OR_RETURN(const absl::optional<float> value,
                              FindFloat(*file_, absl::StrCat(prefix_, name)));
    return value.value_or(fallback);
  }
  absl::StatusOr<std::string> GetTextOr(absl::string_view name,
                                        absl::string_view fallback) const {
    PAGED_KV_ASSIGN_OR_RETURN(
        const std::string* value,
        FindValue<std::string>(*file_, absl::StrCat(prefix_, name)));
    return value == nullptr ? std::string(fallback) : *value;
  }

 private:
  const GgufFile* file_;
  std::string prefix_;
};

absl::StatusOr<Architecture> ReadArchitecture(const GgufFile& file) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const std::string* name,
      FindValue<std::string>(file, "general.architecture"));
  if (name == nullptr) {
    return absl::InvalidArgumentError("GGUF: there is no general.architecture");
  }
  if (*name == "llama") return Architecture::kLlama;
  if (*name == "qwen2") return Architecture::kQwen2;
  return absl::UnimplementedError(absl::StrCat(
      "the architecture is ", *name, "; this engine has llama and qwen2"));
}

// Refuses what would be computed wrongly rather than not at all.
absl::Status RefuseVariants(const Keys& keys, const ModelConfig& config) {
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t experts,
                            keys.GetOr("expert_count", 0));
  if (experts > 0) return CannotCompute(absl::StrCat(experts, " experts"));
  PAGED_KV_ASSIGN_OR_RETURN(
      const uint32_t window,
      keys.GetOr("attention.sliding_window", config.max_context));
  if (window != 0 && window < config.max_context) {
    return CannotCompute(absl::StrCat("a window of ", window, " tokens"));
  }
  PAGED_KV_ASSIGN_OR_RETURN(const std::string scaling,
                            keys.GetTextOr("rope.scaling.type", "none"));
  PAGED_KV_ASSIGN_OR_RETURN(const float linear,
                            keys.GetFloatOr("rope.scale_linear", 1.0F));
  if (scaling != "none" || linear != 1.0F) {
    return CannotCompute(absl::StrCat("RoPE scaling (", scaling, ")"));
  }
  PAGED_KV_ASSIGN_OR_RETURN(
      const uint32_t rotated,
      keys.GetOr("rope.dimension_count", config.head_dim));
  if (rotated != config.head_dim) {
    return CannotCompute(absl::StrCat("RoPE over ", rotated, " of ",
                                      config.head_dim, " dimensions"));
  }
  PAGED_KV_ASSIGN_OR_RETURN(
      const uint32_t value_dim,
      keys.GetOr("attention.value_length", config.head_dim));
  if (value_dim != config.head_dim) {
    return CannotCompute(absl::StrCat("values of ", value_dim,
                                      " dimensions beside keys of ",
                                      config.head_dim));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ReadVocabularySize(const GgufFile& file) {
  const auto found = file.tensors.find("token_embd.weight");
  if (found == file.tensors.end()) {
    return absl::InvalidArgumentError("GGUF: there is no token_embd.weight");
  }
  const std::vector<uint64_t>& shape = found->second.shape;
  // Token ids are 31 bits.
  if (shape.size() != 2 || shape[1] >= (uint64_t{1} << 31)) {
    return absl::InvalidArgumentError(
        "GGUF: token_embd.weight is no matrix of fewer than 2^31 rows");
  }
  return static_cast<uint32_t>(shape[1]);
}

}  // namespace

absl::StatusOr<ModelConfig> ReadGgufConfig(const GgufFile& file) {
  ModelConfig config;
  PAGED_KV_ASSIGN_OR_RETURN(config.architecture, ReadArchitecture(file));
  const Keys keys(&file, ArchitectureName(config.architecture));
  PAGED_KV_ASSIGN_OR_RETURN(config.vocab, ReadVocabularySize(file));
  PAGED_KV_ASSIGN_OR_RETURN(config.hidden, keys.Get("embedding_length"));
  PAGED_KV_ASSIGN_OR_RETURN(config.intermediate,
                            keys.Get("feed_forward_length"));
  PAGED_KV_ASSIGN_OR_RETURN(config.layers, keys.Get("block_count"));
  PAGED_KV_ASSIGN_OR_RETURN(config.heads, keys.Get("attention.head_count"));
  PAGED_KV_ASSIGN_OR_RETURN(
      config.kv_heads, keys.GetOr("attention.head_count_kv", config.heads));
  PAGED_KV_ASSIGN_OR_RETURN(
      config.head_dim,
      keys.GetOr("attention.key_length",
                 config.heads == 0 ? 0 : config.hidden / config.heads));
  PAGED_KV_ASSIGN_OR_RETURN(config.max_context, keys.Get("context_length"));
  PAGED_KV_ASSIGN_OR_RETURN(config.rope_theta,
                            keys.GetFloatOr("rope.freq_base", 10000.0F));
  // Absent, it is refused below: guessing it would be silently wrong.
  PAGED_KV_ASSIGN_OR_RETURN(
      config.rms_epsilon,
      keys.GetFloatOr("attention.layer_norm_rms_epsilon", -1.0F));
  config.rope_style = config.architecture == Architecture::kLlama
                          ? RopeStyle::kInterleaved
                          : RopeStyle::kHalfSplit;
  config.tied_embeddings = file.tensors.count("output.weight") == 0;
  config.qkv_bias = file.tensors.count("blk.0.attn_q.bias") != 0;
  PAGED_KV_RETURN_IF_ERROR(ValidateConfig(config));
  PAGED_KV_RETURN_IF_ERROR(RefuseVariants(keys, config));
  return config;
}

}  // namespace paged_kv::llm

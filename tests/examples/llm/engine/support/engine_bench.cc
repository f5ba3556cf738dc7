// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/examples/llm/engine/support/engine_bench.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// [rows, width] out of rows that lie further apart.
std::vector<float> Dense(const attention::KvRows& rows, size_t count,
                         size_t width) {
  std::vector<float> dense(count * width);
  const auto* source = static_cast<const std::byte*>(rows.data);
  for (size_t row = 0; row < count; ++row) {
    std::memcpy(dense.data() + row * width,
                source + row * static_cast<size_t>(rows.token_stride),
                width * sizeof(float));
  }
  return dense;
}

}  // namespace

absl::Status RecordingAttention::BeginStep(const StepBatch& step) {
  layers_.clear();
  rows_ = step.rows();
  return inner_->BeginStep(step);
}

absl::Status RecordingAttention::Attend(uint32_t layer,
                                        absl::Span<const float> q,
                                        const attention::KvRows& k,
                                        const attention::KvRows& v,
                                        absl::Span<float> out) {
  PAGED_KV_RETURN_IF_ERROR(inner_->Attend(layer, q, k, v, out));
  PAGED_KV_CHECK(layers_.size() == layer);
  layers_.push_back({{q.begin(), q.end()},
                     Dense(k, rows_, kv_width_),
                     Dense(v, rows_, kv_width_),
                     {out.begin(), out.end()}});
  return absl::OkStatus();
}

EngineBench::EngineBench(std::unique_ptr<Model> model,
                         const ModelCacheOptions& options, size_t threads,
                         const LinearOptions& linear)
    : threads_(threads) {
  auto transformer = Transformer::Create(std::move(model), linear, &threads_);
  PAGED_KV_CHECK(transformer.ok());
  model_ = *std::move(transformer);
  const ModelConfig& config = model_->config();
  auto cache = MakeModelCache(config, options);
  PAGED_KV_CHECK(cache.ok());
  cache_ = *std::move(cache);
  recording_ = std::make_unique<RecordingAttention>(
      MakeCpuAttention(*PagesOf(*cache_), config.heads, &threads_),
      size_t{config.kv_heads} * config.head_dim);
  runner_ = std::make_unique<StepRunner>(cache_.get(), model_.get(),
                                         recording_.get());
}

std::vector<float> EngineBench::Extend(SequenceId* id,
                                       absl::Span<const TokenId> tokens) {
  const bool admit = id->value() == 0;
  const auto admission =
      admit ? cache_->Allocate(tokens) : cache_->Append(*id, tokens);
  PAGED_KV_CHECK(admission.ok());
  *id = admission->id;
  const uint32_t cached = admission->cached_tokens.value();
  if (admit) tokens.remove_prefix(cached);
  const auto count = static_cast<uint32_t>(tokens.size());
  const auto info = cache_->Describe(*id);
  PAGED_KV_CHECK(info.ok());
  const SequenceRows rows = {tokens, info->tokens.value() - count, count};
  const auto logits = runner_->Run(admission->step, {rows});
  PAGED_KV_CHECK(logits.ok());
  PAGED_KV_CHECK(cache_->Retire(admission->step).ok());
  return {logits->begin(), logits->end()};
}

std::string SharedFile(const std::string& name) {
  const char* folder = std::getenv("PAGED_KV_SHARED_DIR");
  if (folder == nullptr) return "";
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

ModelConfig SmallQwen2() {
  ModelConfig config;
  config.architecture = Architecture::kQwen2;
  config.vocab = 131;
  config.hidden = 56;
  config.intermediate = 72;
  config.layers = 3;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.max_context = 256;
  config.rope_theta = 1e6F;
  config.rope_style = RopeStyle::kHalfSplit;
  config.rms_epsilon = 1e-6F;
  config.tied_embeddings = true;
  config.qkv_bias = true;
  return config;
}

ModelConfig SmallLlama() {
  ModelConfig config = SmallQwen2();
  config.architecture = Architecture::kLlama;
  config.vocab = 200;
  config.hidden = 64;
  config.heads = 4;
  config.kv_heads = 4;
  config.rope_theta = 1e4F;
  config.rope_style = RopeStyle::kInterleaved;
  config.tied_embeddings = false;
  config.qkv_bias = false;
  return config;
}

}  // namespace paged_kv::llm

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/card_attention.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "attention/attention_plan.h"
#include "docs/examples/llm/engine/random_model.h"
#include "docs/examples/llm/engine/serving_engine.h"
#include "docs/examples/llm/model_file/load_model.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/support/model_cache.h"
#include "tests/fpga_dma/transfer_rig.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::tool {
namespace {

std::unique_ptr<fpga_dma::SimulatedDevice> MakeDevice(const char* faults = "",
                                                      uint64_t seed = 1) {
  fpga_dma::SimulatedDeviceOptions options;
  options.board = fpga_dma::RigBoard(/*pool_banks=*/4, /*channels=*/2);
  options.kernels = fpga_dma::Kernels();
  options.detect_misuse = true;
  options.faults = fpga_dma::ParseFaultPlan(faults).value();
  options.faults.seed = seed;
  return fpga_dma::SimulatedDevice::Create(options).value();
}

// Attends on the card and, of the same pages and queries, on the host.
class ComparedAttention final : public llm::AttentionBackend {
 public:
  ComparedAttention(std::unique_ptr<CardAttention> card,
                    const attention::KvPages& pages, uint32_t query_heads,
                    attention::ParallelFor* parallel, double* largest)
      : card_(std::move(card)),
        pages_(pages),
        query_heads_(query_heads),
        parallel_(parallel),
        largest_(largest) {}

  absl::Status BeginStep(const llm::StepBatch& step) override {
    step_ = &step;
    return card_->BeginStep(step);
  }

  absl::Status Attend(uint32_t layer, absl::Span<const float> q,
                      const attention::KvRows& k, const attention::KvRows& v,
                      absl::Span<float> out) override {
    std::fill(out.begin(), out.end(), NAN);
    const absl::Status status = card_->Attend(layer, q, k, v, out);
    if (!status.ok()) return status;
    auto plan = attention::AttentionPlan::ForPrefill(
        pages_, query_heads_, step_->table, step_->qo_indptr, {});
    if (!plan.ok()) return plan.status();
    std::vector<float> expected(out.size());
    const absl::Status ran =
        plan->Run(pages_, layer, q, {absl::MakeSpan(expected), {}}, *parallel_);
    for (size_t i = 0; i < out.size(); ++i) {
      const double error = std::abs(double{out[i]} - double{expected[i]});
      if (!(error <= *largest_)) *largest_ = error;  // a NaN is one, too
    }
    return ran;
  }

  void PageReplaced(uint32_t page) override { card_->PageReplaced(page); }

 private:
  const std::unique_ptr<CardAttention> card_;
  const attention::KvPages pages_;
  const uint32_t query_heads_;
  attention::ParallelFor* const parallel_;
  double* const largest_;
  const llm::StepBatch* step_ = nullptr;
};

llm::ModelConfig SmallConfig() {
  llm::ModelConfig config;
  config.vocab = 97;
  config.hidden = 48;
  config.intermediate = 64;
  config.layers = 3;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.max_context = 256;
  return config;
}

// Serves requests that begin alike, join and leave at any step, fork, and are
// preempted, and returns the largest error of attention.
double ServeOnCard(fpga_dma::Device* device, uint64_t seed, CardUse* use,
                   bool swap = false) {
  attention::ThreadPool threads(2);
  auto model = llm::Transformer::Create(
      llm::MakeRandomModel(SmallConfig(), llm::WeightType::kF32, 5), {},
      &threads);
  EXPECT_TRUE(model.ok()) << model.status();
  double largest = 0;
  llm::EngineOptions options;
  options.cache.dtype = DType::kBF16;
  options.cache.blocks = 26;  // too few for all that run
  options.cache.max_tokens = 192;
  options.scheduler.max_batch_sequences = 8;
  options.scheduler.max_batch_tokens = 40;
  options.scheduler.growth_reserve_tokens = 0;
  if (swap) {
    options.cache.device_pages = options.cache.blocks;
    options.cache.blocks = 120;  // all that runs
    options.scheduler.decode_tier = Tier::kDevice;
    options.scheduler.recompute_token_bytes = 0;  // always swap
  }
  options.attention = [&](const attention::KvPages& pages, uint32_t query_heads)
      -> absl::StatusOr<std::unique_ptr<llm::AttentionBackend>> {
    auto card =
        CardAttention::Create(device, pages, query_heads, &threads, use);
    if (!card.ok()) return card.status();
    return std::make_unique<ComparedAttention>(*std::move(card), pages,
                                               query_heads, &threads, &largest);
  };
  auto engine = llm::ServingEngine::Create(model->get(), options, &threads);
  EXPECT_TRUE(engine.ok()) << engine.status();
  std::mt19937_64 random(seed);
  std::vector<TokenId> common(40);
  for (TokenId& t : common) t = static_cast<TokenId>(random() % 97);
  for (uint64_t i = 0; i < 12; ++i) {
    std::vector<TokenId> prompt(common.begin(), common.begin() + random() % 40);
    for (uint64_t n = 1 + random() % 40; n > 0; --n) {
      prompt.push_back(static_cast<TokenId>(random() % 97));
    }
    llm::EngineRequest request;
    request.id = RequestId(i);
    request.prompt = prompt;
    request.max_output_tokens = static_cast<uint32_t>(40 + random() % 48);
    request.samples = i % 4 == 0 ? 2 : 1;
    request.sampling.temperature = 1;
    EXPECT_TRUE((*engine)->Submit(request).ok());
  }
  while (!(*engine)->Idle()) {
    const auto step = (*engine)->Step();
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) break;
  }
  const BatchSchedulerStats stats = (*engine)->scheduler().Stats();
  EXPECT_GT(stats.preemptions, 0u);
  EXPECT_EQ(stats.swap_outs > 0, swap);
  return largest;
}

// Queries are rounded to bf16 on the card, by 2^-9 of their size at most;
// values are about 1.
constexpr double kLimit = 0.02;

TEST(CardAttentionTest, EqualsTheHostWhateverIsServed) {
  const uint64_t seed = TestSeed(1);
  const auto device = MakeDevice();
  CardUse use;
  EXPECT_LE(ServeOnCard(device.get(), seed, &use), kLimit);
  EXPECT_GT(use.steps, 20u);
  EXPECT_GT(use.pages_uploaded, 10u);
  EXPECT_GT(use.kv_read_by_card, use.bytes_uploaded);
  EXPECT_EQ(use.failures, 0u);
  EXPECT_GT(use.attention, absl::ZeroDuration());
  EXPECT_EQ(device->misuses(), std::vector<std::string>());
}

// What is swapped in lies in pages of which the card may hold what others kept
// there before.
TEST(CardAttentionTest, EqualsTheHostWhereSequencesAreSwapped) {
  const uint64_t seed = TestSeed(3);
  const auto device = MakeDevice();
  CardUse use;
  EXPECT_LE(ServeOnCard(device.get(), seed, &use, true), kLimit);
  EXPECT_GT(use.steps, 20u);
  EXPECT_GT(use.kv_read_by_card, use.bytes_uploaded);
  EXPECT_EQ(use.failures, 0u);
  EXPECT_EQ(device->misuses(), std::vector<std::string>());
}

TEST(CardAttentionTest, TheHostDoesWhatTheCardFailsAt) {
  const uint64_t seed = TestSeed(2);
  const auto device = MakeDevice("upload:fail%0.3 kernel:fail%0.3", seed);
  CardUse use;
  EXPECT_LE(ServeOnCard(device.get(), seed, &use), kLimit);
  EXPECT_GT(use.steps, 20u);
  EXPECT_GT(use.failures, 0u);
}

TEST(CardAttentionTest, GreedyTokensAreTheGoldenOnes) {
  std::ifstream file(llm::SharedFile("golden/greedy_tokens.txt"));
  auto loaded = llm::LoadModel(llm::SharedFile("model/stories260K.bin"));
  if (!file || !loaded.ok()) {
    GTEST_SKIP() << "the shared folder with the model and its golden values is "
                    "not there";
  }
  std::vector<TokenId> golden;
  for (TokenId token; file >> token;) golden.push_back(token);
  ASSERT_EQ(golden.size(), 256u);
  attention::ThreadPool threads(2);
  auto model = llm::Transformer::Create(*std::move(loaded), {}, &threads);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto device = MakeDevice();
  CardUse use;
  llm::EngineOptions options;
  options.cache.dtype = DType::kBF16;
  options.cache.blocks = 40;
  options.attention = [&](const attention::KvPages& pages, uint32_t query_heads)
      -> absl::StatusOr<std::unique_ptr<llm::AttentionBackend>> {
    return CardAttention::Create(device.get(), pages, query_heads, &threads,
                                 &use);
  };
  auto engine = llm::ServingEngine::Create(model->get(), options, &threads);
  ASSERT_TRUE(engine.ok()) << engine.status();
  llm::EngineRequest request;
  request.id = RequestId(1);
  request.prompt = absl::MakeConstSpan(golden).first(1);
  request.max_output_tokens = 255;
  ASSERT_TRUE((*engine)->Submit(request).ok());
  std::vector<TokenId> tokens = {golden[0]};
  while (!(*engine)->Idle()) {
    const auto step = (*engine)->Step();
    ASSERT_TRUE(step.ok()) << step.status();
    for (const llm::EmittedToken& emitted : *step) {
      tokens.push_back(emitted.token);
    }
  }
  EXPECT_EQ(tokens, golden);
  EXPECT_EQ(use.steps, 255u);
  EXPECT_EQ(use.pages_uploaded, 15u);  // all full ones but the last
  EXPECT_EQ(use.failures, 0u);
}

TEST(CardAttentionTest, RefusesWhatTheCardDoesNotTake) {
  attention::SerialFor serial;
  CardUse use;
  const auto device = MakeDevice();
  const auto refusal = [&](llm::ModelConfig config, DType dtype) {
    llm::ModelCacheOptions cache;
    cache.dtype = dtype;
    cache.blocks = 4;
    const auto manager = llm::MakeModelCache(config, cache);
    EXPECT_TRUE(manager.ok()) << manager.status();
    return CardAttention::Create(device.get(), llm::PagesOf(**manager).value(),
                                 config.heads, &serial, &use)
        .status()
        .code();
  };
  EXPECT_EQ(refusal(SmallConfig(), DType::kBF16), absl::StatusCode::kOk);
  EXPECT_EQ(refusal(SmallConfig(), DType::kF32),
            absl::StatusCode::kInvalidArgument);
  llm::ModelConfig odd = SmallConfig();
  odd.head_dim = 24;
  EXPECT_EQ(refusal(odd, DType::kBF16), absl::StatusCode::kInvalidArgument);

  fpga_dma::SimulatedDeviceOptions bare;
  bare.board = fpga_dma::RigBoard(2, 1);
  const auto none = fpga_dma::SimulatedDevice::Create(bare).value();
  llm::ModelCacheOptions cache;
  cache.dtype = DType::kBF16;
  cache.blocks = 4;
  const auto manager = llm::MakeModelCache(SmallConfig(), cache);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CardAttention::Create(none.get(), llm::PagesOf(**manager).value(), 6,
                            &serial, &use)
          .status()));
}

}  // namespace
}  // namespace paged_kv::tool

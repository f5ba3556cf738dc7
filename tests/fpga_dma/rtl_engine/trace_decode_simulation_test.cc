// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decode steps of a replayed trace, with the heads of Qwen2.5-7B (28 query and
// 4 KV heads of 128) and the page tables that the manager exports: paged_decode
// behind the Verilated kv_gather against the model of its arithmetic, bit for
// bit. PAGED_KV_TRACE_STEPS: how many steps, 3 by default.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "fpga_dma/rtl_engine/rtl_kernels.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/benchmarks/shared_traces.h"
#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/decode_model.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kKvHeads = 4, kGroupHeads = 7, kHeadDim = 128;
constexpr uint32_t kBlockTokens = 16, kBlocks = 320;
constexpr uint32_t kSequences = 4;
// Longer prompts are cut, for the time that their simulation takes.
constexpr uint32_t kMostPrompt = 1000;
constexpr GroupId kGroup{0};

struct Request {
  uint32_t prompt = 1;
  uint32_t output = 1;
};

std::vector<Request> ReadRequests(const std::string& path, size_t count) {
  std::vector<Request> requests;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // TIMESTAMP,ContextTokens,GeneratedTokens
  while (requests.size() < count && std::getline(file, line)) {
    unsigned prompt = 0, output = 0;
    if (std::sscanf(line.c_str(), "%*[^,],%u,%u", &prompt, &output) == 2) {
      requests.push_back(
          {std::clamp(prompt, 1u, kMostPrompt), std::clamp(output, 1u, 100u)});
    }
  }
  return requests;
}

uint32_t WantedSteps() {
  const char* text = std::getenv("PAGED_KV_TRACE_STEPS");
  return text != nullptr ? uint32_t(std::strtoul(text, nullptr, 0)) : 3;
}

// The trace's requests, a fixed number of them in flight, on a real cache.
class Replay {
 public:
  explicit Replay(std::vector<Request> requests)
      : requests_(std::move(requests)) {
    KvCacheOptions options;
    LayerGroup group;
    group.shape.layers = 1;
    group.shape.kv_heads = kKvHeads;
    group.shape.head_dim = kHeadDim;
    group.shape.block_tokens = kBlockTokens;
    group.shape.dtype = DType::kBF16;
    options.groups = {group};
    options.host_blocks = BlockCount(kBlocks);
    options.max_sequences = 2 * kSequences;
    options.max_tokens_per_sequence = 2048;
    options.memory = MemoryMode::kMetadataOnly;
    auto cache = KvCacheManager::Create(options);
    EXPECT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  // Ends what is done, admits what fits, and takes a decode step of all; its
  // table is in the arrays below.
  void Step() {
    std::vector<Live> still;
    for (Live& live : live_) {
      if (live.left == 0) {
        ASSERT_TRUE(cache_->Free(live.id).ok());
      } else {
        still.push_back(live);
      }
    }
    live_ = still;
    while (live_.size() < kSequences) {
      ASSERT_NO_FATAL_FAILURE(Admit());
    }
    std::vector<StepRequest> extend(live_.size());
    for (size_t i = 0; i < live_.size(); ++i) {
      extend[i].id = live_[i].id;
      extend[i].new_tokens = TokenCount(1);
      --live_[i].left;
    }
    ASSERT_NO_FATAL_FAILURE(Run(extend, true));
  }

  std::vector<int32_t> indptr, pages, last_page_tokens, first_token;

 private:
  struct Live {
    SequenceId id;
    uint32_t left;
  };

  void Admit() {
    ASSERT_LT(next_, requests_.size());
    const Request& request = requests_[next_++];
    std::vector<TokenId> prompt(request.prompt);
    for (size_t i = 0; i < prompt.size(); ++i) {
      prompt[i] = static_cast<TokenId>(next_ * 100'000 + i);
    }
    StepRequest admit;
    admit.kind = StepRequest::Kind::kAdmit;
    admit.tokens = prompt;
    ASSERT_NO_FATAL_FAILURE(Run({admit}, false));
    live_.push_back({admitted_, request.output});
  }

  void Run(const std::vector<StepRequest>& requests, bool export_table) {
    auto plan = cache_->Plan(requests);
    ASSERT_TRUE(plan.ok()) << plan.status();
    auto step = cache_->Commit(*std::move(plan));
    ASSERT_TRUE(step.ok()) << step.status();
    const auto view = cache_->View(*step);
    ASSERT_TRUE(view.ok()) << view.status();
    admitted_ = view->sequences.back().id;
    if (export_table) {
      const auto size = cache_->TableSize(*step, kGroup);
      ASSERT_TRUE(size.ok()) << size.status();
      indptr.resize(size->sequences + 1);
      pages.resize(size->pages);
      last_page_tokens.resize(size->sequences);
      first_token.resize(size->sequences);
      const auto table = cache_->ExportPageTable(
          *step, kGroup,
          {absl::MakeSpan(indptr), absl::MakeSpan(pages),
           absl::MakeSpan(last_page_tokens), absl::MakeSpan(first_token)});
      ASSERT_TRUE(table.ok()) << table.status();
    }
    ASSERT_TRUE(cache_->Retire(*step).ok());
  }

  const std::vector<Request> requests_;
  size_t next_ = 0;
  std::unique_ptr<KvCacheManager> cache_;
  std::vector<Live> live_;
  SequenceId admitted_;
};

TEST(TraceDecodeSimulationTest, RtlAndHlsEqualTheModelToTheBit) {
  PAGED_KV_NEEDS_TRACE(path, tool::kConversationTrace);
  std::mt19937_64 random(TestSeed(81));
  DecodeShape shape;
  shape.group_heads = kGroupHeads;
  shape.head_dim = kHeadDim;
  shape.block_tokens = kBlockTokens;
  shape.num_pages = shape.table_entries = kBlocks;
  shape.slices = kKvHeads;
  shape.num_items = kSequences * kKvHeads;
  DecodeCase launch(shape);
  launch.Fill(random);
  Replay replay(ReadRequests(path, 400));
  uint64_t tokens = 0, cycles = 0;
  const uint32_t steps = WantedSteps();
  for (uint32_t step = 0; step < steps; ++step) {
    ASSERT_NO_FATAL_FAILURE(replay.Step());
    ASSERT_LE(replay.pages.size(), kBlocks);
    for (size_t i = 0; i < replay.pages.size(); ++i) {
      launch.table.Set(i, static_cast<uint32_t>(replay.pages[i]));
    }
    for (uint32_t i = 0; i < shape.num_items; ++i) {
      const uint32_t sequence = i % kSequences;
      DecodeItem item = launch.NewItem(i);
      const auto begin = static_cast<uint32_t>(replay.indptr[sequence]);
      const auto end = static_cast<uint32_t>(replay.indptr[sequence + 1]);
      item.table_begin = begin;
      item.num_tokens =
          (end - begin - 1) * kBlockTokens +
          static_cast<uint32_t>(replay.last_page_tokens[sequence]);
      item.slice_beat = i / kSequences * shape.slice_beats();
      item.scale = 0.08838834764f;  // 1 / sqrt(128)
      launch.SetItem(i, item);
      tokens += item.num_tokens;
    }
    std::memset(launch.status.data(), 0, launch.status.size());
    std::memset(launch.out.data(), 0xA5, launch.out.size());
    const CardMemory expected = ModelOutputs(launch);
    RtlWork work;
    const absl::Status status =
        RunRtlPagedDecode(launch.Arguments(), PortTiming(), &work);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(launch.Status().code, KernelError::kOk);
    ASSERT_EQ(launch.Status().items_done, shape.num_items);
    ASSERT_TRUE(launch.out == expected) << "step " << step;
    cycles += work.cycles;
  }
  std::printf("%u steps, %llu tokens of a head, %llu cycles of kv_gather\n",
              steps, static_cast<unsigned long long>(tokens),
              static_cast<unsigned long long>(cycles));
  RecordProperty("steps", static_cast<int>(steps));
}

}  // namespace
}  // namespace paged_kv::fpga_dma

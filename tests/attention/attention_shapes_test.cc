// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The shapes of public kernels' test suites against the double-precision
// reference, on every instruction set that the machine runs, with tolerances a
// hundred times tighter than theirs. Batches of equal sequences are shortened;
// head sizes above 256 are refused (attention_plan_test.cc).

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_random.h"
#include "tests/support/sanitized.h"

namespace paged_kv::attention::testing {
namespace {

struct Heads {
  uint32_t query;
  uint32_t kv;
};

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16,
                             DType::kFp8E4M3, DType::kInt8};

ThreadPool& Pool() {
  static ThreadPool& pool = *new ThreadPool(2);
  return pool;
}

AttentionSpec Spec(DType dtype, Heads heads, uint32_t head_dim, uint32_t block,
                   std::vector<SequenceLengths> sequences) {
  AttentionSpec spec;
  spec.shape.dtype = dtype;
  spec.shape.kv_heads = heads.kv;
  spec.shape.head_dim = head_dim;
  spec.shape.block_tokens = block;
  spec.group = heads.query / heads.kv;
  spec.sequences = std::move(sequences);
  spec.seed = head_dim * 31 + block;
  spec.decode = true;
  for (const SequenceLengths& lengths : spec.sequences) {
    spec.decode &= lengths.queries == 1;
  }
  return spec;
}

// Sanitizers look at memory accesses, which small problems show as well.
bool IsLeftOut(const AttentionSpec& spec) {
  constexpr uint64_t kMaxMultiplyAdds =
      kSanitized ? 2'500'000 : std::numeric_limits<uint64_t>::max();
  uint64_t multiply_adds = 0;
  for (const SequenceLengths& lengths : spec.sequences) {
    multiply_adds += uint64_t{lengths.tokens} * lengths.queries * spec.group *
                     spec.shape.kv_heads *
                     (spec.shape.head_dim + spec.shape.VHeadDim());
  }
  return multiply_adds > kMaxMultiplyAdds;
}

void ExpectAgreement(const AttentionSpec& spec) {
  if (IsLeftOut(spec)) return;
  SCOPED_TRACE(ToString(spec));
  const AttentionProblem problem(spec);
  const auto want = RunReference(problem, Pool());
  ASSERT_TRUE(want.ok()) << want.status();
  for (const Isa isa : SupportedIsas()) {
    const auto got = RunKernel(problem, isa, Pool());
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(Compare(*want, *got, ToleranceFor(isa, spec.shape.dtype)), "")
        << IsaName(isa);
  }
}

// Seven decoding sequences of random lengths, the last the longest.
std::vector<SequenceLengths> SevenSequences(uint64_t seed) {
  Random random(seed);
  std::vector<SequenceLengths> sequences;
  for (int i = 0; i < 6; ++i) sequences.push_back({1, random.Between(1, 100)});
  sequences.push_back({1, 200});
  return sequences;
}

TEST(AttentionShapesTest, VllmPagedAttention) {
  const DType dtypes[] = {DType::kF16, DType::kBF16, DType::kF32,
                          DType::kFp8E4M3, DType::kInt8};
  int i = 0;
  for (const Heads heads : {Heads{40, 40}, Heads{64, 8}, Heads{32, 8}}) {
    for (const uint32_t head_dim : {64, 80, 96, 112, 128, 256}) {
      for (const uint32_t block : {16, 32}) {
        ExpectAgreement(Spec(dtypes[i % 5], heads, head_dim, block,
                             SevenSequences(head_dim + block)));
        ++i;
      }
    }
  }
}

TEST(AttentionShapesTest, VllmUnifiedAndFlashAttention) {
  const std::vector<SequenceLengths> mixed = {{1, 1328}, {5, 18}, {129, 463}};
  const std::vector<SequenceLengths> decode = {{1, 523}, {1, 37}, {1, 2011}};
  for (const Heads heads : {Heads{4, 4}, Heads{8, 2}, Heads{5, 1}}) {
    for (const uint32_t head_dim : {40, 72, 80, 128, 256}) {
      for (const auto& sequences : {mixed, decode}) {
        AttentionSpec spec = Spec(DType::kBF16, heads, head_dim, 16, sequences);
        ExpectAgreement(spec);
        spec.options.window = head_dim <= 72 ? 64 : head_dim == 80 ? 128 : 256;
        spec.options.soft_cap = 50.0f;
        spec.release_blocks = true;
        ExpectAgreement(spec);
        spec.shape.dtype = head_dim % 80 == 0 ? DType::kInt8 : DType::kFp8E4M3;
        ExpectAgreement(spec);
      }
    }
  }
}

TEST(AttentionShapesTest, VllmCpuDecode) {
  for (const Heads heads : {Heads{4, 4}, Heads{8, 2}, Heads{9, 3}}) {
    for (const DType dtype : kDTypes) {
      for (const uint32_t head_dim : {96, 128}) {
        AttentionSpec spec =
            Spec(dtype, heads, head_dim, 32,
                 {{1, 213}, {1, 1}, {1, 312}, {1, 7}, {1, 7812}});
        if (head_dim == 96) {
          spec.options.window = 256;
          spec.options.sink_tokens = 4;
        }
        ExpectAgreement(spec);
      }
    }
  }
}

TEST(AttentionShapesTest, VllmCpuPrefill) {
  AttentionSpec spec = Spec(DType::kBF16, {2, 1}, 96, 32,
                            {{2345, 2345}, {5, 5}, {3, 16}, {134, 5131}});
  ExpectAgreement(spec);
  spec.shape.dtype = DType::kF16;
  spec.shape.head_dim = 128;
  spec.options.window = 256;
  spec.options.soft_cap = 50.0f;
  ExpectAgreement(spec);
}

TEST(AttentionShapesTest, VllmCpuMixed) {
  ExpectAgreement(
      Spec(DType::kF32, {3, 1}, 96, 32,
           {{992, 2456}, {1, 1234}, {98, 1145}, {1, 4162}, {2345, 2345}}));
}

TEST(AttentionShapesTest, FlashInferDecode) {
  for (const Heads heads : {Heads{4, 4}, Heads{32, 4}, Heads{8, 2}}) {
    for (const uint32_t page : {1, 8, 16}) {
      for (const uint32_t head_dim : {128, 256}) {
        ExpectAgreement(Spec(DType::kF16, heads, head_dim, page,
                             {{1, 54}, {1, 97}, {1, 512}}));
      }
      ExpectAgreement(
          Spec(DType::kBF16, heads, 128, page, {{1, 2048}, {1, 54}}));
    }
  }
  ExpectAgreement(Spec(DType::kF16, {8, 2}, 128, 16, {{1, 16384}}));
}

TEST(AttentionShapesTest, FlashInferPrefill) {
  // Queries and tokens; equal pairs of the suite where queries fit.
  const std::vector<SequenceLengths> batches[] = {{{37, 54}, {37, 97}},
                                                  {{17, 54}, {17, 512}},
                                                  {{127, 512}, {127, 127}},
                                                  {{577, 2048}}};
  for (const Heads heads : {Heads{4, 4}, Heads{32, 4}}) {
    for (const uint32_t page : {1, 5, 16}) {
      for (const auto& batch : batches) {
        if (batch[0].queries == 577 && (page == 5 || heads.query == 32)) {
          continue;
        }
        AttentionSpec spec = Spec(DType::kF16, heads, 128, page, batch);
        spec.options.causal = page != 5;
        if (page == 16) spec.options.soft_cap = 30.0f;
        ExpectAgreement(spec);
      }
    }
  }
  ExpectAgreement(Spec(DType::kF16, {4, 4}, 256, 16, {{37, 97}, {17, 54}}));
}

TEST(AttentionShapesTest, FlashInferSlidingWindow) {
  int i = 0;
  for (const Heads heads : {Heads{4, 4}, Heads{4, 1}, Heads{8, 4}}) {
    for (const uint32_t window : {3, 13, 23, 33, 37, 43, 111, 233, 533}) {
      for (const uint32_t queries : {1, 37, 47}) {
        const uint32_t head_dim = i % 3 == 0 ? 64 : i % 3 == 1 ? 128 : 256;
        AttentionSpec spec =
            Spec(DType::kF16, heads, head_dim, i % 2 == 0 ? 1 : 16,
                 {{queries, 54}, {queries, 397}, {queries, 1177}});
        spec.options.window = window;
        spec.release_blocks = i % 4 < 2;
        ExpectAgreement(spec);
        ++i;
      }
    }
  }
  // Single sequences shorter and longer than the window.
  for (const uint32_t tokens : {1, 3, 19, 99, 199, 1177, 1999}) {
    AttentionSpec spec = Spec(DType::kF16, {4, 1}, 64, 16, {{1, tokens}});
    spec.options.window = 33;
    ExpectAgreement(spec);
  }
}

TEST(AttentionShapesTest, FlashInferLogitsCap) {
  for (const float cap : {1.0f, 30.0f, 50.0f}) {
    for (const uint32_t tokens : {1, 9, 81, 729}) {
      AttentionSpec spec = Spec(DType::kF16, {8, 4}, 128, 16, {{1, tokens}});
      spec.options.soft_cap = cap;
      ExpectAgreement(spec);
    }
    for (const SequenceLengths lengths :
         {SequenceLengths{1, 1}, {1, 17}, {17, 17}, {17, 81}, {81, 987}}) {
      AttentionSpec spec = Spec(DType::kF16, {8, 4}, 256, 16, {lengths});
      spec.options.soft_cap = cap;
      ExpectAgreement(spec);
    }
  }
  AttentionSpec spec = Spec(DType::kF16, {4, 4}, 128, 16, {{1, 33001}});
  spec.options.soft_cap = 30.0f;
  ExpectAgreement(spec);
  spec = Spec(DType::kF16, {1, 1}, 128, 16, {{17, 31111}});
  spec.options.soft_cap = 50.0f;
  ExpectAgreement(spec);
}

TEST(AttentionShapesTest, OpenVinoHeadSizes) {
  const std::pair<uint32_t, uint32_t> sizes[] = {
      {64, 64}, {64, 32}, {64, 48}, {64, 16},  {96, 128},
      {48, 96}, {48, 64}, {32, 64}, {128, 192}};
  const std::vector<SequenceLengths> batches[] = {
      {{10, 10}},
      {{36, 36}},
      {{1024, 1024}},
      {{10, 10}, {30, 30}},
      {{10, 10}, {81, 81}, {129, 129}},
      {{128, 128}, {256, 256}},
      {{1, 11}},
      {{1, 35}, {1, 516}},
      {{1, 35}, {25, 25}, {10, 44}}};
  for (const auto& [k_size, v_size] : sizes) {
    for (const auto& batch : batches) {
      if (batch[0].tokens == 1024 && k_size != 64) continue;
      AttentionSpec spec = Spec(DType::kF16, {2, 2}, k_size, 16, batch);
      spec.shape.v_head_dim = v_size;
      ExpectAgreement(spec);
    }
  }
}

// Every multiple of 8, for K and for V.
TEST(AttentionShapesTest, EveryHeadDim) {
  for (uint32_t head_dim = 8; head_dim <= 256; head_dim += 8) {
    for (const DType dtype : kDTypes) {
      AttentionSpec spec =
          Spec(dtype, {4, 2}, head_dim, 16, {{1, 33}, {20, 50}});
      spec.shape.v_head_dim = 264 - head_dim;
      ExpectAgreement(spec);
      spec.order = HasScales(dtype) ? PageOrder::kLayersKvPagesHeadsTokens
                                    : PageOrder::kLayersKvPagesTokensHeads;
      ExpectAgreement(spec);
    }
  }
}

// Lengths around tile, block and chunk boundaries, at every block size.
void ExpectLengthsAgree(DType dtype) {
  for (const uint32_t block : {1, 3, 8, 15, 16, 17, 32, 48, 64, 128}) {
    std::vector<SequenceLengths> sequences;
    for (const uint32_t edge : {1u, 16u, 64u, 128u, block, 2 * block}) {
      for (const uint32_t tokens : {edge - 1, edge, edge + 1}) {
        if (tokens != 0) sequences.push_back({1, tokens});
      }
    }
    AttentionSpec spec = Spec(dtype, {7, 1}, 64, block, sequences);
    ExpectAgreement(spec);
    spec.poison = Poison::kInfinity;
    for (SequenceLengths& lengths : spec.sequences) {
      lengths.queries = (lengths.tokens + 1) / 2;
    }
    spec.decode = false;
    ExpectAgreement(spec);
  }
}

TEST(AttentionShapesTest, LengthsAroundBoundaries) {
  ExpectLengthsAgree(DType::kBF16);
}
TEST(AttentionShapesTest, LengthsAroundBoundariesFp8) {
  ExpectLengthsAgree(DType::kFp8E4M3);
}
TEST(AttentionShapesTest, LengthsAroundBoundariesInt8) {
  ExpectLengthsAgree(DType::kInt8);
}

// Rows per KV head below, at and above what registers and items hold.
TEST(AttentionShapesTest, QueryHeadsPerKvHead) {
  for (const uint32_t group :
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 32, 63, 64, 65, 71, 128}) {
    for (const DType dtype : kDTypes) {
      ExpectAgreement(Spec(dtype, {group, 1}, 64, 16, {{1, 70}, {1, 5}}));
      ExpectAgreement(Spec(dtype, {2 * group, 2}, 32, 16, {{9, 70}, {1, 5}}));
    }
  }
}

}  // namespace
}  // namespace paged_kv::attention::testing

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/attention_random_spec.h"

#include <algorithm>
#include <iterator>

#include "tests/support/attention_random.h"

namespace paged_kv::attention::testing {
namespace {

// Bounds that keep a problem to some milliseconds.
constexpr uint64_t kMaxStoredElements = 1'000'000;
constexpr uint64_t kMaxMultiplyAdds = 12'000'000;

uint32_t RandomHeadDim(Random* random) {
  if (random->Chance(50)) return random->Pick<uint32_t>({64, 80, 96, 128});
  return 8 * random->Between(1, 32);
}

BlockShape RandomShape(Random* random) {
  BlockShape shape;
  shape.dtype = random->Pick(
      {DType::kF32, DType::kF16, DType::kBF16, DType::kFp8E4M3, DType::kInt8});
  shape.layers = random->Between(1, 3);
  shape.kv_heads = random->Pick<uint32_t>({1, 1, 2, 3, 4, 8});
  shape.head_dim = RandomHeadDim(random);
  shape.v_head_dim = random->Chance(70) ? 0 : RandomHeadDim(random);
  shape.block_tokens =
      random->Pick<uint32_t>({1, 2, 5, 8, 16, 16, 16, 32, 48, 64, 128});
  return shape;
}

uint32_t RandomTokens(Random* random, uint32_t block) {
  switch (random->Between(0, 5)) {
    case 0:
      return random->Pick<uint32_t>({1, 2, 15, 16, 17, 63, 64, 65, 128, 129});
    case 1:  // around a whole number of blocks
      return std::max<uint32_t>(
          1, random->Between(1, 6) * block + random->Between(0, 2) - 1);
    case 2:
      return random->Between(1, 24);
    case 3:  // long enough to be split
      return random->Chance(20) ? random->Between(600, 2500)
                                : random->Between(1, 600);
    default:
      return random->Between(1, 200);
  }
}

SequenceLengths RandomLengths(Random* random, uint32_t block, bool decode) {
  SequenceLengths lengths;
  lengths.tokens = RandomTokens(random, block);
  if (decode) {
    if (random->Chance(5)) lengths.tokens = 0;
    return lengths;
  }
  switch (random->Between(0, 4)) {
    case 0:
      lengths.queries = lengths.tokens;  // a whole prompt
      break;
    case 1:
      lengths.queries = 1;  // decoding along
      break;
    case 2:
      lengths.queries = random->Chance(20) ? 0 : 1;
      break;
    default:
      lengths.queries = random->Between(1, std::min(lengths.tokens, 90u));
  }
  return lengths;
}

AttentionOptions RandomOptions(Random* random, uint32_t block, bool decode) {
  AttentionOptions options;
  if (random->Chance(30)) options.scale = 0.15f + random->Uniform(0.14f);
  if (random->Chance(40)) {
    options.window = random->Pick<uint32_t>(
        {1, 3, 16, block, random->Between(1, 40), random->Between(1, 300)});
    if (random->Chance(60)) options.sink_tokens = random->Between(1, 2 * block);
  }
  if (random->Chance(25)) {
    options.soft_cap = random->Pick({1.0f, 30.0f, 50.0f});
  }
  options.causal = decode || !random->Chance(15);
  return options;
}

// What the problem costs, in stored elements and in multiply-adds.
bool IsSmall(const AttentionSpec& spec) {
  const uint64_t dims = spec.shape.head_dim + spec.shape.VHeadDim();
  uint64_t stored = 0;
  uint64_t products = 0;
  for (const SequenceLengths& lengths : spec.sequences) {
    stored += uint64_t{lengths.tokens} * spec.shape.kv_heads * dims;
    products += uint64_t{lengths.tokens} * lengths.queries * spec.group *
                spec.shape.kv_heads * dims;
  }
  return stored <= kMaxStoredElements && products <= kMaxMultiplyAdds;
}

}  // namespace

AttentionSpec RandomSpec(uint64_t seed) {
  Random random(seed);
  AttentionSpec spec;
  spec.seed = seed;
  spec.shape = RandomShape(&random);
  spec.layer = random.Between(0, spec.shape.layers - 1);
  spec.group = random.Pick<uint32_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 71});
  do {
    spec.order = *(std::begin(kAllPageOrders) +
                   random.Between(0, std::size(kAllPageOrders) - 1));
  } while (!TakesOrder(spec.shape.dtype, spec.order));
  spec.poison = random.Pick({Poison::kNan, Poison::kInfinity});
  spec.decode = random.Chance(50);
  spec.options = RandomOptions(&random, spec.shape.block_tokens, spec.decode);
  spec.release_blocks = random.Chance(60);
  const uint32_t num_sequences = random.Chance(3) ? 0 : random.Between(1, 7);
  for (uint32_t i = 0; i < num_sequences; ++i) {
    spec.sequences.push_back(
        RandomLengths(&random, spec.shape.block_tokens, spec.decode));
    // Drop what makes it too big; a single sequence loses heads first.
    while (!IsSmall(spec)) {
      if (spec.group > 1) {
        spec.group /= 2;
      } else if (spec.shape.kv_heads > 1) {
        spec.shape.kv_heads /= 2;
      } else {
        spec.sequences.pop_back();
      }
    }
  }
  return spec;
}

}  // namespace paged_kv::attention::testing

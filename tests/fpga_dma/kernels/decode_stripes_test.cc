// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of a sequence, merged by log-sum-exp, equal the whole.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/decode_model.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr double kTolerance = 2e-5;

// The merge of items [0, parts) of a launch, one query row: [head_dim], then
// the log-sum-exp.
std::vector<double> Merge(const DecodeCase& launch, uint32_t parts,
                          uint32_t head) {
  const uint32_t row_floats = OutRowBeats(launch.shape.head_dim) * 16;
  double maximum = -INFINITY;
  std::vector<double> lse;
  for (uint32_t i = 0; i < parts; ++i) {
    lse.push_back(
        launch.out.Get<float>(size_t{launch.Item(i).lse_beat} * 16 + head));
    maximum = std::max(maximum, lse.back());
  }
  double sum = 0;
  std::vector<double> merged(launch.shape.head_dim, 0.0);
  for (uint32_t i = 0; i < parts; ++i) {
    const double weight = std::exp(lse[i] - maximum);
    sum += weight;
    const size_t row = size_t{launch.Item(i).out_beat} * 16 + head * row_floats;
    for (uint32_t d = 0; d < launch.shape.head_dim; ++d) {
      merged[d] += weight * launch.out.Get<float>(row + d);
    }
  }
  for (double& m : merged) m /= sum;
  merged.push_back(maximum + std::log(sum));
  return merged;
}

void ExpectMergeEquals(const DecodeCase& launch, const DecodeItem& whole) {
  const ExactAttention exact = ExactItem(launch, whole);
  for (uint32_t head = 0; head < launch.shape.group_heads; ++head) {
    const std::vector<double> merged =
        Merge(launch, launch.shape.num_items, head);
    for (uint32_t d = 0; d < launch.shape.head_dim; ++d) {
      ASSERT_NEAR(merged[d], exact.out[head * launch.shape.head_dim + d],
                  kTolerance)
          << "head " << head << " dim " << d;
    }
    ASSERT_NEAR(merged[launch.shape.head_dim], exact.lse[head], kTolerance);
  }
}

// All items attend with the first one's queries.
DecodeItem PartItem(const DecodeCase& launch, uint32_t index) {
  DecodeItem item = launch.NewItem(index);
  item.query_beat = 0;
  return item;
}

class DecodeStripesTest : public testing::TestWithParam<KvElement> {};

TEST_P(DecodeStripesTest, EveryNthBlockByOneUnitEach) {
  std::mt19937_64 random(TestSeed(1));
  for (uint32_t stripes = 1; stripes <= 4; ++stripes) {
    for (uint32_t tokens : {101u, 128u, 64u, 203u}) {
      SCOPED_TRACE(testing::Message() << stripes << " stripes, " << tokens);
      DecodeShape shape;
      shape.element = GetParam();
      shape.num_pages = 20;
      shape.table_entries = 13;  // 16 tokens each: up to 208
      shape.num_items = stripes;
      DecodeCase launch(shape);
      launch.Fill(random);
      const uint32_t blocks = (tokens + 15) / 16;
      for (uint32_t stripe = 0; stripe < stripes; ++stripe) {
        DecodeItem item = PartItem(launch, stripe);
        item.table_begin = stripe;
        item.table_step = stripes;
        item.num_tokens = 0;
        for (uint32_t b = stripe; b < blocks; b += stripes) {
          item.num_tokens += std::min(16u, tokens - 16 * b);
        }
        launch.SetItem(stripe, item);
      }
      ASSERT_TRUE(launch.Run(kSequentialKernels).ok());
      ASSERT_EQ(launch.Status().code, KernelError::kOk);
      DecodeItem whole = PartItem(launch, 0);
      whole.num_tokens = tokens;
      ExpectMergeEquals(launch, whole);
    }
  }
}

TEST_P(DecodeStripesTest, RunsOfTokensThatBeginAnywhere) {
  std::mt19937_64 random(TestSeed(2));
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    DecodeShape shape;
    shape.element = GetParam();
    shape.head_dim = round % 2 == 0 ? 64 : 8;
    shape.block_tokens = round % 3 == 0 ? 48 : 16;
    shape.num_pages = 20;
    shape.table_entries = 12;
    shape.num_items = 3;
    DecodeCase launch(shape);
    launch.Fill(random);
    const uint32_t tokens = shape.block_tokens * 12 - 5;
    uint32_t begin = 0;
    for (uint32_t part = 0; part < 3; ++part) {
      const uint32_t left = tokens - begin - (2 - part);
      const uint32_t size =
          part == 2 ? tokens - begin : 1 + uint32_t(random() % left);
      DecodeItem item = PartItem(launch, part);
      item.table_begin = begin / shape.block_tokens;
      item.first_slot = begin % shape.block_tokens;
      item.num_tokens = size;
      launch.SetItem(part, item);
      begin += size;
    }
    ASSERT_TRUE(launch.Run(kSequentialKernels).ok());
    ASSERT_EQ(launch.Status().code, KernelError::kOk);
    DecodeItem whole = PartItem(launch, 0);
    whole.num_tokens = tokens;
    ExpectMergeEquals(launch, whole);
  }
}

// Between slots of the first slice.
void CopySlot(const DecodeCase& from, uint32_t from_page, uint32_t from_slot,
              uint32_t to_page, uint32_t to_slot, DecodeCase* to) {
  const auto copy = [&](size_t from_byte, size_t to_byte, size_t bytes) {
    std::memcpy(to->kv.data() + to_byte, from.kv.data() + from_byte, bytes);
  };
  const uint32_t bytes = KvElementBytes(from.shape.element);
  for (uint32_t d = 0; d < from.shape.head_dim; ++d) {
    copy(from.KeyByte(from_page, 0, from_slot, d),
         to->KeyByte(to_page, 0, to_slot, d), bytes);
    copy(from.ValueByte(from_page, 0, from_slot, d),
         to->ValueByte(to_page, 0, to_slot, d), bytes);
  }
  if (!from.shape.int8()) return;
  copy(from.KeyScaleByte(from_page, 0, from_slot),
       to->KeyScaleByte(to_page, 0, to_slot), sizeof(float));
  copy(from.ValueScaleByte(from_page, 0, from_slot),
       to->ValueScaleByte(to_page, 0, to_slot), sizeof(float));
}

// A window of 40 tokens and 4 sinks, as docs/layouts.md draws it: two items.
TEST_P(DecodeStripesTest, SinksAndAWindow) {
  std::mt19937_64 random(TestSeed(3));
  DecodeShape shape;
  shape.element = GetParam();
  shape.num_items = 2;
  shape.table_entries = 5;  // blocks 0, 3, 4, 5, 6 of 100 tokens
  DecodeCase launch(shape);
  launch.Fill(random);
  for (uint32_t i = 0; i < 5; ++i) launch.table.Set(i, i);
  DecodeItem sinks = PartItem(launch, 0);
  sinks.num_tokens = 4;
  launch.SetItem(0, sinks);
  DecodeItem window = PartItem(launch, 1);
  window.table_begin = 1;
  window.first_slot = 60 - 48;
  window.num_tokens = 40;
  launch.SetItem(1, window);
  ASSERT_TRUE(launch.Run(kSequentialKernels).ok());
  ASSERT_EQ(launch.Status().code, KernelError::kOk);
  EXPECT_TRUE(launch.out == ModelOutputs(launch));

  // The same keys in a row of their own, slot by slot.
  DecodeShape dense = shape;
  dense.num_items = 1;
  DecodeCase copy(dense);
  copy.Fill(random);
  std::memcpy(copy.queries.data(), launch.queries.data(), copy.queries.size());
  for (uint32_t i = 0; i < 5; ++i) copy.table.Set(i, i);
  for (uint32_t token = 0; token < 44; ++token) {
    const DecodeItem& item = token < 4 ? sinks : window;
    uint32_t page, slot;
    launch.Place(item, token < 4 ? token : token - 4, &page, &slot);
    CopySlot(launch, page, slot, token / 16, token % 16, &copy);
  }
  DecodeItem all = PartItem(copy, 0);
  all.num_tokens = 44;
  const ExactAttention exact = ExactItem(copy, all);
  for (uint32_t head = 0; head < shape.group_heads; ++head) {
    const std::vector<double> merged = Merge(launch, 2, head);
    for (uint32_t d = 0; d < 128; ++d) {
      ASSERT_NEAR(merged[d], exact.out[head * 128 + d], kTolerance);
    }
    ASSERT_NEAR(merged[128], exact.lse[head], kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, DecodeStripesTest,
                         testing::Values(KvElement::kBf16, KvElement::kInt8),
                         [](const auto& param) {
                           return param.param == KvElement::kInt8 ? "Int8"
                                                                  : "Bf16";
                         });

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What storing K and V in fewer bits costs: a decode from pages of each dtype
// against double-precision attention to the K and V before rounding. Prints
// the table of docs/benchmarks_attention.md.

#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <vector>

#include "attention/append_kv.h"
#include "attention/paged_decode.h"
#include "attention/reference_attention.h"
#include "gtest/gtest.h"
#include "tests/support/attention_pages.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention::testing {
namespace {

constexpr uint32_t kHeads = 4;
constexpr uint32_t kGroup = 7;
constexpr uint32_t kDim = 128;
constexpr uint32_t kTokens = 1024;

// About a standard normal (Irwin-Hall: the sum of 12 uniform numbers).
float Normal(Random* random) {
  float sum = 0.0f;
  for (int i = 0; i < 12; ++i) sum += random->Uniform(0.5f);
  return sum;
}

// Normal numbers; some channels of K, the same ones in all tokens, may be much
// larger than the others, as they are in many models.
struct Data {
  explicit Data(float outlier) {
    Random random(17);
    for (uint32_t i = 0; i < kTokens * kHeads * kDim; ++i) {
      const bool large = i % kDim == 5 || i % kDim == 77;
      k.push_back(Normal(&random) * (large ? outlier : 1.0f));
      v.push_back(Normal(&random));
    }
    for (uint32_t i = 0; i < kHeads * kGroup * kDim; ++i) {
      const bool large = i % kDim == 5 || i % kDim == 77;
      q.push_back(2 * Normal(&random) / (large ? outlier : 1.0f));
    }
  }

  std::vector<float> k, v, q;
};

// Pages of `dtype` with the data, and the inputs of a decode of all tokens.
class StoredData {
 public:
  StoredData(const Data& data, DType dtype)
      : memory_(Shape(dtype), kTokens / 16, PageOrder::kOwn, Poison::kNan),
        page_ids_(kTokens / 16) {
    std::iota(page_ids_.begin(), page_ids_.end(), 0);
    std::vector<int64_t> slots(kTokens);
    std::iota(slots.begin(), slots.end(), 0);
    KvRows k, v;
    k.data = data.k.data();
    v.data = data.v.data();
    SerialFor serial;
    const absl::Status status =
        AppendKv(memory_.pages(), 0, k, v, slots, serial);
    EXPECT_TRUE(status.ok()) << status;
    inputs_.pages = memory_.pages();
    inputs_.table = {indptr_, page_ids_, last_, first_, 16, 0};
    inputs_.query_heads = kHeads * kGroup;
    inputs_.q = data.q;
  }

  const AttentionInputs& inputs() const { return inputs_; }

 private:
  static BlockShape Shape(DType dtype) {
    BlockShape shape;
    shape.kv_heads = kHeads;
    shape.head_dim = kDim;
    shape.block_tokens = 16;
    shape.dtype = dtype;
    return shape;
  }

  PageMemory memory_;
  std::vector<int32_t> page_ids_;
  const std::vector<int32_t> indptr_ = {0, kTokens / 16}, last_ = {16},
                             first_ = {0};
  AttentionInputs inputs_;
};

// Root mean square of the error over that of the outputs.
double RelativeError(const Data& data, DType dtype) {
  const StoredData exact(data, DType::kF32);
  const StoredData stored(data, dtype);
  std::vector<double> want(data.q.size());
  std::vector<float> got(data.q.size());
  SerialFor serial;
  EXPECT_TRUE(ReferenceAttention(exact.inputs(), std::vector<int32_t>{0, 1}, {},
                                 {absl::MakeSpan(want), {}}, serial)
                  .ok());
  EXPECT_TRUE(
      PagedDecode(stored.inputs(), {}, {absl::MakeSpan(got), {}}, serial).ok());
  double error = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

TEST(QuantizationAccuracyTest, ErrorOfEachDtype) {
  struct Row {
    DType dtype;
    double bound;           // relative error, normal data
    double outliers_bound;  // with channels of K 20 times as large
  };
  for (const Row& row : {Row{DType::kF32, 1e-5, 1e-5},
                         {DType::kF16, 1e-3, 1e-3},
                         {DType::kBF16, 6e-3, 6e-3},
                         {DType::kInt8, 0.025, 0.25},
                         {DType::kFp8E4M3, 0.1, 0.1}}) {
    const double normal = RelativeError(Data(1.0f), row.dtype);
    const double outliers = RelativeError(Data(20.0f), row.dtype);
    std::cout << std::setw(8) << DTypeName(row.dtype) << std::setprecision(2)
              << std::setw(10) << normal << std::setw(10) << outliers
              << std::endl;
    EXPECT_LT(normal, row.bound) << DTypeName(row.dtype);
    EXPECT_LT(outliers, row.outliers_bound) << DTypeName(row.dtype);
    // No dtype is better than its last place allows: the test looks at it.
    if (row.dtype != DType::kF32) {
      EXPECT_GT(normal, row.bound / 30);
    }
  }
}

}  // namespace
}  // namespace paged_kv::attention::testing

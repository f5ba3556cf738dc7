// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention problems for tests: random K/V in permuted pages, everything that
// no query sees poisoned, and the double-precision answer.

#ifndef PAGED_KV_TESTS_SUPPORT_ATTENTION_PROBLEM_H_
#define PAGED_KV_TESTS_SUPPORT_ATTENTION_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/attention_arrays.h"
#include "attention/attention_options.h"
#include "attention/parallel_for.h"
#include "tests/support/attention_pages.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention::testing {

struct SequenceLengths {
  uint32_t queries = 1;
  uint32_t tokens = 1;  // queries included
};

// All that defines a problem; printable.
struct AttentionSpec {
  BlockShape shape;
  uint32_t group = 1;  // query heads per KV head
  PageOrder order = PageOrder::kOwn;
  Poison poison = Poison::kNan;
  uint32_t layer = 0;
  std::vector<SequenceLengths> sequences;
  AttentionOptions options;
  bool decode = false;          // by PagedDecode: queries are all 1
  bool release_blocks = false;  // those wholly outside the window
  uint64_t seed = 1;            // of the data and the page permutation
};

std::string ToString(const AttentionSpec& spec);

class AttentionProblem {
 public:
  explicit AttentionProblem(const AttentionSpec& spec);

  const AttentionSpec& spec() const { return spec_; }
  // Views of arrays of this object.
  AttentionInputs inputs() const;
  const std::vector<int32_t>& qo_indptr() const { return qo_indptr_; }
  size_t num_rows() const;  // total_q * query_heads

  PageMemory& memory() { return memory_; }

  // Makes the first `pages` pages of `sequence` those of `other`. Both have as
  // many full pages, without a window.
  void SharePages(size_t sequence, size_t other, uint32_t pages);

 private:
  void AssignPages();
  void FillSequence(size_t i);
  void FillToken(uint32_t page, uint32_t head, uint32_t token, Random* random);
  bool IsSeen(const SequenceLengths& lengths, int64_t key) const;

  AttentionSpec spec_;
  PageMemory memory_;
  std::vector<int32_t> indptr_, page_indices_, last_page_tokens_, first_token_;
  int32_t sink_pages_ = 0;
  std::vector<int32_t> qo_indptr_;
  std::vector<float> q_;
};

struct AttentionResult {
  std::vector<float> out;  // [rows, v_head_dim]
  std::vector<float> lse;  // [rows]
};
struct ReferenceResult {
  std::vector<double> out;
  std::vector<double> lse;
};

// The problem's call with another ISA.
absl::StatusOr<AttentionResult> RunKernel(const AttentionProblem& problem,
                                          Isa isa, ParallelFor& parallel);
absl::StatusOr<ReferenceResult> RunReference(const AttentionProblem& problem,
                                             ParallelFor& parallel);

struct Tolerance {
  double absolute;
  double relative;
};
// |got - want| <= absolute + relative * |want| for every output; of lse the
// absolute one only. Vector kernels compute in f32, so one tolerance does for
// all dtypes but bytes: it is that of f32 in the public suites, a hundredth of
// theirs for 16 bits. Tiles lose 2^-16 of each query element and weight;
// products of bytes, on tiles or in vectors, 2^-16 of the largest one of a row,
// which is still a hundredth of what the rounding of K and V to int8 costs.
inline constexpr Tolerance kPortableTolerance{1e-5, 1e-5};
inline constexpr Tolerance kTileTolerance{1e-4, 1e-4};
inline constexpr Tolerance kByteTolerance{3e-4, 3e-4};
Tolerance ToleranceFor(Isa isa, DType dtype);

// Empty if everything agrees, else the first disagreement.
std::string Compare(const ReferenceResult& want, const AttentionResult& got,
                    const Tolerance& tolerance);

}  // namespace paged_kv::attention::testing

#endif  // PAGED_KV_TESTS_SUPPORT_ATTENTION_PROBLEM_H_

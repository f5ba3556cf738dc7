// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_CASE_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "attention/isa.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::tool {

// One attention step to measure: the queries of some sequences over pages of
// random K/V, the same in every layer.
struct AttentionCase {
  std::string name;      // for tables and plots, such as "8 x 4,096"
  bool prefill = false;  // else decode: one query per sequence
  BlockShape shape;      // of the pages; layers 0: as many as fill 1 GiB
  KOrder k_order = KOrder::kTiled16;  // where the shape allows it
  uint32_t query_heads = 0;
  // Of each sequence: tokens whose K/V is in the pages, and how many of the
  // last ones have a query.
  std::vector<int64_t> tokens;
  std::vector<int64_t> queries;
  // Tokens at the beginning of every sequence whose pages all of them share,
  // rounded down to whole blocks.
  int64_t shared_prefix = 0;
  std::string trace_sha256;  // of the file that lengths were drawn from

  int64_t TotalQueries() const;
  int64_t MaxTokens() const;
  // Blocks that every sequence begins with.
  int64_t SharedBlocks() const { return shared_prefix / shape.block_tokens; }
  // Pages of the whole batch, shared ones counted once.
  int64_t NumPages() const;

  // Of one layer. K/V that some query sees, read once per KV head; and the
  // part of it that is distinct, shared pages read once.
  double KvBytes() const;
  double DistinctKvBytes() const;
  // 2 * (head_dim + v_head_dim) for each (query head, key) that is not masked.
  double Flops() const;
};

// Sets layers if they are 0. InvalidArgument, with the numbers, for a shape
// that is not valid, a shared prefix longer than a sequence, more than 2^31
// pages, or more memory than there is.
absl::Status CompleteCase(AttentionCase* attention_case);

struct MeasureOptions {
  attention::Isa isa = attention::Isa::kAuto;
  uint32_t threads = 1;
  // Of rounds; twice that if most are disturbed, and at least three rounds.
  double seconds = 4;
  bool share_prefixes = true;  // of AttentionOptions
  bool append = false;         // also time AppendKv of the step's tokens
  uint64_t seed = 1;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_CASE_H_

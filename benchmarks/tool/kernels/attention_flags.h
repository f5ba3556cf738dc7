// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_FLAGS_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/kernels/attention_case.h"

namespace paged_kv::tool {

// Query and KV heads, "28/4".
struct Heads {
  uint32_t query = 28;
  uint32_t kv = 4;
};
// InvalidArgument unless it is Q/KV and the KV heads divide the query heads.
absl::StatusOr<Heads> ParseHeads(absl::string_view text);
// The DType of a name of DTypeName(); InvalidArgument lists them.
absl::StatusOr<DType> ParseDType(absl::string_view name);
// Whole numbers from `min` to `max`, separated by commas.
absl::StatusOr<std::vector<uint32_t>> ParseNumbers(absl::string_view text,
                                                   uint32_t min, uint32_t max);

enum class Lengths { kUniform, kAzure };

// The flags of `decode` and `prefill`, and what both do with them.
class AttentionFlags {
 public:
  explicit AttentionFlags(bool prefill);

  void AddTo(CLI::App& app);
  // Measures all cases and prints them. Exit code 1 if an error was above its
  // limit.
  absl::StatusOr<int> Run(ToolStreams& streams) const;

 private:
  void AddShapeFlags(CLI::App& app);
  void AddMeasureFlags(CLI::App& app);
  absl::StatusOr<std::vector<AttentionCase>> Cases() const;
  AttentionCase BaseCase() const;
  // One row of the lists: `batch` sequences.
  AttentionCase UniformCase(uint32_t batch, uint32_t context,
                            uint32_t new_tokens) const;
  absl::StatusOr<AttentionCase> AzureCase(uint32_t batch,
                                          uint32_t context) const;

  const bool prefill_;
  CommonFlags common_;
  MeasureOptions measure_;
  std::vector<uint32_t> batch_ = {1};
  std::vector<uint32_t> context_ = {4096};
  std::vector<uint32_t> new_tokens_ = {512};
  Heads heads_;
  uint32_t head_dim_ = 128;
  DType dtype_ = DType::kBF16;
  uint32_t block_tokens_ = 16;
  KOrder k_order_ = KOrder::kTiled16;
  uint32_t layers_ = 0;
  uint32_t shared_prefix_ = 0;
  Lengths lengths_ = Lengths::kUniform;
  std::string trace_path_;
  std::string plot_path_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_FLAGS_H_

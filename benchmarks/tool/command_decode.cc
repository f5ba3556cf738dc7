// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>

#include "benchmarks/tool/command.h"
#include "benchmarks/tool/kernels/attention_flags.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Attention of one query per sequence to K/V in pages: random values, at "
    "least 1 GiB, so that every layer is read from memory, and a shuffled page "
    "table. In the same run, by turns and with the same threads, it measures "
    "what bounds that:\n"
    "  stream  reading the same memory in order\n"
    "  gather  reading the same pages in the kernel's order, prefetched\n"
    "  peak    multiply-adds (or bf16 dot products) of the instruction set\n"
    "and compares sampled heads with attention in double precision; an error "
    "above the limit ends in exit code 1.\n"
    "\n"
    "A step is the attention of one layer for the whole batch. Lists give a "
    "row per value.\n"
    "\n"
    "Examples:\n"
    "  pagedkv decode\n"
    "  pagedkv decode --batch=1,8,32 --context=4096,4096,1024 --threads=2 \\\n"
    "      --plot=decode.svg\n"
    "  pagedkv decode --dtype=int8 --block_tokens=128 --append\n"
    "  pagedkv decode --batch=32 --context=4224 --shared_prefix=4096";

class DecodeCommand : public Command {
 public:
  std::string name() const override { return "decode"; }
  std::string summary() const override {
    return "Measure paged decode attention against its bounds";
  }
  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    flags_.AddTo(app);
  }
  absl::StatusOr<int> Run(ToolStreams& streams) override {
    return flags_.Run(streams);
  }

 private:
  AttentionFlags flags_{/*prefill=*/false};
};

}  // namespace

std::unique_ptr<Command> MakeDecodeCommand() {
  return std::make_unique<DecodeCommand>();
}

}  // namespace paged_kv::tool

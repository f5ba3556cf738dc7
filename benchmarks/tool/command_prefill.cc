// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>

#include "benchmarks/tool/command.h"
#include "benchmarks/tool/kernels/attention_flags.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Causal attention of the last tokens of each sequence to K/V in pages, as "
    "in a prompt or a chunk of one over a cached prefix. In the same run, by "
    "turns and with the same threads, it measures what bounds that: the peak "
    "of multiply-adds (or bf16 dot products) of the instruction set, and how "
    "fast the K/V is read in order and page by page. Only products that are "
    "not masked count. Sampled rows and heads are compared with attention in "
    "double precision; an error above the limit ends in exit code 1.\n"
    "\n"
    "A step is the attention of one layer for the whole batch. Lists give a "
    "row per value.\n"
    "\n"
    "Examples:\n"
    "  pagedkv prefill\n"
    "  pagedkv prefill --new_tokens=512,4096 --context=4096,0 --threads=2 \\\n"
    "      --plot=prefill.svg\n"
    "  pagedkv prefill --dtype=f32 --batch=4 --lengths=azure --context=0";

class PrefillCommand : public Command {
 public:
  std::string name() const override { return "prefill"; }
  std::string summary() const override {
    return "Measure paged prefill attention against its bounds";
  }
  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    flags_.AddTo(app);
  }
  absl::StatusOr<int> Run(ToolStreams& streams) override {
    return flags_.Run(streams);
  }

 private:
  AttentionFlags flags_{/*prefill=*/true};
};

}  // namespace

std::unique_ptr<Command> MakePrefillCommand() {
  return std::make_unique<PrefillCommand>();
}

}  // namespace paged_kv::tool

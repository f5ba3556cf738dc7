// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/attention_flags.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "benchmarks/tool/kernels/attention_report.h"
#include "benchmarks/tool/kernels/measure_attention.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/table.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr uint32_t kMaxBatch = 1u << 16;
constexpr uint32_t kMaxContext = 1u << 24;
constexpr uint32_t kMaxNewTokens = 1u << 20;
constexpr uint32_t kMaxHeads = 1u << 12;
// Of the built-in workload, to draw lengths from.
constexpr uint32_t kDrawnRequests = 10'000;

absl::StatusOr<KOrder> ParseKOrder(absl::string_view name) {
  if (name == "tiled") return KOrder::kTiled16;
  if (name == "plain") return KOrder::kTokenDim;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown order of K ", QuoteForError(name), "; use tiled or plain"));
}

absl::StatusOr<bool> ParsePrefixSharing(absl::string_view name) {
  if (name == "auto") return true;
  if (name == "off") return false;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown prefix sharing ", QuoteForError(name), "; use auto or off"));
}

absl::StatusOr<Lengths> ParseLengths(absl::string_view name) {
  if (name == "uniform") return Lengths::kUniform;
  if (name == "azure") return Lengths::kAzure;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown lengths ", QuoteForError(name), "; use uniform or azure"));
}

bool ParseNumber(absl::string_view text, uint32_t min, uint32_t max,
                 uint32_t* value) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit) &&
         absl::SimpleAtoi(text, value) && *value >= min && *value <= max;
}

CLI::Option* AddNumbers(CLI::App& app, const std::string& flag,
                        std::vector<uint32_t>* values, uint32_t min,
                        uint32_t max, const std::string& help) {
  return AddChoice(
      app, flag, values,
      [flag, min,
       max](absl::string_view text) -> absl::StatusOr<std::vector<uint32_t>> {
        absl::StatusOr<std::vector<uint32_t>> numbers =
            ParseNumbers(text, min, max);
        if (numbers.ok()) return numbers;
        return absl::InvalidArgumentError(
            absl::StrCat(flag, "=", numbers.status().message()));
      },
      "N[,N...]", absl::StrJoin(*values, ","), help);
}

// The i-th value of a flag's list; a single one stands for all.
uint32_t At(const std::vector<uint32_t>& values, size_t i) {
  return values.size() == 1 ? values[0] : values[i];
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(absl::string_view text,
                                                   uint32_t min, uint32_t max) {
  std::vector<uint32_t> values;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    uint32_t value = 0;
    if (!ParseNumber(word, min, max, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(QuoteForError(word), " is not a whole number from ", min,
                       " to ", max));
    }
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<Heads> ParseHeads(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  Heads heads;
  if (parts.size() != 2 || !ParseNumber(parts[0], 1, kMaxHeads, &heads.query) ||
      !ParseNumber(parts[1], 1, kMaxHeads, &heads.kv)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--heads=", QuoteForError(text),
        " is not QUERY/KV, two whole numbers from 1 to ", kMaxHeads));
  }
  if (heads.query % heads.kv != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--heads=", text, ": ", heads.kv,
                     " KV heads do not divide ", heads.query, " query heads"));
  }
  return heads;
}

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  constexpr DType kAll[] = {DType::kF32, DType::kF16, DType::kBF16,
                            DType::kFp8E4M3, DType::kInt8};
  for (const DType dtype : kAll) {
    if (name == DTypeName(dtype)) return dtype;
  }
  const auto append_name = [](std::string* out, DType dtype) {
    absl::StrAppend(out, DTypeName(dtype));
  };
  return absl::InvalidArgumentError(
      absl::StrCat("unknown dtype ", QuoteForError(name), "; use one of ",
                   absl::StrJoin(kAll, ", ", append_name)));
}

AttentionFlags::AttentionFlags(bool prefill) : prefill_(prefill) {}

void AttentionFlags::AddTo(CLI::App& app) {
  AddShapeFlags(app);
  AddMeasureFlags(app);
  AddText(app, "--plot", &plot_path_, "FILE.svg|FILE.png",
          "Draw the points under the roofs (needs gnuplot)");
  common_.AddTo(app);
}

void AttentionFlags::AddShapeFlags(CLI::App& app) {
  const std::string group = "Step";
  AddNumbers(app, "--batch", &batch_, 1, kMaxBatch, "Sequences")->group(group);
  if (prefill_) {
    AddNumbers(app, "--new_tokens", &new_tokens_, 1, kMaxNewTokens,
               "Tokens of each sequence that have a query")
        ->group(group);
  }
  AddNumbers(app, "--context", &context_, prefill_ ? 0 : 1, kMaxContext,
             prefill_ ? "Tokens of each sequence cached before them"
                      : "Tokens of each sequence")
      ->group(group);
  AddChoice(app, "--lengths", &lengths_, ParseLengths, "uniform|azure",
            "uniform",
            prefill_ ? "azure: draw new tokens from the prompts of a public "
                       "trace of conversations"
                     : "azure: draw contexts from a public trace of "
                       "conversations")
      ->group(group);
  AddText(app, "--trace", &trace_path_, "FILE",
          "Draw --lengths=azure from this file, not from the trace's quantiles")
      ->group(group);
  if (!prefill_) {
    AddNumber(app, "--shared_prefix", &shared_prefix_, 0, kMaxContext,
              "Tokens that all sequences begin with, in the same pages")
        ->group(group);
    AddChoice(app, "--prefix_sharing", &measure_.share_prefixes,
              ParsePrefixSharing, "auto|off", "auto",
              "off: every sequence reads the pages of a shared prefix itself")
        ->group(group);
  }
  AddChoice(app, "--heads", &heads_, ParseHeads, "QUERY/KV", "28/4",
            "Query heads and KV heads")
      ->group(group);
  AddNumber(app, "--head_dim", &head_dim_, 1, 1024, "Dimensions of a head")
      ->group(group);
  AddChoice(app, "--dtype", &dtype_, ParseDType, "f32|f16|bf16|fp8_e4m3|int8",
            DTypeName(dtype_), "Type of the stored K and V")
      ->group(group);
  AddNumber(app, "--block_tokens", &block_tokens_, 1, kMaxBlockTokens,
            "Tokens per block")
      ->group(group);
  AddChoice(app, "--k_order", &k_order_, ParseKOrder, "tiled|plain", "tiled",
            "Order of K in a block: tiles of 16 tokens where the shape allows "
            "it, or [token][dim] as in other engines")
      ->group(group);
  AddNumber(app, "--layers", &layers_, 0, 1u << 20,
            "Layers, read in turn; 0: as many as hold 1 GiB of K/V")
      ->group(group);
}

void AttentionFlags::AddMeasureFlags(CLI::App& app) {
  const std::string group = "Measurement";
  AddNumber(app, "--threads", &measure_.threads, 1, 1024,
            "Threads of the kernel and of what it is compared with")
      ->group(group);
  const auto append_name = [](std::string* out, attention::Isa isa) {
    absl::StrAppend(out, attention::IsaName(isa));
  };
  AddChoice(
      app, "--isa", &measure_.isa, attention::ParseIsa, "NAME", "auto",
      absl::StrCat("Instruction set; auto: the best one that runs here (",
                   absl::StrJoin(attention::SupportedIsas(), ", ", append_name),
                   ")"))
      ->group(group);
  AddReal(app, "--seconds", &measure_.seconds, 0, 3600,
          "Time of the rounds, twice that if most are disturbed; at least "
          "three are run")
      ->group(group);
  app.add_flag("--append", measure_.append,
               "Also time writing the K and V of the step's own tokens")
      ->group(group);
}

AttentionCase AttentionFlags::BaseCase() const {
  AttentionCase c;
  c.prefill = prefill_;
  c.shape.layers = layers_;
  c.shape.kv_heads = heads_.kv;
  c.shape.head_dim = head_dim_;
  c.shape.block_tokens = block_tokens_;
  c.shape.dtype = dtype_;
  c.k_order = k_order_;
  c.query_heads = heads_.query;
  c.shared_prefix = shared_prefix_;
  return c;
}

AttentionCase AttentionFlags::UniformCase(uint32_t batch, uint32_t context,
                                          uint32_t new_tokens) const {
  AttentionCase c = BaseCase();
  const int64_t queries = prefill_ ? new_tokens : 1;
  const int64_t tokens =
      prefill_ ? int64_t{context} + new_tokens : int64_t{context};
  c.tokens.assign(batch, tokens);
  c.queries.assign(batch, queries);
  c.name = absl::StrCat(batch, " x ", Grouped(prefill_ ? new_tokens : context));
  if (prefill_) absl::StrAppend(&c.name, " over ", Grouped(context));
  if (shared_prefix_ > 0) {
    absl::StrAppend(&c.name, ", ", Grouped(shared_prefix_), " shared");
  }
  return c;
}

absl::StatusOr<AttentionCase> AttentionFlags::AzureCase(
    uint32_t batch, uint32_t context) const {
  Trace trace;
  if (trace_path_.empty()) {
    WorkloadOptions workload;
    workload.profile = WorkloadProfile::kAzureConversation;
    workload.seed = common_.seed;
    workload.requests = kDrawnRequests;
    trace = GenerateWorkload(workload);
  } else {
    PAGED_KV_ASSIGN_OR_RETURN(trace, ReadTrace(trace_path_, {}));
  }
  AttentionCase c = BaseCase();
  c.trace_sha256 = trace.sha256;
  Random random(common_.seed);
  const auto requests = static_cast<uint32_t>(trace.requests.size());
  int64_t all = 0;
  for (uint32_t i = 0; i < batch; ++i) {
    const Request& request = trace.requests[random.Below(requests)];
    int64_t tokens = request.prompt_tokens;
    // A decoding sequence is somewhere in its answer.
    const int64_t queries = prefill_ ? tokens : 1;
    tokens += prefill_ ? context : random.Below(request.output_tokens + 1);
    c.tokens.push_back(tokens);
    c.queries.push_back(queries);
    all += prefill_ ? queries : tokens;
  }
  c.name = absl::StrCat(batch, " x azure, mean ",
                        Grouped(static_cast<uint64_t>(all / batch)));
  if (prefill_) absl::StrAppend(&c.name, " over ", Grouped(context));
  return c;
}

absl::StatusOr<std::vector<AttentionCase>> AttentionFlags::Cases() const {
  if (!trace_path_.empty() && lengths_ != Lengths::kAzure) {
    return absl::InvalidArgumentError("--trace needs --lengths=azure");
  }
  const size_t rows =
      std::max({batch_.size(), context_.size(), new_tokens_.size()});
  for (const std::vector<uint32_t>* list : {&batch_, &context_, &new_tokens_}) {
    if (list->size() != 1 && list->size() != rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "lists of ", rows, " and of ", list->size(),
          " values do not go together; give as many, or one for all rows"));
    }
  }
  std::vector<AttentionCase> cases;
  for (size_t i = 0; i < rows; ++i) {
    if (lengths_ == Lengths::kAzure) {
      PAGED_KV_ASSIGN_OR_RETURN(AttentionCase c,
                                AzureCase(At(batch_, i), At(context_, i)));
      cases.push_back(std::move(c));
    } else {
      cases.push_back(
          UniformCase(At(batch_, i), At(context_, i), At(new_tokens_, i)));
    }
    PAGED_KV_RETURN_IF_ERROR(CompleteCase(&cases.back()));
  }
  return cases;
}

absl::StatusOr<int> AttentionFlags::Run(ToolStreams& streams) const {
  if (!plot_path_.empty()) PAGED_KV_RETURN_IF_ERROR(CheckCanPlot(plot_path_));
  PAGED_KV_ASSIGN_OR_RETURN(const std::vector<AttentionCase> cases, Cases());
  MeasureOptions options = measure_;
  options.seed = common_.seed;
  Progress progress(common_.ProgressStream(streams));
  std::vector<AttentionResult> results;
  bool within_limits = true;
  for (const AttentionCase& c : cases) {
    PAGED_KV_ASSIGN_OR_RETURN(AttentionResult result,
                              MeasureAttention(c, options, progress));
    within_limits = within_limits && result.error.within_limits;
    results.push_back(std::move(result));
  }
  if (common_.json) {
    streams.out << AttentionJson(results, common_.seed).dump(2) << "\n";
  } else {
    streams.out << AttentionText(results);
  }
  if (!plot_path_.empty()) {
    PAGED_KV_RETURN_IF_ERROR(WritePlot(RooflinePlot(results), plot_path_));
  }
  return within_limits ? kExitOk : kExitViolations;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/fault_plan.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "fpga_dma/card_model/random_stream.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr CardOperation kOperations[] = {
    CardOperation::kUpload, CardOperation::kDownload, CardOperation::kCopy,
    CardOperation::kKernel, CardOperation::kAllocate, CardOperation::kReset,
};
constexpr FaultKind kKinds[] = {
    FaultKind::kFail,  FaultKind::kFlipBit,        FaultKind::kHang,
    FaultKind::kDelay, FaultKind::kLoseCompletion, FaultKind::kLoseDevice,
};

absl::Status BadWord(absl::string_view word, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("fault \"", word, "\": ", why,
                   "; expected operation:kind@n or operation:kind%probability,"
                   " as in upload:fail@3"));
}

absl::Status ParseOperation(absl::string_view name, absl::string_view word,
                            FaultRule* rule) {
  for (CardOperation operation : kOperations) {
    if (name == CardOperationName(operation)) {
      rule->operation = operation;
      return absl::OkStatus();
    }
  }
  return BadWord(word, absl::StrCat("no operation \"", name, "\""));
}

absl::Status ParseKind(absl::string_view name, absl::string_view word,
                       FaultRule* rule) {
  absl::string_view delay = name;
  if (absl::ConsumePrefix(&delay, "delay=")) {
    rule->kind = FaultKind::kDelay;
    if (!absl::ParseDuration(delay, &rule->delay) ||
        rule->delay <= absl::ZeroDuration()) {
      return BadWord(word, absl::StrCat("\"", delay, "\" is no duration"));
    }
    return absl::OkStatus();
  }
  for (FaultKind kind : kKinds) {
    if (kind != FaultKind::kDelay && name == FaultKindName(kind)) {
      rule->kind = kind;
      return absl::OkStatus();
    }
  }
  return BadWord(word, absl::StrCat("no kind \"", name, "\""));
}

absl::StatusOr<FaultRule> ParseRule(absl::string_view word) {
  FaultRule rule;
  const size_t colon = word.find(':');
  const size_t when = word.find_first_of("@%");
  if (colon == absl::string_view::npos || when == absl::string_view::npos ||
      when < colon) {
    return BadWord(word, "incomplete");
  }
  PAGED_KV_RETURN_IF_ERROR(ParseOperation(word.substr(0, colon), word, &rule));
  PAGED_KV_RETURN_IF_ERROR(
      ParseKind(word.substr(colon + 1, when - colon - 1), word, &rule));
  const absl::string_view number = word.substr(when + 1);
  const bool read = word[when] == '@'
                        ? absl::SimpleAtoi(number, &rule.nth) && rule.nth > 0
                        : absl::SimpleAtod(number, &rule.probability);
  if (!read) return BadWord(word, absl::StrCat("bad number \"", number, "\""));
  return rule;
}

}  // namespace

void FlipBit(CardOperation operation, const Fault& fault,
             absl::Span<std::byte> bytes) {
  static_assert(static_cast<int>(CardOperation::kKernel) < 4);
  const uint64_t drawn = fault.random % (bytes.size() * 8);
  const uint64_t bit = drawn / 4 * 4 + static_cast<uint64_t>(operation);
  bytes[bit / 8] ^= std::byte{1} << (bit % 8);
}

const char* CardOperationName(CardOperation operation) {
  switch (operation) {
    case CardOperation::kUpload:
      return "upload";
    case CardOperation::kDownload:
      return "download";
    case CardOperation::kCopy:
      return "copy";
    case CardOperation::kKernel:
      return "kernel";
    case CardOperation::kAllocate:
      return "allocate";
    case CardOperation::kReset:
      return "reset";
  }
  return "?";
}

const char* FaultKindName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kFail:
      return "fail";
    case FaultKind::kFlipBit:
      return "flip";
    case FaultKind::kHang:
      return "hang";
    case FaultKind::kDelay:
      return "delay";
    case FaultKind::kLoseCompletion:
      return "silent";
    case FaultKind::kLoseDevice:
      return "lose";
  }
  return "?";
}

absl::StatusOr<FaultPlanOptions> ParseFaultPlan(absl::string_view text) {
  FaultPlanOptions options;
  for (absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" ,\t\n"), absl::SkipEmpty())) {
    absl::string_view seed = word;
    if (absl::ConsumePrefix(&seed, "seed=")) {
      if (!absl::SimpleAtoi(seed, &options.seed)) {
        return BadWord(word, "the seed is no number");
      }
      continue;
    }
    absl::StatusOr<FaultRule> rule = ParseRule(word);
    if (!rule.ok()) return rule.status();
    options.rules.push_back(*rule);
  }
  PAGED_KV_RETURN_IF_ERROR(ValidateFaultPlan(options));
  return options;
}

absl::Status ValidateFaultPlan(const FaultPlanOptions& options) {
  for (const FaultRule& rule : options.rules) {
    const std::string name = absl::StrCat(CardOperationName(rule.operation),
                                          ":", FaultKindName(rule.kind));
    if (!(rule.probability >= 0 && rule.probability <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("fault ", name, ": probability ", rule.probability,
                       " is not in [0, 1]"));
    }
    if ((rule.nth > 0) == (rule.probability > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("fault ", name,
                       ": needs either the n-th operation or a probability,"
                       " not both or neither"));
    }
    const bool only_fails = rule.operation == CardOperation::kAllocate ||
                            rule.operation == CardOperation::kReset;
    if (only_fails && rule.kind != FaultKind::kFail) {
      return absl::InvalidArgumentError(
          absl::StrCat("fault ", name, ": ", CardOperationName(rule.operation),
                       " can only fail"));
    }
    if (rule.kind == FaultKind::kDelay &&
        (rule.delay <= absl::ZeroDuration() ||
         rule.delay == absl::InfiniteDuration())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "fault ", name, ": delay ", absl::FormatDuration(rule.delay)));
    }
  }
  return absl::OkStatus();
}

FaultPlan::FaultPlan(const FaultPlanOptions& options) : options_(options) {
  uint64_t state = options_.seed;
  for (size_t i = 0; i < options_.rules.size(); ++i) {
    streams_.push_back(NextRandom(&state));
  }
}

std::optional<Fault> FaultPlan::Next(CardOperation operation) {
  const uint64_t count = ++counts_[static_cast<size_t>(operation)];
  std::optional<Fault> fault;
  for (size_t i = 0; i < options_.rules.size(); ++i) {
    const FaultRule& rule = options_.rules[i];
    if (rule.operation != operation) continue;
    // Drawn also where an earlier rule has decided: the stream of a rule
    // depends on nothing but the number of operations.
    const bool drawn = NextUniform(&streams_[i]) < rule.probability;
    const uint64_t random = NextRandom(&streams_[i]);
    if (!fault.has_value() && (drawn || rule.nth == count)) {
      fault = Fault{rule.kind, rule.delay, random};
    }
  }
  if (fault.has_value()) ++faults_;
  return fault;
}

uint64_t FaultPlan::operations(CardOperation operation) const {
  return counts_[static_cast<size_t>(operation)];
}

}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the numbers come from:
//   azure_conv, azure_code  AzureLLMInferenceTrace_{conv,code}_2023.csv,
//       19,366 and 8,819 requests of an hour of 2023-11-16 (Patel et al.,
//       "Splitwise", ISCA 2024). Prompts have mean 1154.7 and median 1020
//       (code 2047.8, 1469), outputs 211.1 and 129 (27.9, 13). Their logs are
//       far from normal (templates of fixed length make steps), so the lengths
//       follow the measured quantiles instead of a fitted log-normal.
//       Length of prompt and output are uncorrelated (0.09 and 0.00 in logs).
//       Intervals between arrivals have a coefficient of variation of 1.09
//       for conv, taken as Poisson, and of 13.2 for code: bursts, modelled
//       as a mixture of two exponentials with balanced means.
//   mooncake_conv  mooncake_conversation_trace.jsonl, 12,031 requests of 59
//       minutes (Qin et al., "Mooncake", FAST '25): prompts 12,035.1 and 6,909,
//       outputs 342.6 and 350. All requests share the first 512-token block.
//       38.5 % of them go on with an earlier prompt: they repeat its whole
//       blocks and add new tokens, a while (`kMooncakePause`) after it.
//       The file rounds arrivals to 3 s; the workload uses Poisson arrivals.

#include "benchmarks/tool/workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/trace_line_parser.h"

namespace paged_kv::tool {
namespace {

constexpr std::array<Quantile, 17> Quantiles(
    const std::array<uint32_t, 17>& values) {
  constexpr std::array<uint32_t, 17> kPerMille = {0,   10,  50,  100, 200, 300,
                                                  400, 500, 600, 700, 800, 900,
                                                  950, 980, 990, 999, 1000};
  std::array<Quantile, 17> quantiles{};
  for (size_t i = 0; i < quantiles.size(); ++i) {
    quantiles[i] = {kPerMille[i], values[i]};
  }
  return quantiles;
}

constexpr auto kConvPrompt =
    Quantiles({2, 29, 181, 207, 387, 403, 703, 1020, 1071, 1130, 1315, 2734,
               4083, 4098, 4142, 6212, 14050});
constexpr auto kConvOutput =
    Quantiles({7, 16, 41, 54, 77, 91, 103, 129, 177, 384, 400, 424, 451, 540,
               601, 954, 1000});
constexpr auto kCodePrompt =
    Quantiles({3, 17, 75, 147, 386, 770, 1075, 1469, 1909, 2433, 3192, 5186,
               7302, 7436, 7436, 7437, 7437});
constexpr auto kCodeOutput = Quantiles(
    {6, 6, 6, 7, 8, 9, 11, 13, 16, 20, 29, 55, 90, 172, 252, 824, 1899});
// A prompt that shares no more than the first block.
constexpr auto kMooncakeFresh =
    Quantiles({891, 894, 897, 905, 1083, 1727, 3879, 5226, 7395, 10732, 15840,
               25526, 38459, 67016, 89867, 121471, 126195});
// What a prompt adds behind the whole blocks of the one that it goes on with.
constexpr auto kMooncakeAdded =
    Quantiles({10, 82, 223, 334, 482, 594, 700, 833, 998, 1707, 5068, 9759,
               14770, 20602, 26773, 48383, 94968});
constexpr auto kMooncakeOutput =
    Quantiles({1, 3, 10, 24, 100, 213, 291, 350, 399, 447, 504, 597, 698, 891,
               1120, 2000, 2000});
// Milliseconds from a prompt to the one that goes on with it.
constexpr auto kMooncakePause = Quantiles(
    {3001, 12001, 29999, 42000, 60000, 75000, 96000, 123000, 162000, 222000,
     318000, 482999, 615000, 1032000, 1481999, 2625000, 3030000});

constexpr uint32_t kMooncakeBlock = 512;
constexpr uint32_t kMooncakeMaxPrompt = 126195;
constexpr uint32_t kMooncakeContinuedPerMille = 385;

// Two kinds of intervals, with 2 * share * mean equal for both, have the mean
// and the coefficient of variation c of the whole if the share of short ones
// is (1 + sqrt((c^2 - 1) / (c^2 + 1))) / 2; 997.1 per mille for c = 13.2.
constexpr uint32_t kCodeShortPerMille = 997;

double PublicRate(WorkloadProfile profile) {
  switch (profile) {
    case WorkloadProfile::kAzureConversation:
      return 5.530;
    case WorkloadProfile::kAzureCode:
      return 2.567;
    case WorkloadProfile::kMooncakeConversation:
      return 3.401;
  }
  return 1;
}

// Nanoseconds to the next arrival.
uint64_t Interval(WorkloadProfile profile, uint64_t mean_ns, Random& random) {
  uint64_t mean = mean_ns;
  if (profile == WorkloadProfile::kAzureCode) {
    const uint32_t share = random.Chance(kCodeShortPerMille)
                               ? kCodeShortPerMille
                               : 1000 - kCodeShortPerMille;
    mean = mean_ns * 1000 / (2 * uint64_t{share});
  }
  // Microseconds keep the product of the two within 64 bits.
  return ((random.Exponential() >> 12) * (mean / 1000) >> 20) * 1000;
}

// The last of the earlier requests that arrived at or before `time`.
const Request* RequestBefore(absl::Span<const Request> earlier,
                             absl::Duration time) {
  const auto after = std::upper_bound(
      earlier.begin(), earlier.end(), time,
      [](absl::Duration t, const Request& r) { return t < r.arrival; });
  return after == earlier.begin() ? nullptr : &*(after - 1);
}

void FillMooncake(Random& random, Trace& trace, Request& request) {
  request.output_tokens = random.FromQuantiles(kMooncakeOutput);
  const bool continued = random.Chance(kMooncakeContinuedPerMille);
  const Request* parent =
      continued
          ? RequestBefore(
                trace.requests,
                request.arrival -
                    absl::Milliseconds(random.FromQuantiles(kMooncakePause)))
          : nullptr;
  if (parent != nullptr) {
    const uint32_t whole = parent->prompt_tokens / kMooncakeBlock;
    request.hash_ids.assign(parent->hash_ids.begin(),
                            parent->hash_ids.begin() + whole);
    request.prompt_tokens =
        std::min(kMooncakeMaxPrompt,
                 whole * kMooncakeBlock + random.FromQuantiles(kMooncakeAdded));
  } else {
    request.hash_ids = {0};
    request.prompt_tokens = random.FromQuantiles(kMooncakeFresh);
  }
  trace.distinct_hash_ids = std::max(trace.distinct_hash_ids, 1u);
  const uint32_t ids =
      (request.prompt_tokens + kMooncakeBlock - 1) / kMooncakeBlock;
  request.hash_ids.resize(std::min<size_t>(request.hash_ids.size(), ids));
  while (request.hash_ids.size() < ids) {
    request.hash_ids.push_back(trace.distinct_hash_ids++);
  }
}

void Fill(WorkloadProfile profile, Random& random, Trace& trace,
          Request& request) {
  switch (profile) {
    case WorkloadProfile::kAzureConversation:
      request.prompt_tokens = random.FromQuantiles(kConvPrompt);
      request.output_tokens = random.FromQuantiles(kConvOutput);
      return;
    case WorkloadProfile::kAzureCode:
      request.prompt_tokens = random.FromQuantiles(kCodePrompt);
      request.output_tokens = random.FromQuantiles(kCodeOutput);
      return;
    case WorkloadProfile::kMooncakeConversation:
      FillMooncake(random, trace, request);
      return;
  }
}

}  // namespace

absl::string_view WorkloadName(WorkloadProfile profile) {
  switch (profile) {
    case WorkloadProfile::kAzureConversation:
      return "azure_conv";
    case WorkloadProfile::kAzureCode:
      return "azure_code";
    case WorkloadProfile::kMooncakeConversation:
      return "mooncake_conv";
  }
  return "unknown";
}

absl::StatusOr<WorkloadProfile> ParseWorkload(absl::string_view name) {
  for (const WorkloadProfile profile :
       {WorkloadProfile::kAzureConversation, WorkloadProfile::kAzureCode,
        WorkloadProfile::kMooncakeConversation}) {
    if (name == WorkloadName(profile)) return profile;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown workload ", QuoteForError(name),
                   "; use azure_conv, azure_code or mooncake_conv"));
}

Trace GenerateWorkload(const WorkloadOptions& options) {
  Trace trace;
  trace.name = std::string(WorkloadName(options.profile));
  trace.format = TraceFormat::kGenerated;
  if (options.profile == WorkloadProfile::kMooncakeConversation) {
    trace.hash_block_tokens = kMooncakeBlock;
  }
  const double rate = options.requests_per_second > 0
                          ? options.requests_per_second
                          : PublicRate(options.profile);
  const uint64_t mean_ns = static_cast<uint64_t>(std::llround(1e9 / rate));

  Random random(options.seed);
  absl::Duration now;
  trace.requests.reserve(options.requests);
  for (uint32_t i = 0; i < options.requests; ++i) {
    Request request;
    request.arrival = now;
    Fill(options.profile, random, trace, request);
    trace.requests.push_back(std::move(request));
    now += absl::Nanoseconds(Interval(options.profile, mean_ns, random));
  }
  return trace;
}

}  // namespace paged_kv::tool

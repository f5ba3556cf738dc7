// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/flags.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/trace_line_parser.h"

namespace paged_kv::tool {
namespace {

// Decimal digits only.
bool ParseDigits(const std::string& text, uint64_t* value) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string::npos &&
         absl::SimpleAtoi(text, value);
}

template <typename T>
CLI::Option* AddNumberOf(CLI::App& app, const std::string& flag, T* value,
                         T min, T max, const std::string& help) {
  return app
      .add_option_function<std::string>(
          flag,
          [flag, value, min, max](const std::string& text) {
            uint64_t parsed = 0;
            if (!ParseDigits(text, &parsed) || parsed < min || parsed > max) {
              throw CLI::ValidationError(absl::StrCat(
                  flag, "=", QuoteForError(text),
                  " is not a whole number from ", min, " to ", max));
            }
            *value = static_cast<T>(parsed);
          },
          help)
      ->type_name("N")
      ->default_str(absl::StrCat(*value))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace

CLI::Option* AddNumber(CLI::App& app, const std::string& flag, uint64_t* value,
                       uint64_t min, uint64_t max, const std::string& help) {
  return AddNumberOf(app, flag, value, min, max, help);
}

CLI::Option* AddNumber(CLI::App& app, const std::string& flag, uint32_t* value,
                       uint32_t min, uint32_t max, const std::string& help) {
  return AddNumberOf(app, flag, value, min, max, help);
}

CLI::Option* AddReal(CLI::App& app, const std::string& flag, double* value,
                     double min, double max, const std::string& help) {
  return app
      .add_option_function<std::string>(
          flag,
          [flag, value, min, max](const std::string& text) {
            double parsed = 0;
            const bool number = absl::SimpleAtod(text, &parsed);
            if (!number || !(parsed >= min) || !(parsed <= max)) {
              throw CLI::ValidationError(
                  absl::StrCat(flag, "=", QuoteForError(text),
                               " is not a number from ", min, " to ", max));
            }
            *value = parsed;
          },
          help)
      ->type_name("X")
      ->default_str(absl::StrCat(*value))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* AddText(CLI::App& app, const std::string& flag, std::string* value,
                     const std::string& type, const std::string& help) {
  return app.add_option(flag, *value, help)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void CommonFlags::AddTo(CLI::App& app) {
  AddNumber(app, "--seed", &seed, 0, std::numeric_limits<uint64_t>::max(),
            "Seed of everything that is drawn at random");
  app.add_flag("--json", json, "Print the result as one JSON object");
  app.add_flag("--progress", progress,
               "Show progress on stderr even if that is not a terminal");
}

std::ostream* CommonFlags::ProgressStream(ToolStreams& streams) const {
  return progress || streams.err_is_terminal ? &streams.err : nullptr;
}

void TraceFlags::AddTo(CLI::App& app) {
  const std::string group = "Input";
  AddText(app, "--trace", &path, "FILE",
          "Trace file; without it a built-in workload is generated")
      ->group(group);
  AddChoice(app, "--format", &read.format, ParseTraceFormat,
            "auto|mooncake|bailian|azure|csv", TraceFormatName(read.format),
            "Format of the trace")
      ->group(group);
  app.add_flag("--skip_bad_lines", read.skip_bad_lines,
               "Leave bad lines of the trace out and count them")
      ->group(group);
  AddNumber(app, "--max_requests", &read.max_requests, 0,
            std::numeric_limits<uint64_t>::max(),
            "Use only the first N requests of the trace; 0: all")
      ->group(group);
  AddChoice(app, "--workload", &workload.profile, ParseWorkload,
            "mooncake_conv|azure_conv|azure_code",
            WorkloadName(workload.profile),
            "Built-in workload, fitted to the public trace of that name")
      ->group(group);
  AddNumber(app, "--requests", &workload.requests, 1, 10'000'000,
            "Requests of the built-in workload")
      ->group(group);
  AddReal(app, "--rate", &workload.requests_per_second, 0, 1e6,
          "Its arrivals per second; 0: as in the public trace")
      ->group(group);
}

absl::StatusOr<Trace> TraceFlags::Load(uint64_t seed) const {
  if (!path.empty()) return ReadTrace(path, read);
  WorkloadOptions options = workload;
  options.seed = seed;
  return GenerateWorkload(options);
}

}  // namespace paged_kv::tool

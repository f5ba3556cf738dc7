// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Flags that commands have in common, and strict parsing of their values:
// CLI11 takes "-1" for a large unsigned number and "010" for eight.

#ifndef PAGED_KV_BENCHMARKS_TOOL_FLAGS_H_
#define PAGED_KV_BENCHMARKS_TOOL_FLAGS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/trace.h"
#include "benchmarks/tool/workload.h"

namespace paged_kv::tool {

// Adds `flag` for a number from `min` to `max`; *value holds the default.
CLI::Option* AddNumber(CLI::App& app, const std::string& flag, uint64_t* value,
                       uint64_t min, uint64_t max, const std::string& help);
CLI::Option* AddNumber(CLI::App& app, const std::string& flag, uint32_t* value,
                       uint32_t min, uint32_t max, const std::string& help);
// A fraction or rate from `min` to `max`.
CLI::Option* AddReal(CLI::App& app, const std::string& flag, double* value,
                     double min, double max, const std::string& help);
// Any text, such as the name of a file.
CLI::Option* AddText(CLI::App& app, const std::string& flag, std::string* value,
                     const std::string& type, const std::string& help);

// Adds `flag` for one of a few names. `parse`: absl::StatusOr<T>(string_view),
// `choices`: as the help shows them, `shown`: the default's name.
template <typename T, typename Parse>
CLI::Option* AddChoice(CLI::App& app, const std::string& flag, T* value,
                       Parse parse, const std::string& choices,
                       absl::string_view shown, const std::string& help) {
  return app
      .add_option_function<std::string>(
          flag,
          [value, parse](const std::string& text) {
            absl::StatusOr<T> parsed = parse(text);
            if (!parsed.ok()) {
              throw CLI::ValidationError(
                  std::string(parsed.status().message()));
            }
            *value = *std::move(parsed);
          },
          help)
      ->type_name(choices)
      ->default_str(std::string(shown))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// --seed, --json, --progress.
struct CommonFlags {
  uint64_t seed = 1;
  bool json = false;
  bool progress = false;

  void AddTo(CLI::App& app);
  // Where progress goes: null unless a person watches or asked for it.
  std::ostream* ProgressStream(ToolStreams& streams) const;
};

// --trace, --format, --skip_bad_lines, --max_requests, and the built-in
// workload in place of a trace: --workload, --requests, --rate.
struct TraceFlags {
  std::string path;
  TraceReadOptions read;
  WorkloadOptions workload;

  void AddTo(CLI::App& app);
  // Reads the trace, or generates it from `seed`.
  absl::StatusOr<Trace> Load(uint64_t seed) const;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_FLAGS_H_

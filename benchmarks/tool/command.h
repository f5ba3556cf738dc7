// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a command of the tool is. To add one, write command_<name>.cc with a
// Make<Name>Command() and name it in the list at the top of commands.cc.

#ifndef PAGED_KV_BENCHMARKS_TOOL_COMMAND_H_
#define PAGED_KV_BENCHMARKS_TOOL_COMMAND_H_

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace paged_kv::tool {

// Exit codes of the tool.
inline constexpr int kExitOk = 0;
inline constexpr int kExitViolations = 1;  // what was tested is broken
inline constexpr int kExitBadInput = 2;    // usage, files, values

// Version of every JSON report's layout; goes up when a key changes meaning or
// goes away, not when one is added.
inline constexpr int kJsonSchemaVersion = 1;

struct ToolStreams {
  std::ostream& out;  // results
  std::ostream& err;  // progress and errors
  bool err_is_terminal = false;
};

class Command {
 public:
  virtual ~Command() = default;

  virtual std::string name() const = 0;
  // One line for the list of commands.
  virtual std::string summary() const = 0;
  // Declares the flags. `app` and this command outlive the parsing.
  virtual void AddFlags(CLI::App& app) = 0;
  // An exit code, or an error: Internal and DataLoss mean that what was tested
  // is broken (exit code 1), everything else that the input is (2).
  virtual absl::StatusOr<int> Run(ToolStreams& streams) = 0;
};

// All commands, in the order of the help text.
std::vector<std::unique_ptr<Command>> MakeCommands();

// The whole tool. arguments: those behind the program's name. Returns its exit
// code; errors are one line on streams.err that says what to do.
int RunTool(const std::vector<std::string>& arguments, ToolStreams& streams);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_COMMAND_H_

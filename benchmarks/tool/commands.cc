// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/trace_line_parser.h"

// Those that run a language model, where the example engine was built.
#ifdef PAGED_KV_TOOL_RUNS_MODELS
#define PAGED_KV_TOOL_MODEL_COMMANDS(COMMAND) \
  COMMAND(Generate)                           \
  COMMAND(Serve)                              \
  COMMAND(Lengths)
#else
#define PAGED_KV_TOOL_MODEL_COMMANDS(COMMAND)
#endif

// The commands, in the order of the help text. A new one is one line here.
#define PAGED_KV_TOOL_COMMANDS(COMMAND) \
  COMMAND(Demo)                         \
  PAGED_KV_TOOL_MODEL_COMMANDS(COMMAND) \
  COMMAND(Replay)                       \
  COMMAND(Stress)                       \
  COMMAND(Fragmentation)                \
  COMMAND(Decode)                       \
  COMMAND(Prefill)                      \
  COMMAND(Card)

namespace paged_kv::tool {

#define PAGED_KV_TOOL_DECLARE(name) \
  std::unique_ptr<Command> Make##name##Command();
PAGED_KV_TOOL_COMMANDS(PAGED_KV_TOOL_DECLARE)
#undef PAGED_KV_TOOL_DECLARE

namespace {

constexpr char kAbout[] =
    "Replays LLM serving traces against the paged KV cache and the allocators "
    "that it replaces, and measures the attention kernels that read it.\n"
    "Start with 'pagedkv demo'; every command explains itself with --help.";

constexpr char kFooter[] =
    "Exit codes: 0 fine, 1 what was tested is broken, 2 bad usage or input.";

// One line, whatever the message holds.
std::string OneLine(absl::string_view text) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(text),
                             {{"\r", " "}, {"\n", " "}});
}

int Fail(ToolStreams& streams, const std::string& program,
         absl::string_view message, int code) {
  streams.err << program << ": " << OneLine(message) << std::endl;
  return code;
}

// CLI11 takes the next argument for the value of "--flag=".
std::vector<std::string> SplitEmptyValues(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> split;
  for (const std::string& argument : arguments) {
    if (absl::StartsWith(argument, "--") && argument.size() > 3 &&
        argument.find('=') == argument.size() - 1) {
      split.push_back(argument.substr(0, argument.size() - 1));
      split.emplace_back();
    } else {
      split.push_back(argument);
    }
  }
  return split;
}

int ExitCodeOf(const absl::Status& status) {
  const bool broken = absl::IsInternal(status) || absl::IsDataLoss(status);
  return broken ? kExitViolations : kExitBadInput;
}

}  // namespace

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
#define PAGED_KV_TOOL_MAKE(name) commands.push_back(Make##name##Command());
  PAGED_KV_TOOL_COMMANDS(PAGED_KV_TOOL_MAKE)
#undef PAGED_KV_TOOL_MAKE
  return commands;
}

int RunTool(const std::vector<std::string>& arguments, ToolStreams& streams) {
  CLI::App app(kAbout, "pagedkv");
  app.footer(kFooter);
  app.set_version_flag("--version", "pagedkv " PAGED_KV_VERSION);
  app.get_formatter()->column_width(34);
  app.require_subcommand(1);

  const std::vector<std::unique_ptr<Command>> commands = MakeCommands();
  std::vector<CLI::App*> subcommands;
  for (const std::unique_ptr<Command>& command : commands) {
    CLI::App* sub = app.add_subcommand(command->name(), command->summary());
    command->AddFlags(*sub);
    subcommands.push_back(sub);
  }

  std::string program = "pagedkv";
  const bool starts_with_command =
      !arguments.empty() && !absl::StartsWith(arguments[0], "-");
  if (starts_with_command || arguments.empty()) {
    std::vector<std::string> names;
    for (const auto& command : commands) names.push_back(command->name());
    const bool known =
        starts_with_command &&
        std::find(names.begin(), names.end(), arguments[0]) != names.end();
    if (!known) {
      return Fail(streams, program,
                  absl::StrCat(arguments.empty()
                                   ? "no command"
                                   : absl::StrCat("unknown command ",
                                                  QuoteForError(arguments[0])),
                               "; use ", absl::StrJoin(names, ", "),
                               " or see 'pagedkv --help'"),
                  kExitBadInput);
    }
    absl::StrAppend(&program, " ", arguments[0]);
  }
  std::vector<std::string> reversed = SplitEmptyValues(arguments);
  std::reverse(reversed.begin(), reversed.end());
  // CLI11 reports by throwing; nothing is thrown past this function.
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Success& help) {  // --help, --version
    app.exit(help, streams.out, streams.err);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return Fail(
        streams, program,
        absl::StrCat(OneLine(error.what()), "; see '", program, " --help'"),
        kExitBadInput);
  }

  for (size_t i = 0; i < commands.size(); ++i) {
    if (!subcommands[i]->parsed()) continue;
    try {
      const absl::StatusOr<int> code = commands[i]->Run(streams);
      if (code.ok()) return *code;
      return Fail(streams, program, code.status().message(),
                  ExitCodeOf(code.status()));
    } catch (const std::bad_alloc&) {
      return Fail(streams, program,
                  "out of memory; use a smaller pool or fewer requests",
                  kExitBadInput);
    }
  }
  return kExitBadInput;
}

}  // namespace paged_kv::tool

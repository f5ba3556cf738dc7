// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/plot.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "benchmarks/tool/file_io.h"
#include "paged_kv/status_macros.h"

extern char** environ;

namespace paged_kv::tool {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

constexpr char kHowToInstall[] =
    "plots need gnuplot, which was not found; install it (Debian: apt-get "
    "install gnuplot-nox) or leave the plot out";

std::string Terminal(const Plot& plot, absl::string_view path) {
  // Font sizes are pixels in SVG and points in PNG; these look the same.
  return absl::StrFormat("set terminal %s size %d,%d background '#ffffff'\n",
                         absl::EndsWith(path, ".svg")
                             ? "svg font 'DejaVu Sans,13'"
                             : "pngcairo font 'DejaVu Sans,10'",
                         plot.width, plot.height);
}

// Light grid behind the data, no frame on top and right.
constexpr char kLook[] =
    "set encoding utf8\n"
    "set border 3 lc rgb '#444444'\n"
    "set tics nomirror out scale 0.5\n"
    "set grid ytics lc rgb '#dddddd' lt 1 lw 0.5\n"
    "set key noenhanced\n"
    "set style fill solid 0.9 noborder\n";

void AppendData(const PlotData& data, std::string* script) {
  absl::StrAppend(script, "$", data.name, " << EOD\n");
  for (const PlotData::Row& row : data.rows) {
    if (!row.label.empty()) {
      // Double quotes are how a data block holds a label with spaces.
      absl::StrAppend(script, "\"",
                      absl::StrReplaceAll(row.label, {{"\"", "'"}}), "\" ");
    }
    for (const double value : row.values) {
      absl::StrAppendFormat(script, "%.9g ", value);
    }
    absl::StrAppend(script, "\n");
  }
  absl::StrAppend(script, "EOD\n");
}

absl::StatusOr<std::string> ReadBack(std::FILE* file) {
  std::rewind(file);
  char buffer[400];
  const size_t n = std::fread(buffer, 1, sizeof(buffer), file);
  return std::string(buffer, n);
}

std::string FirstLineOf(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return absl::StrReplaceAll(text.substr(0, 300), {{"\n", " "}});
}

// Runs gnuplot with `script` as its input; temporary files instead of pipes,
// so that neither side can block or be killed by a closed pipe.
absl::Status RunGnuplot(absl::string_view script) {
  const FilePtr input(std::tmpfile());
  const FilePtr errors(std::tmpfile());
  if (input == nullptr || errors == nullptr ||
      std::fwrite(script.data(), 1, script.size(), input.get()) !=
          script.size() ||
      std::fflush(input.get()) != 0) {
    return absl::UnknownError(
        absl::StrCat("no temporary file: ", std::strerror(errno)));
  }
  std::rewind(input.get());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(input.get()), 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(errors.get()), 1);
  posix_spawn_file_actions_adddup2(&actions, fileno(errors.get()), 2);
  char name[] = "gnuplot";
  char* const arguments[] = {name, nullptr};
  pid_t child = 0;
  const int spawned =
      posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return absl::FailedPreconditionError(kHowToInstall);

  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return absl::OkStatus();
  if (WIFEXITED(state) && WEXITSTATUS(state) == 127) {
    return absl::FailedPreconditionError(kHowToInstall);
  }
  PAGED_KV_ASSIGN_OR_RETURN(const std::string words, ReadBack(errors.get()));
  return absl::UnknownError(
      absl::StrCat("gnuplot failed: ", FirstLineOf(words)));
}

}  // namespace

std::string PlotQuote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}}), "'");
}

absl::Status CheckCanPlot(absl::string_view path) {
  if (!absl::EndsWith(path, ".svg") && !absl::EndsWith(path, ".png")) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot tell the kind of plot from '", path,
                     "'; end it in .svg or .png"));
  }
  const auto folder = std::filesystem::path(std::string(path)).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no folder '", folder.string(), "' for the plot '", path, "'"));
  }
  return RunGnuplot("");
}

absl::Status WritePlot(const Plot& plot, const std::string& path) {
  PAGED_KV_RETURN_IF_ERROR(CheckCanPlot(path));
  // gnuplot would complain about the path in its own way, and only on screen.
  PAGED_KV_RETURN_IF_ERROR(WriteFile(path, ""));
  std::string script = Terminal(plot, path);
  absl::StrAppend(&script, "set output ", PlotQuote(path), "\n", kLook);
  for (const PlotData& data : plot.data) AppendData(data, &script);
  absl::StrAppend(&script, plot.script, "\nset output\n");
  const absl::Status status = RunGnuplot(script);
  if (!status.ok()) std::remove(path.c_str());
  return status;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/machine.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace paged_kv::tool {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

// What follows "key:" on the first line that begins so; empty if there is none.
std::string FindValue(const char* path, absl::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    return std::string(
        absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
  }
  return "";
}

// The number that a file holds, kUnknown if it holds none ("max").
uint64_t ReadNumber(const char* path) {
  std::ifstream file(path);
  std::string text;
  uint64_t value = 0;
  std::getline(file, text);
  return absl::SimpleAtoi(text, &value) ? value : kUnknown;
}

uint64_t GroupLeaves() {
  const uint64_t limit = ReadNumber("/sys/fs/cgroup/memory.max");
  const uint64_t used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return limit - std::min(limit, used);
}

uint64_t SystemLeaves() {
  const std::string text = FindValue("/proc/meminfo", "MemAvailable");
  uint64_t kib = 0;
  if (!absl::SimpleAtoi(absl::StripSuffix(text, " kB"), &kib)) return kUnknown;
  return kib * 1024;
}

}  // namespace

uint64_t AvailableMemoryBytes() {
  return std::min(SystemLeaves(), GroupLeaves());
}

std::string ProcessorName() {
  const std::string name = FindValue("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

}  // namespace paged_kv::tool

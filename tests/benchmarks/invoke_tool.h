// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_BENCHMARKS_INVOKE_TOOL_H_
#define PAGED_KV_TESTS_BENCHMARKS_INVOKE_TOOL_H_

#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/tool/command.h"

namespace paged_kv::tool {

// What a run of the tool gives its user.
struct Invocation {
  int code = 0;
  std::string out, err;
};

// Runs the tool with the arguments behind its name.
inline Invocation Invoke(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  ToolStreams streams{out, err};
  const int code = RunTool(arguments, streams);
  return {code, out.str(), err.str()};
}

}  // namespace paged_kv::tool

#endif  // PAGED_KV_TESTS_BENCHMARKS_INVOKE_TOOL_H_

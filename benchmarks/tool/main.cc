// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "benchmarks/tool/command.h"

int main(int argc, char** argv) {
  paged_kv::tool::ToolStreams streams{std::cout, std::cerr,
                                      isatty(STDERR_FILENO) == 1};
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const int code = paged_kv::tool::RunTool(arguments, streams);
  if (std::cout.flush()) return code;
  std::cerr << "pagedkv: standard output could not be written\n";
  return paged_kv::tool::kExitBadInput;
}

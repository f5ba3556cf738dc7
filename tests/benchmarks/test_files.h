// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_BENCHMARKS_TEST_FILES_H_
#define PAGED_KV_TESTS_BENCHMARKS_TEST_FILES_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace paged_kv::tool {

// A path of the running test's own, in TEST_TMPDIR or the working folder.
inline std::string TestFile(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const testing::TestInfo* test =
      testing::UnitTest::GetInstance()->current_test_info();
  std::string own = test->name();
  for (char& c : own) c = c == '/' ? '_' : c;
  const std::filesystem::path path =
      std::filesystem::path(folder != nullptr ? folder : ".") /
      (own + "_" + name);
  std::filesystem::remove_all(path);
  return path.string();
}

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void WriteAll(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

}  // namespace paged_kv::tool

#endif  // PAGED_KV_TESTS_BENCHMARKS_TEST_FILES_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The registry, the kernels' sources and the connectivity files say the same.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "fpga_dma/kernels/kernel_registry.h"

namespace paged_kv::fpga_dma {
namespace {

std::string ReadSource(const std::string& path) {
  const char* root = std::getenv("PAGED_KV_SOURCE_DIR");
  std::ifstream file((root != nullptr ? std::string(root) : ".") +
                     "/fpga_dma/kernels/" + path);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Matches(const std::string& text,
                                 const std::string& regex) {
  const std::regex compiled(regex);
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), compiled), end;
       i != end; ++i) {
    found.push_back((*i)[1].str());
  }
  return found;
}

TEST(KernelSourcesTest, ArgumentsAreThoseOfTheRegistryInOrder) {
  for (const KernelSpec& kernel : Kernels()) {
    const std::string name(kernel.name);
    SCOPED_TRACE(name);
    const std::string source = ReadSource(name + ".cpp");
    const size_t begin = source.find("extern \"C\" void " + name + "(");
    ASSERT_NE(begin, std::string::npos);
    const std::string signature =
        source.substr(begin, source.find('{', begin) - begin);
    const std::vector<std::string> names =
        Matches(signature, "([a-z_]+)(?:,|\\)\\s*$)");
    const std::vector<std::string> pointers =
        Matches(signature, "\\*\\s*([a-z_]+)");
    const std::vector<std::string> ports =
        Matches(source, "m_axi port = ([a-z_]+) bundle");
    std::vector<std::string> expected_names, expected_pointers;
    for (const KernelArgumentSpec& argument : kernel.arguments) {
      expected_names.emplace_back(argument.name);
      if (argument.is_address) expected_pointers.emplace_back(argument.name);
    }
    EXPECT_EQ(names, expected_names);
    EXPECT_EQ(pointers, expected_pointers);
    EXPECT_EQ(ports, expected_pointers);
  }
}

// Every address of every unit is connected to one memory, and no other.
TEST(KernelSourcesTest, BoardsConnectEveryPortOfEveryUnit) {
  for (const std::string board : {"u250", "u280", "u55c"}) {
    SCOPED_TRACE(board);
    const std::string text = ReadSource("cfg/" + board + ".cfg");
    std::multiset<std::string> connected;
    for (const std::string& port :
         Matches(text, "\\nsp=([a-z_0-9]+\\.[a-z_]+):(?:DDR|HBM)\\[\\d+\\]")) {
      connected.insert(port);
    }
    const std::vector<std::string> placed =
        Matches(text, "\\nslr=([a-z_0-9]+):SLR\\d");
    std::multiset<std::string> expected;
    std::set<std::string> units;
    for (const KernelSpec& kernel : Kernels()) {
      const std::string name(kernel.name);
      const std::vector<std::string> counts =
          Matches(text, "\\nnk=" + name + ":(\\d+):");
      ASSERT_EQ(counts.size(), 1u) << name;
      for (int unit = 1; unit <= std::stoi(counts[0]); ++unit) {
        const std::string instance = name + "_" + std::to_string(unit);
        EXPECT_NE(text.find(instance), std::string::npos);
        units.insert(instance);
        for (const KernelArgumentSpec& argument : kernel.arguments) {
          if (!argument.is_address) continue;
          expected.insert(instance + "." + std::string(argument.name));
        }
      }
    }
    EXPECT_EQ(connected, expected);
    EXPECT_EQ(std::set<std::string>(placed.begin(), placed.end()), units);
    EXPECT_EQ(placed.size(), units.size());
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma

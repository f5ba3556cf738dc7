// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/table.h"

#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

TEST(TableTest, AlignsForPeople) {
  Table table({"name", "n"});
  table.Add({"a", "1,000"});
  table.Add({"longer", "2"});
  EXPECT_EQ(table.Text(),
            "name        n\n"
            "-------------\n"
            "a       1,000\n"
            "longer      2\n");
}

TEST(TableTest, QuotesForPrograms) {
  Table table({"name", "n"});
  table.Add({"a,b", "1"});
  table.Add({"say \"x\"", "line\nbreak"});
  EXPECT_EQ(table.Csv(),
            "name,n\n\"a,b\",1\n\"say \"\"x\"\"\",\"line\nbreak\"\n");
}

TEST(TableTest, Numbers) {
  EXPECT_EQ(Percent(0.12345), "12.35 %");
  EXPECT_EQ(Percent(1, 0), "100 %");
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(12345678), "12,345,678");
}

}  // namespace
}  // namespace paged_kv::tool

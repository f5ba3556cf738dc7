// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_TABLE_H_
#define PAGED_KV_BENCHMARKS_TOOL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace paged_kv::tool {

// Rows of text under headings, for people (aligned columns) and for other
// programs (CSV).
class Table {
 public:
  explicit Table(std::vector<std::string> headings);

  // REQUIRES: as many cells as there are headings.
  void Add(std::vector<std::string> row);

  // Columns as wide as their widest cell; the first one left-aligned, the
  // others right-aligned, as numbers are read.
  std::string Text() const;
  // RFC 4180.
  std::string Csv() const;

  size_t rows() const { return rows_.size(); }

 private:
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
};

// "12.3 %" of a share of 1.
std::string Percent(double share, int digits = 2);
// "1,234,567".
std::string Grouped(uint64_t n);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_TABLE_H_

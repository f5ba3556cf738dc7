// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/table.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

std::string CsvField(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

void AppendCsvRow(const std::vector<std::string>& row, std::string* out) {
  for (size_t i = 0; i < row.size(); ++i) {
    absl::StrAppend(out, i == 0 ? "" : ",", CsvField(row[i]));
  }
  out->push_back('\n');
}

}  // namespace

Table::Table(std::vector<std::string> headings)
    : headings_(std::move(headings)) {}

void Table::Add(std::vector<std::string> row) {
  PAGED_KV_CHECK(row.size() == headings_.size());
  rows_.push_back(std::move(row));
}

std::string Table::Text() const {
  std::vector<size_t> widths;
  for (const std::string& heading : headings_) {
    widths.push_back(heading.size());
  }
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      if (i == 0) {
        absl::StrAppend(&text, row[i], row.size() > 1 ? pad : "");
      } else {
        absl::StrAppend(&text, "  ", pad, row[i]);
      }
    }
    text.push_back('\n');
  };
  append(headings_);
  size_t line = widths.size() * 2 - 2;
  for (const size_t width : widths) line += width;
  absl::StrAppend(&text, std::string(line, '-'), "\n");
  for (const std::vector<std::string>& row : rows_) append(row);
  return text;
}

std::string Table::Csv() const {
  std::string csv;
  AppendCsvRow(headings_, &csv);
  for (const std::vector<std::string>& row : rows_) AppendCsvRow(row, &csv);
  return csv;
}

std::string Percent(double share, int digits) {
  return absl::StrFormat("%.*f %%", digits, 100 * share);
}

std::string Grouped(uint64_t n) {
  std::string digits = absl::StrCat(n);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_PROGRESS_H_
#define PAGED_KV_BENCHMARKS_TOOL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace paged_kv::tool {

// One line that counts up while long work runs, and is wiped when it ends.
//
// Thread safety: none.
class Progress {
 public:
  // `out` is borrowed; null shows nothing.
  explicit Progress(std::ostream* out) : out_(out) {}
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Names the work that the next updates belong to.
  void Start(absl::string_view work);
  // Shows done / total, a few times a second at most. Cheap to call often.
  void Update(uint64_t done, uint64_t total);
  void Clear();

 private:
  std::ostream* out_;
  std::string work_;
  size_t shown_ = 0;  // characters on the line
  uint32_t calls_ = 0;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_PROGRESS_H_

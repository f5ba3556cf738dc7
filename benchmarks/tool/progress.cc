// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/progress.h"

#include "absl/strings/str_format.h"

namespace paged_kv::tool {

void Progress::Start(absl::string_view work) {
  Clear();
  work_ = std::string(work);
  next_ = {};
  calls_ = 0;
}

void Progress::Update(uint64_t done, uint64_t total) {
  if (out_ == nullptr || calls_++ % 16 != 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  const double percent = total == 0 ? 0
                                    : 100.0 * static_cast<double>(done) /
                                          static_cast<double>(total);
  std::string line = absl::StrFormat("%s: %.0f %%", work_, percent);
  const size_t length = line.size();
  if (length < shown_) line.append(shown_ - length, ' ');
  shown_ = length;
  *out_ << '\r' << line << std::flush;
}

void Progress::Clear() {
  if (out_ == nullptr || shown_ == 0) return;
  *out_ << '\r' << std::string(shown_, ' ') << '\r' << std::flush;
  shown_ = 0;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/file_io.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

namespace paged_kv::tool {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

std::string Reason() { return std::strerror(errno); }

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     uint64_t max_bytes) {
  FilePtr file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("cannot open '", path, "': ", Reason()));
  }
  std::string contents;
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    const size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get());
    contents.append(buffer.data(), n);
    if (contents.size() > max_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "' is longer than the limit of ", max_bytes, " bytes"));
    }
    if (n < buffer.size()) break;
  }
  if (std::ferror(file.get()) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read '", path, "': ", Reason()));
  }
  return contents;
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  FilePtr file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write '", path, "': ", Reason()));
  }
  const bool written = std::fwrite(contents.data(), 1, contents.size(),
                                   file.get()) == contents.size();
  // Closing flushes; a full disk may only show itself there.
  if (std::fclose(file.release()) != 0 || !written) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write '", path, "': ", Reason()));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_FILE_IO_H_
#define PAGED_KV_BENCHMARKS_TOOL_FILE_IO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace paged_kv::tool {

// Reads a whole file. NotFound if it cannot be opened, InvalidArgument if it
// is a directory or longer than `max_bytes` (a device that never ends must
// not fill the memory).
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     uint64_t max_bytes = uint64_t{4} << 30);

// Writes a whole file, replacing what was there. InvalidArgument with the
// system's reason if that is not possible.
absl::Status WriteFile(const std::string& path, absl::string_view contents);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_FILE_IO_H_

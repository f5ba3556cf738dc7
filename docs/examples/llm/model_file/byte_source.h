// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_BYTE_SOURCE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_BYTE_SOURCE_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {

// Bytes that can be read at any place: a file, or memory.
//
// Thread safety: thread-compatible; reads may run at the same time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  uint64_t size() const { return size_; }

  // Fills `out` with the bytes from `offset` on. OutOfRange: they are not all
  // there; else the system's error.
  absl::Status Read(uint64_t offset, absl::Span<char> out) const;

 protected:
  explicit ByteSource(uint64_t size) : size_(size) {}

 private:
  // REQUIRES: the bytes lie within size().
  virtual absl::Status ReadInside(uint64_t offset,
                                  absl::Span<char> out) const = 0;

  uint64_t size_;
};

// A regular file. It is read, not mapped: a file that shrinks meanwhile is an
// error then, not a signal.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path);

// Memory, which must outlive the source.
std::unique_ptr<ByteSource> OpenMemory(absl::string_view bytes);

// Reads a source from front to back through a buffer. Numbers are
// little-endian.
class ByteCursor {
 public:
  // `source` must outlive this.
  explicit ByteCursor(const ByteSource* source, uint64_t offset = 0);

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return source_->size() - offset_; }

  absl::Status ReadBytes(absl::Span<char> out);

  template <typename T>
  absl::StatusOr<T> Read() {
    T value;
    PAGED_KV_RETURN_IF_ERROR(
        ReadBytes({reinterpret_cast<char*>(&value), sizeof(T)}));
    return value;
  }

  // OutOfRange, before any memory is taken, if fewer bytes remain.
  absl::StatusOr<std::string> ReadString(uint64_t length);

 private:
  const ByteSource* source_;
  uint64_t offset_;
  std::vector<char> buffer_;
  uint64_t buffer_offset_ = 0;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_BYTE_SOURCE_H_

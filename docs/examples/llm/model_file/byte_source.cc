// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace paged_kv::llm {
namespace {

static_assert(std::endian::native == std::endian::little,
              "model files are read as they lie");

constexpr uint64_t kBufferBytes = 64 << 10;

class FileSource : public ByteSource {
 public:
  FileSource(int descriptor, uint64_t size)
      : ByteSource(size), descriptor_(descriptor) {}
  ~FileSource() override { close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

 private:
  absl::Status ReadInside(uint64_t offset,
                          absl::Span<char> out) const override {
    while (!out.empty()) {
      const ssize_t got = pread(descriptor_, out.data(), out.size(),
                                static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return absl::ErrnoToStatus(errno,
                                   absl::StrCat("reading at byte ", offset));
      }
      if (got == 0) {
        return absl::OutOfRangeError(
            absl::StrCat("the file shrank to less than ", offset, " bytes"));
      }
      out.remove_prefix(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }

  int descriptor_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(absl::string_view bytes)
      : ByteSource(bytes.size()), bytes_(bytes) {}

 private:
  absl::Status ReadInside(uint64_t offset,
                          absl::Span<char> out) const override {
    std::copy_n(bytes_.data() + offset, out.size(), out.data());
    return absl::OkStatus();
  }

  absl::string_view bytes_;
};

}  // namespace

absl::Status ByteSource::Read(uint64_t offset, absl::Span<char> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return absl::OutOfRangeError(absl::StrCat("need ", out.size(),
                                              " bytes at byte ", offset,
                                              ", the file has ", size_));
  }
  return ReadInside(offset, out);
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, path);
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    const int error = errno;
    close(descriptor);
    return absl::ErrnoToStatus(error, path);
  }
  if (!S_ISREG(status.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat(path, " is no file"));
  }
  return std::make_unique<FileSource>(descriptor,
                                      static_cast<uint64_t>(status.st_size));
}

std::unique_ptr<ByteSource> OpenMemory(absl::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

ByteCursor::ByteCursor(const ByteSource* source, uint64_t offset)
    : source_(source), offset_(std::min(offset, source->size())) {}

absl::Status ByteCursor::ReadBytes(absl::Span<char> out) {
  if (out.size() > remaining()) {
    return absl::OutOfRangeError(
        absl::StrCat("the file ends after ", remaining(), " of ", out.size(),
                     " bytes needed at byte ", offset_));
  }
  if (out.size() > kBufferBytes) {
    PAGED_KV_RETURN_IF_ERROR(source_->Read(offset_, out));
    offset_ += out.size();
    return absl::OkStatus();
  }
  if (offset_ < buffer_offset_ ||
      offset_ + out.size() > buffer_offset_ + buffer_.size()) {
    buffer_.resize(std::min(kBufferBytes, remaining()));
    buffer_offset_ = offset_;
    PAGED_KV_RETURN_IF_ERROR(source_->Read(offset_, absl::MakeSpan(buffer_)));
  }
  std::copy_n(buffer_.data() + (offset_ - buffer_offset_), out.size(),
              out.data());
  offset_ += out.size();
  return absl::OkStatus();
}

absl::StatusOr<std::string> ByteCursor::ReadString(uint64_t length) {
  if (length > remaining()) {
    return absl::OutOfRangeError(
        absl::StrCat("a string of ", length, " bytes at byte ", offset_,
                     ", where ", remaining(), " remain"));
  }
  std::string text(length, '\0');
  PAGED_KV_RETURN_IF_ERROR(ReadBytes(absl::MakeSpan(text)));
  return text;
}

}  // namespace paged_kv::llm

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed look-up in a GGUF file's metadata. InvalidArgument everywhere: the
// value has another type, or does not fit; the message names the key.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_METADATA_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_METADATA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "docs/examples/llm/model_file/gguf_file.h"

namespace paged_kv::llm {

absl::StatusOr<absl::optional<uint32_t>> FindUint32(const GgufFile& file,
                                                    absl::string_view key);
absl::StatusOr<absl::optional<float>> FindFloat(const GgufFile& file,
                                                absl::string_view key);
absl::StatusOr<absl::optional<bool>> FindBool(const GgufFile& file,
                                              absl::string_view key);

// Also InvalidArgument: there is no such key.
absl::StatusOr<uint32_t> GetUint32(const GgufFile& file, absl::string_view key);

// Null where there is no such key. The value lives in `file`.
template <typename T>
absl::StatusOr<const T*> FindValue(const GgufFile& file, absl::string_view key);
extern template absl::StatusOr<const std::string*> FindValue(
    const GgufFile& file, absl::string_view key);
extern template absl::StatusOr<const std::vector<std::string>*> FindValue(
    const GgufFile& file, absl::string_view key);
extern template absl::StatusOr<const std::vector<int64_t>*> FindValue(
    const GgufFile& file, absl::string_view key);
extern template absl::StatusOr<const std::vector<double>*> FindValue(
    const GgufFile& file, absl::string_view key);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_METADATA_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/gguf_metadata.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

absl::Status WrongType(absl::string_view key) {
  return absl::InvalidArgumentError(
      absl::StrCat("GGUF: the value of ", key, " has an unexpected type"));
}

}  // namespace

template <typename T>
absl::StatusOr<const T*> FindValue(const GgufFile& file,
                                   absl::string_view key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) return WrongType(key);
  return value;
}
template absl::StatusOr<const std::string*> FindValue(const GgufFile& file,
                                                      absl::string_view key);
template absl::StatusOr<const std::vector<std::string>*> FindValue(
    const GgufFile& file, absl::string_view key);
template absl::StatusOr<const std::vector<int64_t>*> FindValue(
    const GgufFile& file, absl::string_view key);
template absl::StatusOr<const std::vector<double>*> FindValue(
    const GgufFile& file, absl::string_view key);

absl::StatusOr<absl::optional<uint32_t>> FindUint32(const GgufFile& file,
                                                    absl::string_view key) {
  PAGED_KV_ASSIGN_OR_RETURN(const int64_t* value,
                            FindValue<int64_t>(file, key));
  if (value == nullptr) return absl::optional<uint32_t>();
  if (*value < 0 || *value > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("GGUF: ", key, " is ", *value));
  }
  return absl::optional<uint32_t>(static_cast<uint32_t>(*value));
}

absl::StatusOr<absl::optional<float>> FindFloat(const GgufFile& file,
                                                absl::string_view key) {
  PAGED_KV_ASSIGN_OR_RETURN(const double* value, FindValue<double>(file, key));
  if (value == nullptr) return absl::optional<float>();
  return absl::optional<float>(static_cast<float>(*value));
}

absl::StatusOr<absl::optional<bool>> FindBool(const GgufFile& file,
                                              absl::string_view key) {
  PAGED_KV_ASSIGN_OR_RETURN(const bool* value, FindValue<bool>(file, key));
  if (value == nullptr) return absl::optional<bool>();
  return absl::optional<bool>(*value);
}

absl::StatusOr<uint32_t> GetUint32(const GgufFile& file,
                                   absl::string_view key) {
  PAGED_KV_ASSIGN_OR_RETURN(const absl::optional<uint32_t> value,
                            FindUint32(file, key));
  if (!value.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("GGUF: there is no ", key));
  }
  return *value;
}

}  // namespace paged_kv::llm

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/utf8.h"

namespace paged_kv::llm {
namespace {

struct LeadByte {
  size_t bytes = 0;  // of the whole character; 0: no character begins so
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
  uint32_t bits = 0;  // that the first byte contributes
};

LeadByte ClassifyLead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0, byte};
  if (byte < 0xC2 || byte > 0xF4) return {};
  if (byte < 0xE0) return {2, 0x80, 0xBF, byte & 0x1FU};
  if (byte < 0xF0) {
    const uint8_t min = byte == 0xE0 ? 0xA0 : 0x80;  // overlong below
    const uint8_t max = byte == 0xED ? 0x9F : 0xBF;  // surrogates above
    return {3, min, max, byte & 0x0FU};
  }
  const uint8_t min = byte == 0xF0 ? 0x90 : 0x80;  // overlong below
  const uint8_t max = byte == 0xF4 ? 0x8F : 0xBF;  // beyond U+10FFFF above
  return {4, min, max, byte & 0x07U};
}

}  // namespace

Utf8Step NextUtf8(absl::string_view text) {
  const LeadByte lead = ClassifyLead(static_cast<uint8_t>(text[0]));
  if (lead.bytes == 0) return {Utf8Kind::kInvalid, 1, 0};
  uint32_t code_point = lead.bits;
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {Utf8Kind::kIncomplete, i, 0};
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Kind::kInvalid, i, 0};
    code_point = (code_point << 6) | (byte & 0x3FU);
  }
  return {Utf8Kind::kCharacter, lead.bytes, code_point};
}

absl::optional<size_t> FindInvalidUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Utf8Step step = NextUtf8(text.substr(i));
    if (step.kind != Utf8Kind::kCharacter) return i;
    i += step.bytes;
  }
  return absl::nullopt;
}

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    if (step.kind == Utf8Kind::kCharacter) {
      valid.append(text.data(), step.bytes);
    } else {
      valid += kReplacementCharacter;
    }
    text.remove_prefix(step.bytes);
  }
  return valid;
}

void AppendUtf8(uint32_t code_point, std::string* text) {
  const auto put = [text](uint32_t byte) {
    text->push_back(static_cast<char>(byte));
  };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace paged_kv::llm

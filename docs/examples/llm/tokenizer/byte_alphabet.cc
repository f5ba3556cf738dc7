// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "docs/examples/llm/tokenizer/utf8.h"

namespace paged_kv::llm {
namespace {

constexpr uint32_t kFirstStandIn = 0x100;
// 33 controls and the space, 0x7F to 0xA0, and the soft hyphen.
constexpr uint32_t kStandIns = 33 + 34 + 1;
constexpr uint32_t kCodePoints = kFirstStandIn + kStandIns;

constexpr bool IsPrinted(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

// [code point] The byte it stands for, or -1.
constexpr std::array<int16_t, kCodePoints> MakeBytes() {
  std::array<int16_t, kCodePoints> bytes{};
  uint32_t stand_in = kFirstStandIn;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (IsPrinted(byte)) {
      bytes[byte] = static_cast<int16_t>(byte);
    } else {
      bytes[byte] = -1;
      bytes[stand_in++] = static_cast<int16_t>(byte);
    }
  }
  return bytes;
}

constexpr std::array<int16_t, kCodePoints> kBytes = MakeBytes();
static_assert(kBytes[0x120] == ' ' && kBytes.back() == 0xAD);

}  // namespace

absl::optional<std::string> BytesOfSpelling(absl::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Step step = NextUtf8(spelling);
    if (step.kind != Utf8Kind::kCharacter || step.code_point >= kCodePoints ||
        kBytes[step.code_point] < 0) {
      return absl::nullopt;
    }
    bytes.push_back(static_cast<char>(kBytes[step.code_point]));
    spelling.remove_prefix(step.bytes);
  }
  return bytes;
}

}  // namespace paged_kv::llm

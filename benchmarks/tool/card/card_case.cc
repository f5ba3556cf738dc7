// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_case.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paged_kv::tool {

absl::string_view CardModeName(CardMode mode) {
  switch (mode) {
    case CardMode::kHost:
      return "host";
    case CardMode::kResident:
      return "resident";
    case CardMode::kHybrid:
      return "hybrid";
    case CardMode::kStreamed:
      return "streamed";
    case CardMode::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<CardMode> ParseCardMode(absl::string_view name) {
  for (CardMode mode : kFixedCardModes) {
    if (name == CardModeName(mode)) return mode;
  }
  if (name == CardModeName(CardMode::kAuto)) return CardMode::kAuto;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown mode '", name,
                   "'; choose host, resident, hybrid, streamed or auto"));
}

uint32_t CardCase::ResidentBlocks(uint32_t tokens) const {
  const uint32_t whole = WholeBlocks(tokens);
  return std::min(whole, static_cast<uint32_t>(std::lround(resident * whole)));
}

uint64_t CardCase::KvBytes() const {
  return uint64_t{batch} * context * BytesPerToken(shape).value();
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/shortage.h"

#include "absl/strings/cord.h"
#include "absl/types/optional.h"

namespace paged_kv {

const char* ShortageName(Shortage shortage) {
  switch (shortage) {
    case Shortage::kNone:
      return "none";
    case Shortage::kHostBlocks:
      return "host blocks";
    case Shortage::kDevicePages:
      return "device pages";
    case Shortage::kTransfers:
      return "transfers";
  }
  return "unknown";
}

Shortage ShortageOf(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return Shortage::kNone;
  const absl::optional<absl::Cord> name = status.GetPayload(kShortagePayload);
  if (!name.has_value()) return Shortage::kNone;
  for (const Shortage shortage :
       {Shortage::kHostBlocks, Shortage::kDevicePages, Shortage::kTransfers}) {
    if (*name == ShortageName(shortage)) return shortage;
  }
  return Shortage::kNone;
}

absl::Status ShortageError(Shortage shortage, const std::string& message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kShortagePayload, absl::Cord(ShortageName(shortage)));
  return status;
}

}  // namespace paged_kv

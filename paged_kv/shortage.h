// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_SHORTAGE_H_
#define PAGED_KV_SHORTAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace paged_kv {

// What a call that answers ResourceExhausted lacked, and so what would help.
enum class Shortage : uint8_t {
  kNone,         // not refused, or for something that is not counted here
  kHostBlocks,   // blocks: free, preempt
  kDevicePages,  // pages on the device: swap out, write back
  kTransfers,    // nothing but time: transfers are in flight
};
// "none", "host blocks", "device pages", "transfers".
const char* ShortageName(Shortage shortage);

// Read from the payload kShortagePayload of a status of the cache.
Shortage ShortageOf(const absl::Status& status);
inline constexpr char kShortagePayload[] = "paged_kv/shortage";

// ResourceExhausted for want of `shortage`.
absl::Status ShortageError(Shortage shortage, const std::string& message);

}  // namespace paged_kv

#endif  // PAGED_KV_SHORTAGE_H_

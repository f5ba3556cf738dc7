// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The lowest layer of the operation log: varints and checksummed records.

#ifndef PAGED_KV_OP_LOG_FRAMING_H_
#define PAGED_KV_OP_LOG_FRAMING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace paged_kv::internal {

inline constexpr absl::string_view kOpLogMagic = "PagedKV operation log";
inline constexpr uint64_t kOpLogVersion = 2;

// ---- Writing: appends to *out ----

void PutVarint(uint64_t value, std::string* out);
void PutZigzag(int64_t value, std::string* out);
// Length, then bytes.
void PutBytes(absl::string_view bytes, std::string* out);

// The whole record number `number` around `payload`.
std::string FrameRecord(uint64_t number, absl::string_view payload);

// ---- Reading: cuts from the front of *in ----
// False, with *in and the result undefined, if the bytes do not hold one.

bool GetVarint(absl::string_view* in, uint64_t* value);
bool GetZigzag(absl::string_view* in, int64_t* value);
bool GetBytes(absl::string_view* in, absl::string_view* bytes);

// Cuts record `number`; false if it is cut short or its checksum differs.
bool UnframeRecord(uint64_t number, absl::string_view* in,
                   absl::string_view* payload);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_OP_LOG_FRAMING_H_

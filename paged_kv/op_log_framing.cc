// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/op_log_framing.h"

#include <xxhash.h>

#include <cstddef>

namespace paged_kv::internal {
namespace {

constexpr size_t kChecksumBytes = 4;

uint32_t Checksum(uint64_t number, absl::string_view payload) {
  return static_cast<uint32_t>(
      XXH3_64bits_withSeed(payload.data(), payload.size(), number));
}

}  // namespace

void PutVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void PutZigzag(int64_t value, std::string* out) {
  // Small magnitudes of either sign become small numbers: 0, -1, 1, -2, ...
  const uint64_t sign = value < 0 ? ~uint64_t{0} : 0;
  PutVarint((static_cast<uint64_t>(value) << 1) ^ sign, out);
}

void PutBytes(absl::string_view bytes, std::string* out) {
  PutVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

std::string FrameRecord(uint64_t number, absl::string_view payload) {
  std::string record;
  record.reserve(payload.size() + 10 + kChecksumBytes);
  PutBytes(payload, &record);
  uint32_t checksum = Checksum(number, payload);
  for (size_t i = 0; i < kChecksumBytes; ++i) {
    record.push_back(static_cast<char>(checksum & 0xFF));
    checksum >>= 8;
  }
  return record;
}

bool GetVarint(absl::string_view* in, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (in->empty()) return false;
    const auto byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    const uint64_t bits = byte & 0x7F;
    // The tenth byte has room for one bit only.
    if (shift == 63 && bits > 1) return false;
    *value |= bits << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool GetZigzag(absl::string_view* in, int64_t* value) {
  uint64_t coded = 0;
  if (!GetVarint(in, &coded)) return false;
  const uint64_t sign = (coded & 1) != 0 ? ~uint64_t{0} : 0;
  *value = static_cast<int64_t>((coded >> 1) ^ sign);
  return true;
}

bool GetBytes(absl::string_view* in, absl::string_view* bytes) {
  uint64_t size = 0;
  if (!GetVarint(in, &size) || size > in->size()) return false;
  *bytes = in->substr(0, size);
  in->remove_prefix(size);
  return true;
}

bool UnframeRecord(uint64_t number, absl::string_view* in,
                   absl::string_view* payload) {
  if (!GetBytes(in, payload) || in->size() < kChecksumBytes) return false;
  uint32_t checksum = 0;
  for (size_t i = kChecksumBytes; i-- > 0;) {
    checksum = checksum << 8 | static_cast<uint8_t>((*in)[i]);
  }
  in->remove_prefix(kChecksumBytes);
  return checksum == Checksum(number, *payload);
}

}  // namespace paged_kv::internal

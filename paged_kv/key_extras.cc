// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/key_extras.h"

#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "paged_kv/check.h"

namespace paged_kv::internal {
namespace {

// A frame: kind (1 byte), position (4), length (4), value.
constexpr size_t kHeaderBytes = 9;

void AppendU32(uint32_t value, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8) {
    out->push_back(static_cast<char>(value >> shift & 0xFF));
  }
}

uint32_t ReadU32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    value |= uint32_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return value;
}

}  // namespace

size_t SerializedExtrasBytes(KeyExtras extras) {
  size_t bytes = 0;
  for (const KeyExtra& extra : extras)
    bytes += kHeaderBytes + extra.value.size();
  return bytes;
}

void SerializeExtras(KeyExtras extras, std::string* frames) {
  frames->clear();
  if (extras.empty()) return;
  absl::InlinedVector<const KeyExtra*, 16> sorted;
  for (const KeyExtra& extra : extras) sorted.push_back(&extra);
  std::sort(sorted.begin(), sorted.end(),
            [](const KeyExtra* a, const KeyExtra* b) {
              if (a->position != b->position) return a->position < b->position;
              if (a->kind != b->kind) return a->kind < b->kind;
              return a->value < b->value;
            });
  for (const KeyExtra* extra : sorted) {
    frames->push_back(static_cast<char>(extra->kind));
    AppendU32(extra->position.value(), frames);
    AppendU32(static_cast<uint32_t>(extra->value.size()), frames);
    frames->append(extra->value.data(), extra->value.size());
  }
}

absl::string_view CutExtrasBefore(uint32_t end, absl::string_view* frames) {
  size_t size = 0;
  while (size < frames->size()) {
    PAGED_KV_DCHECK(frames->size() - size >= kHeaderBytes);
    const char* frame = frames->data() + size;
    if (ReadU32(frame + 1) >= end) break;
    size += kHeaderBytes + ReadU32(frame + 5);
  }
  PAGED_KV_CHECK(size <= frames->size());
  const absl::string_view cut = frames->substr(0, size);
  frames->remove_prefix(size);
  return cut;
}

}  // namespace paged_kv::internal

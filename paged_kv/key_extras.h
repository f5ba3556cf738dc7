// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What besides its tokens makes a prefix's K/V what it is.

#ifndef PAGED_KV_KEY_EXTRAS_H_
#define PAGED_KV_KEY_EXTRAS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "paged_kv/types.h"

namespace paged_kv {

// One part of a prefix key. Kinds never mix: a salt "x" is not an adapter "x".
struct KeyExtra {
  enum class Kind : uint8_t {
    kSalt = 1,     // tenant or privacy domain; at position 0
    kAdapter = 2,  // adapter id and version of its weights; at position 0
    kContent = 3,  // hash of an image, audio, ... whose placeholder tokens
                   // begin at `position`
    kOther = 4,
  };

  Kind kind = Kind::kOther;
  // The block that holds this position and every block after it differ from
  // those of a prompt without this extra.
  TokenPos position{0};
  absl::string_view value;  // any bytes; borrowed for the call
};

using KeyExtras = absl::Span<const KeyExtra>;

inline KeyExtra Salt(absl::string_view value) {
  return KeyExtra{KeyExtra::Kind::kSalt, TokenPos(0), value};
}
// `id_and_version` names the weights: other weights loaded under the same id
// need another version.
inline KeyExtra Adapter(absl::string_view id_and_version) {
  return KeyExtra{KeyExtra::Kind::kAdapter, TokenPos(0), id_and_version};
}
inline KeyExtra Content(TokenPos position, absl::string_view hash) {
  return KeyExtra{KeyExtra::Kind::kContent, position, hash};
}

namespace internal {

// Writes the canonical form of `extras` over *frames (its capacity is kept):
// sorted by position, kind and value, duplicates kept, each framed with its
// length so that no two different lists give the same bytes.
void SerializeExtras(KeyExtras extras, std::string* frames);

// Bytes that SerializeExtras writes.
size_t SerializedExtrasBytes(KeyExtras extras);

// Cuts from the front of `*frames` the frames whose position is below `end`
// and returns them. `*frames` must be canonical.
absl::string_view CutExtrasBefore(uint32_t end, absl::string_view* frames);

}  // namespace internal
}  // namespace paged_kv

#endif  // PAGED_KV_KEY_EXTRAS_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the naive model knows of content: which prefixes exist, and which
// blocks hold them.

#ifndef PAGED_KV_TESTS_SUPPORT_REFERENCE_CONTENT_H_
#define PAGED_KV_TESTS_SUPPORT_REFERENCE_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "paged_kv/types.h"

namespace paged_kv::testing {

// One chunk of tokens, and what else makes its K/V what it is. Compared token
// by token and byte by byte; nothing is hashed.
struct ReferenceChunk {
  absl::InlinedVector<TokenId, 8> tokens;
  std::string extras;
};
struct ReferenceChunkView {
  absl::Span<const TokenId> tokens;
  absl::string_view extras;
};
struct ReferenceChunkLess {
  using is_transparent = void;
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    for (size_t i = 0; i < a.tokens.size(); ++i) {  // chunks have one length
      if (a.tokens[i] != b.tokens[i]) return a.tokens[i] < b.tokens[i];
    }
    return absl::string_view(a.extras) < absl::string_view(b.extras);
  }
};

// A prefix: its last chunk behind its parent. Two prefixes are the same
// content exactly if they are the same node.
struct ReferenceContent {
  using Children = std::map<ReferenceChunk, std::unique_ptr<ReferenceContent>,
                            ReferenceChunkLess>;

  ReferenceContent* parent = nullptr;
  Children children;
  Children::iterator self;  // in parent->children
  // For every block of the chunk in every group ("place"), the blocks that
  // hold it. The first one is the content, the others are duplicates.
  absl::InlinedVector<absl::InlinedVector<uint32_t, 2>, 2> copies;
  uint32_t pins = 0;  // sequences whose last shared chunk this is
};

// The tree of all prefixes that a block, a longer prefix or a sequence needs.
//
// Rules:
// - There is room for `max_chunks` chunks and for max_extra_cells cells of 56
//   bytes of key extras. A chunk that finds no room does not exist.
// - A copy becomes first when it is the only one, else the second; when the
//   first goes, the second becomes the first.
class ReferenceContents {
 public:
  ReferenceContents(size_t places, uint64_t max_chunks,
                    uint64_t max_extra_cells);

  ReferenceContent* root() { return &root_; }
  const ReferenceContent* root() const { return &root_; }
  uint64_t chunks() const { return chunks_; }

  // Null if there is none.
  static ReferenceContent* Find(const ReferenceContent* parent,
                                const ReferenceChunkView& chunk);
  // Null if there is no room for a new one.
  ReferenceContent* FindOrAdd(ReferenceContent* parent,
                              const ReferenceChunkView& chunk);

  void Pin(ReferenceContent* content) { ++content->pins; }
  void Unpin(ReferenceContent* content);

  // True if `block` is now the only copy.
  bool Attach(ReferenceContent* content, uint32_t place, uint32_t block);
  // True if `block` was the only copy; *first is set to the block that has
  // become first by this, or to `block` if none has.
  bool Detach(ReferenceContent* content, uint32_t place, uint32_t block,
              uint32_t* first);
  // Drops `content` and its ancestors as far as nothing needs them.
  void DropUnneeded(ReferenceContent* content);

 private:
  static uint64_t ExtraCells(absl::string_view extras);

  size_t places_;
  uint64_t max_chunks_;
  uint64_t max_extra_cells_;
  uint64_t chunks_ = 0;
  uint64_t extra_cells_ = 0;
  ReferenceContent root_;
};

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_REFERENCE_CONTENT_H_

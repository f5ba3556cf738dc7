// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/reference_content.h"

#include <algorithm>
#include <utility>

#include "paged_kv/check.h"

namespace paged_kv::testing {

ReferenceContents::ReferenceContents(size_t places, uint64_t max_chunks,
                                     uint64_t max_extra_cells)
    : places_(places),
      max_chunks_(max_chunks),
      max_extra_cells_(max_extra_cells) {
  root_.pins = 1;  // never dropped
}

uint64_t ReferenceContents::ExtraCells(absl::string_view extras) {
  constexpr size_t kBytesPerCell = 56;
  return (extras.size() + kBytesPerCell - 1) / kBytesPerCell;
}

ReferenceContent* ReferenceContents::Find(const ReferenceContent* parent,
                                          const ReferenceChunkView& chunk) {
  const auto it = parent->children.find(chunk);
  return it == parent->children.end() ? nullptr : it->second.get();
}

ReferenceContent* ReferenceContents::FindOrAdd(
    ReferenceContent* parent, const ReferenceChunkView& chunk) {
  if (ReferenceContent* found = Find(parent, chunk)) return found;
  const uint64_t cells = ExtraCells(chunk.extras);
  if (chunks_ == max_chunks_ || extra_cells_ + cells > max_extra_cells_) {
    return nullptr;
  }
  auto content = std::make_unique<ReferenceContent>();
  ReferenceContent* added = content.get();
  added->parent = parent;
  added->copies.resize(places_);
  ReferenceChunk key{{chunk.tokens.begin(), chunk.tokens.end()},
                     std::string(chunk.extras)};
  added->self =
      parent->children.emplace(std::move(key), std::move(content)).first;
  ++chunks_;
  extra_cells_ += cells;
  return added;
}

void ReferenceContents::Unpin(ReferenceContent* content) {
  PAGED_KV_CHECK(content->pins > 0);
  --content->pins;
  DropUnneeded(content);
}

bool ReferenceContents::Attach(ReferenceContent* content, uint32_t place,
                               uint32_t block) {
  auto& copies = content->copies[place];
  copies.insert(copies.begin() + (copies.empty() ? 0 : 1), block);
  return copies.size() == 1;
}

bool ReferenceContents::Detach(ReferenceContent* content, uint32_t place,
                               uint32_t block, uint32_t* first) {
  auto& copies = content->copies[place];
  const auto it = std::find(copies.begin(), copies.end(), block);
  PAGED_KV_CHECK(it != copies.end());
  const bool was_first = it == copies.begin();
  copies.erase(it);
  *first = was_first && !copies.empty() ? copies.front() : block;
  return copies.empty();
}

void ReferenceContents::DropUnneeded(ReferenceContent* content) {
  while (content->pins == 0 && content->children.empty() &&
         std::all_of(content->copies.begin(), content->copies.end(),
                     [](const auto& copies) { return copies.empty(); })) {
    ReferenceContent* parent = content->parent;
    extra_cells_ -= ExtraCells(content->self->first.extras);
    --chunks_;
    parent->children.erase(content->self);
    content = parent;
  }
}

}  // namespace paged_kv::testing

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/extras_store.h"

#include <algorithm>
#include <cstring>

#include "paged_kv/check.h"

namespace paged_kv::internal {

absl::Status ExtrasStore::Create(uint32_t bytes) {
  return cells_.Create(bytes / sizeof(Cell));
}

uint32_t ExtrasStore::Add(absl::string_view bytes) {
  PAGED_KV_DCHECK(!bytes.empty());
  const size_t needed =
      (bytes.size() + sizeof(Cell::bytes) - 1) / sizeof(Cell::bytes);
  if (needed > cells_.size() - used_) return 0;
  used_ += static_cast<uint32_t>(needed);
  uint32_t first = 0;
  uint32_t* link = &first;
  while (!bytes.empty()) {
    if (free_list_ == 0) {
      *link = ++never_used_;
    } else {
      *link = free_list_;
      free_list_ = cells_[free_list_ - 1].next;
    }
    Cell& cell = cells_[*link - 1];
    cell.next = 0;
    cell.length =
        static_cast<uint32_t>(std::min(bytes.size(), sizeof(cell.bytes)));
    std::memcpy(cell.bytes, bytes.data(), cell.length);
    bytes.remove_prefix(cell.length);
    link = &cell.next;
  }
  return first;
}

void ExtrasStore::Remove(uint32_t id) {
  while (id != 0) {
    Cell& cell = cells_[id - 1];
    const uint32_t next = cell.next;
    cell.next = free_list_;
    free_list_ = id;
    --used_;
    id = next;
  }
}

bool ExtrasStore::Equals(uint32_t id, absl::string_view bytes) const {
  for (; id != 0; id = cells_[id - 1].next) {
    const Cell& cell = cells_[id - 1];
    if (cell.length > bytes.size() ||
        std::memcmp(cell.bytes, bytes.data(), cell.length) != 0) {
      return false;
    }
    bytes.remove_prefix(cell.length);
  }
  return bytes.empty();
}

}  // namespace paged_kv::internal

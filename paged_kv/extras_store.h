// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_EXTRAS_STORE_H_
#define PAGED_KV_EXTRAS_STORE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "paged_kv/lazy_array.h"

namespace paged_kv::internal {

// Byte strings in a fixed arena, as chains of cells. Allocates nothing after
// Create(). Thread safety: thread-compatible.
class ExtrasStore {
 public:
  absl::Status Create(uint32_t bytes);

  // Copies `bytes` (not empty) in; 0 if there is no room.
  uint32_t Add(absl::string_view bytes);
  void Remove(uint32_t id);
  // id 0 is the empty string.
  bool Equals(uint32_t id, absl::string_view bytes) const;

  uint32_t used_cells() const { return used_; }

 private:
  struct Cell {
    uint32_t next;    // cell + 1; 0: last
    uint32_t length;  // bytes in this cell
    char bytes[56];
  };
  static_assert(sizeof(Cell) == 64);

  LazyArray<Cell> cells_;
  uint32_t free_list_ = 0;   // cell + 1
  uint32_t never_used_ = 0;  // cells from here on were never used
  uint32_t used_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_EXTRAS_STORE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/chunk_walk_internal.h"

namespace paged_kv::attention::internal {

ChunkWalk::ChunkWalk(const AttendCall& call, const AttendTask& task,
                     const AttendTask& next)
    : call_(call), next_task_(next), cursor_(call, *task.item, task.kv_head) {
  more_ = cursor_.Next(&chunks_[0]);
  if (more_) list_.Reset(call_, chunks_[0]).Finish();
}

const KeyChunk* ChunkWalk::Next(PrefetchCursor* prefetch) {
  if (!more_) return nullptr;
  const KeyChunk* chunk = &chunks_[index_];
  index_ = 1 - index_;
  KeyChunk* ahead = &chunks_[index_];
  more_ = cursor_.Next(ahead);
  const bool any =
      more_ ||
      (next_task_.item != nullptr &&
       KeyCursor(call_, *next_task_.item, next_task_.kv_head).Next(ahead));
  *prefetch = any ? list_.Reset(call_, *ahead) : PrefetchCursor();
  return chunk;
}

}  // namespace paged_kv::attention::internal

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chunks of one task, and what to prefetch while each is computed.

#ifndef PAGED_KV_ATTENTION_CHUNK_WALK_INTERNAL_H_
#define PAGED_KV_ATTENTION_CHUNK_WALK_INTERNAL_H_

#include "attention/attend_internal.h"
#include "attention/key_cursor_internal.h"
#include "attention/prefetch_list_internal.h"

namespace paged_kv::attention::internal {

class ChunkWalk {
 public:
  // Asks for the first chunk. `next` is what the worker will do after `task`;
  // its item may be null.
  ChunkWalk(const AttendCall& call, const AttendTask& task,
            const AttendTask& next);

  // The next chunk, good until the call after the next; null at the end.
  // `prefetch` becomes the lines of the chunk behind it, good until the next
  // call; behind the last one those of the first chunk of the next task.
  const KeyChunk* Next(PrefetchCursor* prefetch);

 private:
  const AttendCall& call_;
  const AttendTask next_task_;
  KeyCursor cursor_;
  KeyChunk chunks_[2];
  size_t index_ = 0;  // of the chunk that Next() returns
  bool more_ = false;
  PrefetchList list_;
};

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_CHUNK_WALK_INTERNAL_H_

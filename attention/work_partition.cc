// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "attention/work_partition_internal.h"

namespace paged_kv::attention::internal {
namespace {

int64_t NumKeys(const WorkItem& item) {
  return item.sinks.size() + item.keys.size();
}

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Sets the keys that any row of the item sees.
void SetKeyRanges(const SequenceQueries& sequence, uint32_t group,
                  const AttentionOptions& options, WorkItem* item) {
  const auto token_of = [&](uint64_t row) {
    return static_cast<int64_t>(row / group);
  };
  const int64_t first = sequence.first_position + token_of(item->first_row);
  const int64_t last =
      sequence.first_position + token_of(item->first_row + item->num_rows - 1);
  const int64_t end = options.causal ? last + 1 : sequence.num_tokens;
  item->keys = {0, end};
  if (options.window == 0) return;
  const int64_t sinks = std::min<int64_t>(options.sink_tokens, end);
  item->sinks = {0, sinks};
  item->keys.begin = std::max(sinks, first + 1 - options.window);
}

// One item per block of rows, with all of its keys.
std::vector<WorkItem> CutRows(const std::vector<SequenceQueries>& queries,
                              uint32_t group, const AttentionOptions& options) {
  std::vector<WorkItem> items;
  for (const SequenceQueries& sequence : queries) {
    const uint64_t rows = static_cast<uint64_t>(sequence.num_queries) * group;
    for (uint64_t row = 0; row < rows; row += kMaxItemRows) {
      WorkItem item;
      item.sequence = sequence.sequence;
      item.num_rows =
          static_cast<uint32_t>(std::min<uint64_t>(rows - row, kMaxItemRows));
      item.first_row = row;
      item.first_query = sequence.first_query;
      item.first_position = sequence.first_position;
      SetKeyRanges(sequence, group, options, &item);
      items.push_back(item);
    }
  }
  return items;
}

// Cuts the keys of one item into pieces of about `split_tokens`, at multiples
// of a chunk, so that no tile is read twice. Sinks stay with the first piece.
void SplitKeys(const WorkItem& item, int64_t split_tokens,
               WorkPartition* partition) {
  const int64_t pieces = (item.keys.size() + split_tokens - 1) / split_tokens;
  if (pieces <= 1) {
    partition->items.push_back(item);
    return;
  }
  const int64_t step =
      RoundUp((item.keys.size() + pieces - 1) / pieces, kChunkTokens);
  SplitRows split{item, 0};
  split.rows.partial_row = partition->partial_rows;
  for (int64_t begin = item.keys.begin; begin < item.keys.end;) {
    WorkItem piece = item;
    piece.keys.begin = begin;
    piece.keys.end =
        std::min(item.keys.end, begin / kChunkTokens * kChunkTokens + step);
    if (split.num_splits != 0) piece.sinks = {};
    piece.partial_row = partition->partial_rows;
    partition->items.push_back(piece);
    partition->partial_rows += item.num_rows;
    ++split.num_splits;
    begin = piece.keys.end;
  }
  partition->splits.push_back(split);
}

}  // namespace

WorkPartition PartitionWork(const std::vector<SequenceQueries>& queries,
                            uint32_t kv_heads, uint32_t group,
                            const AttentionOptions& options) {
  const std::vector<WorkItem> whole = CutRows(queries, group, options);
  int64_t total = 0;
  for (const WorkItem& item : whole) total += NumKeys(item) * kv_heads;
  const int64_t split_tokens =
      std::max(kMinSplitTokens, RoundUp(total / kTargetItems, kChunkTokens));

  WorkPartition partition;
  partition.items.reserve(whole.size());
  for (const WorkItem& item : whole) {
    SplitKeys(item, split_tokens, &partition);
  }
  // Threads that take the longest items first end together. Stable, so that
  // neighbours stay neighbours in memory where lengths are equal.
  std::stable_sort(partition.items.begin(), partition.items.end(),
                   [](const WorkItem& a, const WorkItem& b) {
                     return NumKeys(a) * a.num_rows > NumKeys(b) * b.num_rows;
                   });
  return partition;
}

}  // namespace paged_kv::attention::internal

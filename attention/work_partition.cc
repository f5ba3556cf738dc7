// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <utility>

#include "attention/shared_prefix_internal.h"
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

// An item before its keys are split, and the members whose rows it has.
struct WholeItem {
  WorkItem item;
  bool partial = false;  // sees a part of its rows' keys only
  // Of a shared prefix: its members, as indices into the step's queries.
  std::vector<uint32_t> members;
};

// One item per block of rows, with all keys from `first_key` on.
void CutRows(const SequenceQueries& sequence, int64_t first_key, uint32_t group,
             const AttentionOptions& options, std::vector<WholeItem>* items) {
  const uint64_t rows = static_cast<uint64_t>(sequence.num_queries) * group;
  for (uint64_t row = 0; row < rows; row += kMaxItemRows) {
    WholeItem whole;
    WorkItem& item = whole.item;
    item.sequence = sequence.sequence;
    item.num_rows =
        static_cast<uint32_t>(std::min<uint64_t>(rows - row, kMaxItemRows));
    item.first_row = row;
    item.first_query = sequence.first_query;
    item.first_position = sequence.first_position;
    SetKeyRanges(sequence, group, options, &item);
    item.keys.begin = std::max(item.keys.begin, first_key);
    whole.partial = first_key > 0;
    items->push_back(std::move(whole));
  }
}

// The shared keys, with the rows of as many members as an item holds.
void CutShared(const std::vector<SequenceQueries>& queries,
               const SharedPrefix& prefix, uint32_t group,
               WorkPartition* partition, std::vector<WholeItem>* items) {
  const size_t per_item = kMaxItemRows / group;
  for (size_t m = 0; m < prefix.members.size(); m += per_item) {
    const size_t end = std::min(m + per_item, prefix.members.size());
    WholeItem whole;
    whole.partial = true;
    whole.members.assign(prefix.members.begin() + static_cast<ptrdiff_t>(m),
                         prefix.members.begin() + static_cast<ptrdiff_t>(end));
    WorkItem& item = whole.item;
    item.sequence = queries[prefix.members[m]].sequence;
    item.num_rows = static_cast<uint32_t>(end - m) * group;
    item.first_shared = static_cast<int64_t>(partition->shared_queries.size());
    item.keys = {0, prefix.tokens};
    for (const uint32_t member : whole.members) {
      partition->shared_queries.push_back(
          {queries[member].first_query, queries[member].first_position});
    }
    items->push_back(std::move(whole));
  }
}

// Cuts the keys of one item into pieces of about `split_tokens`, at multiples
// of a chunk, so that no tile is read twice. Sinks stay with the first piece.
// Returns the first partial row of each piece; none if there is one piece and
// it is the whole.
std::vector<int64_t> SplitKeys(const WholeItem& whole, int64_t split_tokens,
                               WorkPartition* partition) {
  const WorkItem& item = whole.item;
  const int64_t pieces = (item.keys.size() + split_tokens - 1) / split_tokens;
  if (pieces <= 1 && !whole.partial) {
    partition->items.push_back(item);
    return {};
  }
  std::vector<int64_t> parts;
  if (item.keys.size() == 0) return parts;
  const int64_t step =
      RoundUp((item.keys.size() + pieces - 1) / pieces, kChunkTokens);
  for (int64_t begin = item.keys.begin; begin < item.keys.end;) {
    WorkItem piece = item;
    piece.keys.begin = begin;
    piece.keys.end =
        std::min(item.keys.end, begin / kChunkTokens * kChunkTokens + step);
    if (!parts.empty()) piece.sinks = {};
    piece.partial_row = partition->partial_rows;
    partition->items.push_back(piece);
    partition->partial_rows += item.num_rows;
    parts.push_back(piece.partial_row);
    begin = piece.keys.end;
  }
  return parts;
}

void AddSplit(const WorkItem& rows, const std::vector<int64_t>& parts,
              WorkPartition* partition) {
  SplitRows split;
  split.rows = rows;
  split.first_part = static_cast<uint32_t>(partition->parts.size());
  split.num_parts = static_cast<uint32_t>(parts.size());
  partition->parts.insert(partition->parts.end(), parts.begin(), parts.end());
  partition->splits.push_back(split);
}

}  // namespace

WorkPartition PartitionWork(const std::vector<SequenceQueries>& queries,
                            const std::vector<SharedPrefix>& shared,
                            uint32_t kv_heads, uint32_t group,
                            const AttentionOptions& options) {
  WorkPartition partition;
  std::vector<WholeItem> whole;
  std::vector<int64_t> first_key(queries.size(), 0);
  if (2 * group <= kMaxItemRows) {
    for (const SharedPrefix& prefix : shared) {
      CutShared(queries, prefix, group, &partition, &whole);
      for (const uint32_t m : prefix.members) first_key[m] = prefix.tokens;
    }
  }
  const size_t num_shared = whole.size();
  // Where each sequence's own items begin; a member has one.
  std::vector<size_t> own(queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    own[i] = whole.size();
    CutRows(queries[i], first_key[i], group, options, &whole);
  }
  int64_t total = 0;
  for (const WholeItem& w : whole) total += NumKeys(w.item) * kv_heads;
  const int64_t split_tokens =
      std::max(kMinSplitTokens, RoundUp(total / kTargetItems, kChunkTokens));

  partition.items.reserve(whole.size());
  std::vector<std::vector<int64_t>> parts;
  parts.reserve(whole.size());
  for (const WholeItem& w : whole) {
    parts.push_back(SplitKeys(w, split_tokens, &partition));
  }
  for (size_t s = 0; s < num_shared; ++s) {
    for (size_t k = 0; k < whole[s].members.size(); ++k) {
      const size_t mine = own[whole[s].members[k]];
      std::vector<int64_t> of_member = parts[s];
      for (int64_t& part : of_member) part += static_cast<int64_t>(k * group);
      of_member.insert(of_member.end(), parts[mine].begin(), parts[mine].end());
      AddSplit(whole[mine].item, of_member, &partition);
    }
  }
  for (size_t i = num_shared; i < whole.size(); ++i) {
    if (whole[i].partial || parts[i].empty()) continue;
    AddSplit(whole[i].item, parts[i], &partition);
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

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/shared_prefix_internal.h"

#include <algorithm>
#include <cstddef>

#include "absl/types/span.h"

namespace paged_kv::attention::internal {
namespace {

// The full pages of a sequence; the last page, which may fill up, is its own.
absl::Span<const int32_t> FullPages(const PageTable& table, uint32_t sequence) {
  const auto begin = static_cast<size_t>(table.indptr[sequence]);
  const auto end = static_cast<size_t>(table.indptr[sequence + 1]);
  if (begin == end) return {};
  const bool full = table.last_page_tokens[sequence] == table.block_tokens;
  return table.page_indices.subspan(begin, end - begin - (full ? 0 : 1));
}

int64_t CommonPages(absl::Span<const int32_t> a, absl::Span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
         a.begin();
}

}  // namespace

std::vector<SharedPrefix> FindSharedPrefixes(
    const PageTable& table, const std::vector<SequenceQueries>& queries) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < queries.size(); ++i) {
    const SequenceQueries& q = queries[i];
    if (q.num_queries != 1 || q.num_tokens < kMinSharedTokens) continue;
    if (table.first_token[q.sequence] == 0) order.push_back(i);
  }
  const auto pages = [&](uint32_t i) {
    return FullPages(table, queries[i].sequence);
  };
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const auto pages_a = pages(a), pages_b = pages(b);
    return std::lexicographical_compare(pages_a.begin(), pages_a.end(),
                                        pages_b.begin(), pages_b.end());
  });

  std::vector<SharedPrefix> groups;
  for (size_t first = 0; first < order.size();) {
    SharedPrefix group;
    group.members = {order[first]};
    int64_t saved = 0;
    size_t next = first + 1;
    for (; next < order.size(); ++next) {
      // Sorted, so all before `next` share at least what its neighbour does.
      const int64_t common =
          CommonPages(pages(order[next - 1]), pages(order[next])) *
          table.block_tokens;
      const int64_t tokens =
          group.tokens == 0 ? common : std::min(group.tokens, common);
      const auto others = static_cast<int64_t>(group.members.size());
      if (tokens < kMinSharedTokens || tokens * others <= saved) break;
      group.members.push_back(order[next]);
      group.tokens = tokens;
      saved = tokens * others;
    }
    if (group.members.size() > 1) groups.push_back(std::move(group));
    first = next;
  }
  return groups;
}

}  // namespace paged_kv::attention::internal

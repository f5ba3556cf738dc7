// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What exports hold, against the words of page_table.h.

#include "paged_kv/page_table.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

constexpr int32_t kUntouched = -9;

struct Arrays {
  Arrays(size_t sequences, size_t page_count, size_t spare)
      : indptr(sequences + 1 + spare, kUntouched),
        pages(page_count + spare, kUntouched),
        last(sequences + spare, kUntouched),
        first(sequences + spare, kUntouched) {}
  PageTableBuffers Buffers() {
    return {absl::MakeSpan(indptr), absl::MakeSpan(pages), absl::MakeSpan(last),
            absl::MakeSpan(first)};
  }
  std::vector<int32_t> indptr, pages, last, first;
};

// Which positions a table covers, by its header's rules: pairs of position
// and page.
std::vector<std::pair<int64_t, int32_t>> Covered(const PageTable& table,
                                                 size_t i) {
  std::vector<std::pair<int64_t, int32_t>> covered;
  const int32_t begin = table.indptr[i], end = table.indptr[i + 1];
  for (int32_t p = begin; p < end; ++p) {
    const int32_t n = p - begin;
    int64_t position = int64_t{n} * table.block_tokens;
    if (table.first_token[i] > 0 && n >= table.sink_pages) {
      position = table.first_token[i] +
                 int64_t{n - table.sink_pages} * table.block_tokens;
    }
    const int32_t tokens =
        p + 1 == end ? table.last_page_tokens[i] : table.block_tokens;
    for (int32_t t = 0; t < tokens; ++t) {
      covered.emplace_back(position + t, table.page_indices[p]);
    }
  }
  return covered;
}

TEST(PageTableTest, CoversEachPositionByItsBlockForAnyWindowAndSink) {
  for (uint32_t block : {1u, 3u, 4u, 16u}) {
    for (uint32_t window : {0u, 1u, 5u, 16u}) {
      for (uint32_t sinks : {0u, 1u, 6u}) {
        if (window == 0 && sinks > 0) continue;
        for (uint32_t length : {1u, 4u, 17u, 33u}) {
          SCOPED_TRACE(absl::StrCat("block ", block, " window ", window,
                                    " sinks ", sinks, " length ", length));
          CacheScript cache(PoolOptions(80, block, window, sinks));
          const SequenceId a = cache.New(Text(1, length));
          const SequenceId b = cache.New(Text(2, 7));
          const std::vector<TokenId> one = Text(3, 1), three = Text(4, 3);
          StepRequest drafts = StepRequest::Extend(b, three);
          drafts.lookahead = TokenCount(2);
          const StepId step = cache.Step({StepRequest::Extend(a, one), drafts});
          const PageTableSize size = *cache->TableSize(step, GroupId(0));
          Arrays arrays(size.sequences, size.pages, /*spare=*/3);
          const auto table =
              cache->ExportPageTable(step, GroupId(0), arrays.Buffers());
          ASSERT_TRUE(table.ok()) << table.status();
          ASSERT_EQ(table->num_sequences(), 2u);
          EXPECT_EQ(table->page_indices.size(), size.pages);
          EXPECT_EQ(table->indptr[0], 0);
          EXPECT_EQ(table->block_tokens, static_cast<int32_t>(block));
          EXPECT_EQ(
              table->sink_pages,
              static_cast<int32_t>(window == 0 ? 0 : CeilDiv(sinks, block)));
          // What lies behind the table is not touched.
          EXPECT_EQ(arrays.indptr[3], kUntouched);
          EXPECT_EQ(arrays.pages[size.pages], kUntouched);
          EXPECT_EQ(arrays.last[2], kUntouched);
          EXPECT_EQ(arrays.first[2], kUntouched);

          const SequenceId ids[] = {a, b};
          const uint32_t contexts[] = {length + 1, 7 + 3 + 2};
          const uint32_t first_new[] = {length, 7};
          for (size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(table->SequenceTokens(i), contexts[i]);
            const std::vector<BlockId> blocks = cache.Table(ids[i]);
            std::vector<bool> seen(contexts[i], false);
            for (const auto& [position, page] : Covered(*table, i)) {
              ASSERT_LT(position, contexts[i]);
              EXPECT_FALSE(seen[static_cast<size_t>(position)]);
              seen[static_cast<size_t>(position)] = true;
              EXPECT_EQ(
                  page,
                  static_cast<int32_t>(
                      blocks[static_cast<size_t>(position) / block].value()));
            }
            // All that the first new token attends to, and the sinks.
            for (uint32_t position = 0; position < contexts[i]; ++position) {
              const bool attended =
                  window == 0 || position + window > first_new[i];
              if (attended || position < sinks) {
                EXPECT_TRUE(seen[position]) << "position " << position;
              }
            }
          }
          cache.Retire(step);
        }
      }
    }
  }
}

TEST(PageTableTest, SlotsAreThoseOfTheNewTokensAndDrafts) {
  CacheScript cache(32, 4);
  const SequenceId a = cache.New(Text(1, 6));
  const SequenceId b = cache.New(Text(2, 4));
  const std::vector<TokenId> tokens = Text(3, 3);
  StepRequest drafts = StepRequest::Extend(b, TokenCount(0));
  drafts.lookahead = TokenCount(2);
  const StepId step = cache.Step({StepRequest::Extend(a, tokens), drafts});
  std::vector<int64_t> slots(6, kUntouched);
  ASSERT_TRUE(
      cache->ExportSlotMapping(step, GroupId(0), absl::MakeSpan(slots)).ok());
  const auto slot = [&](SequenceId id, uint32_t position) {
    return int64_t{cache.Table(id)[position / 4].value()} * 4 + position % 4;
  };
  EXPECT_EQ(slots, (std::vector<int64_t>{slot(a, 6), slot(a, 7), slot(a, 8),
                                         slot(b, 4), slot(b, 5), kUntouched}));
  std::vector<int64_t> short_by_one(4, kUntouched);
  EXPECT_EQ(
      cache->ExportSlotMapping(step, GroupId(0), absl::MakeSpan(short_by_one))
          .code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(short_by_one[0], kUntouched);
  cache.Retire(step);
}

TEST(PageTableTest, PaddedRowsHoldTheSamePages) {
  CacheScript cache(PoolOptions(32, 4, /*window=*/8));
  const SequenceId a = cache.New(Text(1, 21));
  const SequenceId b = cache.New(Text(2, 2));
  const StepId step = cache.Step({StepRequest::Extend(a, TokenCount(1)),
                                  StepRequest::Extend(b, TokenCount(1))});
  const PageTableSize size = *cache->TableSize(step, GroupId(0));
  EXPECT_EQ(size.pages_per_row, 3u);
  Arrays csr(2, size.pages, 0);
  ASSERT_TRUE(cache->ExportPageTable(step, GroupId(0), csr.Buffers()).ok());
  const size_t width = size.pages_per_row + 1;
  std::vector<int32_t> pages(2 * width + 1, kUntouched), tokens(2), first(2);
  PaddedPageTableBuffers buffers{absl::MakeSpan(pages), absl::MakeSpan(tokens),
                                 absl::MakeSpan(first),
                                 static_cast<int32_t>(width), /*padding=*/31};
  ASSERT_TRUE(cache->ExportPaddedPageTable(step, GroupId(0), buffers).ok());
  EXPECT_EQ(tokens, (std::vector<int32_t>{22, 3}));
  EXPECT_EQ(first, csr.first);
  EXPECT_EQ(pages,
            (std::vector<int32_t>{csr.pages[0], csr.pages[1], csr.pages[2], 31,
                                  csr.pages[3], 31, 31, 31, kUntouched}));
  // Too narrow, negative, too short.
  for (int32_t bad : {2, 0, -1}) {
    buffers.width = bad;
    EXPECT_EQ(cache->ExportPaddedPageTable(step, GroupId(0), buffers).code(),
              absl::StatusCode::kInvalidArgument);
  }
  buffers.width = static_cast<int32_t>(width);
  buffers.page_indices = absl::MakeSpan(pages).first(2 * width - 1);
  EXPECT_EQ(cache->ExportPaddedPageTable(step, GroupId(0), buffers).code(),
            absl::StatusCode::kInvalidArgument);
  buffers.page_indices = absl::MakeSpan(pages);
  buffers.tokens = absl::MakeSpan(tokens).first(1);
  EXPECT_EQ(cache->ExportPaddedPageTable(step, GroupId(0), buffers).code(),
            absl::StatusCode::kInvalidArgument);
  buffers.tokens = absl::MakeSpan(tokens);
  buffers.first_token = absl::MakeSpan(first).first(1);
  EXPECT_EQ(cache->ExportPaddedPageTable(step, GroupId(0), buffers).code(),
            absl::StatusCode::kInvalidArgument);
  cache.Retire(step);
}

TEST(PageTableTest, AnArrayThatIsTooShortIsNamedAndNothingIsWritten) {
  CacheScript cache(32, 4);
  const SequenceId a = cache.New(Text(1, 9));
  const StepId step = cache.Step({StepRequest::Extend(a, TokenCount(1))});
  for (int which = 0; which < 4; ++which) {
    Arrays arrays(1, 3, 0);
    PageTableBuffers buffers = arrays.Buffers();
    const char* names[] = {"indptr", "page_indices", "last_page_tokens",
                           "first_token"};
    absl::Span<int32_t>* spans[] = {&buffers.indptr, &buffers.page_indices,
                                    &buffers.last_page_tokens,
                                    &buffers.first_token};
    spans[which]->remove_suffix(1);
    const auto table = cache->ExportPageTable(step, GroupId(0), buffers);
    EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(table.status().message().find(names[which]),
              absl::string_view::npos)
        << table.status();
    EXPECT_EQ(arrays.pages[0], kUntouched);
    EXPECT_EQ(arrays.indptr[0], kUntouched);
  }
  Arrays arrays(1, 3, 0);
  EXPECT_EQ(cache
                ->ExportPageTable(step, GroupId(0), arrays.Buffers(),
                                  static_cast<Tier>(7))
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->ExportPageTable(step, GroupId(1), arrays.Buffers())
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  cache.Retire(step);
  EXPECT_EQ(cache->ExportPageTable(step, GroupId(0), arrays.Buffers())
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

TEST(PageTableTest, SequencesMayBeExportedInAnyOrderAtAnyTime) {
  CacheScript cache(32, 4);
  const SequenceId a = cache.New(Text(1, 9));
  const SequenceId b = cache.New(Text(2, 3));
  const std::vector<SequenceId> ids = {b, a, b};
  const PageTableSize size = *cache->TableSize(ids, GroupId(0));
  EXPECT_EQ(size.sequences, 3u);
  EXPECT_EQ(size.pages, 5u);
  Arrays arrays(3, 5, 0);
  const auto table = cache->ExportPageTable(ids, GroupId(0), arrays.Buffers());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->SequenceTokens(0), 3);
  EXPECT_EQ(table->SequenceTokens(1), 9);
  EXPECT_EQ(arrays.pages[0], arrays.pages[4]);
  EXPECT_EQ(arrays.pages[0], static_cast<int32_t>(cache.Table(b)[0].value()));
  cache.Free(a);
  EXPECT_EQ(cache->TableSize(ids, GroupId(0)).status().code(),
            absl::StatusCode::kNotFound);
  // No sequences at all.
  Arrays none(0, 0, 0);
  const auto empty = cache->ExportPageTable(absl::Span<const SequenceId>(),
                                            GroupId(0), none.Buffers());
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->num_sequences(), 0u);
  EXPECT_EQ(none.indptr[0], 0);
}

}  // namespace
}  // namespace paged_kv

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "attention/plan_checks_internal.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::attention::internal {
namespace {

absl::Status CheckHeadDim(const char* field, uint32_t value) {
  if (value % kHeadDimMultiple == 0 && value <= kMaxHeadDim) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("BlockShape::", field, " is ", value,
                   ", the attention kernels take multiples of ",
                   kHeadDimMultiple, " up to ", kMaxHeadDim));
}

absl::Status CheckTableArrays(const PageTable& table) {
  const size_t n = table.num_sequences();
  if (table.indptr.size() != n + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("PageTable::indptr has ", table.indptr.size(),
                     " entries for ", n, " sequences, must have ", n + 1));
  }
  if (table.first_token.size() != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("PageTable::first_token has ", table.first_token.size(),
                     " entries for ", n, " sequences"));
  }
  if (table.sink_pages < 0) {
    return absl::InvalidArgumentError(absl::StrCat("PageTable::sink_pages is ",
                                                   table.sink_pages,
                                                   ", must not fall below 0"));
  }
  if (table.indptr[0] < 0) {
    return absl::InvalidArgumentError(absl::StrCat("PageTable::indptr[0] is ",
                                                   table.indptr[0],
                                                   ", must not fall below 0"));
  }
  for (size_t i = 0; i < n; ++i) {
    if (table.indptr[i] > table.indptr[i + 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("PageTable::indptr falls from ", table.indptr[i], " to ",
                       table.indptr[i + 1], " at sequence ", i));
    }
  }
  if (static_cast<size_t>(table.indptr[n]) > table.page_indices.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PageTable::indptr ends at ", table.indptr[n], ", but there are ",
        table.page_indices.size(), " page indices"));
  }
  return absl::OkStatus();
}

absl::Status CheckSequence(const PageTable& table, size_t i) {
  const int32_t pages = table.indptr[i + 1] - table.indptr[i];
  const int32_t last = table.last_page_tokens[i];
  if (pages == 0 ? last != 0 : last < 1 || last > table.block_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("PageTable::last_page_tokens[", i, "] is ", last, " for ",
                     pages, " pages of ", table.block_tokens, " tokens"));
  }
  const int32_t first = table.first_token[i];
  if (first < 0 || first % table.block_tokens != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("PageTable::first_token[", i, "] is ", first,
                     ", not a multiple of ", table.block_tokens));
  }
  if (first == 0) return absl::OkStatus();
  if (pages < table.sink_pages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sequence ", i, " starts at token ", first, " behind ",
        table.sink_pages, " sink pages, but has only ", pages, " pages"));
  }
  if (first / table.block_tokens < table.sink_pages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PageTable::first_token[", i, "] is ", first, ", inside the ",
        table.sink_pages, " sink pages of ", table.block_tokens, " tokens"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckHeads(const BlockShape& shape, uint32_t query_heads) {
  if (query_heads == 0 || query_heads % shape.kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(query_heads, " query heads are not a multiple of ",
                     shape.kv_heads, " KV heads"));
  }
  constexpr uint32_t kMaxQueryHeads = 1u << 16;
  if (query_heads > kMaxQueryHeads) {
    return absl::InvalidArgumentError(absl::StrCat(
        query_heads, " query heads are more than ", kMaxQueryHeads));
  }
  return absl::OkStatus();
}

absl::Status CheckKernelShape(const BlockShape& shape) {
  PAGED_KV_RETURN_IF_ERROR(CheckHeadDim("head_dim", shape.head_dim));
  return CheckHeadDim("v_head_dim", shape.VHeadDim());
}

absl::Status CheckPageTable(const KvPages& pages, const PageTable& table) {
  if (table.block_tokens < 1 ||
      static_cast<uint32_t>(table.block_tokens) != pages.shape.block_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("PageTable::block_tokens is ", table.block_tokens,
                     ", but pages hold ", pages.shape.block_tokens));
  }
  PAGED_KV_RETURN_IF_ERROR(CheckTableArrays(table));
  for (size_t i = 0; i < table.num_sequences(); ++i) {
    PAGED_KV_RETURN_IF_ERROR(CheckSequence(table, i));
  }
  for (int32_t j = table.indptr.front(); j < table.indptr.back(); ++j) {
    const int32_t page = table.page_indices[j];
    if (page < 0 || static_cast<uint32_t>(page) >= pages.num_pages) {
      return absl::InvalidArgumentError(
          absl::StrCat("PageTable::page_indices[", j, "] is ", page,
                       ", outside the ", pages.num_pages, " pages"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckQueries(const PageTable& table,
                          absl::Span<const int32_t> qo_indptr) {
  const size_t n = table.num_sequences();
  if (qo_indptr.size() != n + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("qo_indptr has ", qo_indptr.size(), " entries for ", n,
                     " sequences, must have ", n + 1));
  }
  if (qo_indptr[0] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("qo_indptr[0] is ", qo_indptr[0], ", must be 0"));
  }
  for (size_t i = 0; i < n; ++i) {
    if (qo_indptr[i] > qo_indptr[i + 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("qo_indptr falls from ", qo_indptr[i], " to ",
                       qo_indptr[i + 1], " at sequence ", i));
    }
    const int64_t queries = qo_indptr[i + 1] - qo_indptr[i];
    if (queries > table.SequenceTokens(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", i, " has ", queries, " queries, but only ",
                       table.SequenceTokens(i), " tokens"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWindow(const PageTable& table, size_t i,
                         int64_t first_position,
                         const AttentionOptions& options) {
  const int64_t kept = int64_t{table.sink_pages} * table.block_tokens;
  const int64_t first_token = table.first_token[i];
  if (first_token <= kept) return absl::OkStatus();  // nothing is missing
  // Positions kept .. first_token - 1 are gone.
  const int64_t needed =
      options.window == 0
          ? 0
          : std::max<int64_t>(0, first_position + 1 - options.window);
  if (needed < first_token) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence ", i, " has a query at position ",
                     first_position, " with a window of ", options.window,
                     " (0: all tokens), but its tokens ", kept, " to ",
                     first_token - 1, " were released"));
  }
  if (options.sink_tokens > kept) {
    return absl::InvalidArgumentError(absl::StrCat(
        "AttentionOptions::sink_tokens is ", options.sink_tokens,
        ", but sequence ", i, " kept only the first ", kept, " tokens"));
  }
  return absl::OkStatus();
}

absl::Status CheckArray(absl::string_view name, const void* data, size_t size,
                        size_t expected, size_t alignment) {
  if (size != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", size, " elements, must have ", expected));
  }
  if (expected == 0) return absl::OkStatus();
  if (data == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is null"));
  }
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is at 0x", absl::Hex(reinterpret_cast<uintptr_t>(data)),
        ", not a multiple of ", alignment));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::attention::internal

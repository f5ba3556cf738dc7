// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/cache_trace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/table.h"
#include "docs/examples/llm/engine/step_batch.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::tool {
namespace {

// Long tables show their beginning and their end.
constexpr size_t kShownBlocks = 12;

std::string Range(uint64_t first, uint64_t count) {
  if (count == 1) return absl::StrCat(first);
  return absl::StrCat(first, "..", first + count - 1);
}

// "7 8*2 12": block 8 belongs to two sequences.
std::string BlockTableText(const KvCacheManager& cache, SequenceId id) {
  const auto blocks = cache.BlockTable(id, llm::kAllLayers);
  if (!blocks.ok()) return "given up; full ones stay cached";
  std::string text;
  for (size_t i = 0; i < blocks->size(); ++i) {
    if (blocks->size() > kShownBlocks && i == kShownBlocks / 2) {
      i = blocks->size() - kShownBlocks / 2;
      absl::StrAppend(&text, "... ");
    }
    const BlockId block = (*blocks)[i];
    const uint32_t owners = cache.RefCount(llm::kAllLayers, block);
    absl::StrAppend(&text, block.value());
    if (owners > 1) absl::StrAppend(&text, "*", owners);
    absl::StrAppend(&text, " ");
  }
  return text;
}

// "block 3 slots 4..15, block 9 slot 0".
std::string SlotsText(const KvCacheManager& cache, const WorkItem& item,
                      uint32_t block_tokens) {
  const auto blocks = cache.BlockTable(item.sequence, llm::kAllLayers);
  if (!blocks.ok()) return "(ended)";
  const uint64_t end =
      uint64_t{item.first_new.value()} + item.new_tokens.value();
  std::string text;
  for (uint64_t position = item.first_new.value(); position < end;) {
    const uint64_t slot = position % block_tokens;
    const uint64_t count =
        std::min<uint64_t>(block_tokens - slot, end - position);
    const size_t logical = position / block_tokens;
    if (logical >= blocks->size()) break;
    absl::StrAppend(&text, text.empty() ? "" : ", ", "block ",
                    (*blocks)[logical].value(),
                    count == 1 ? " slot " : " slots ", Range(slot, count));
    position += count;
  }
  return text;
}

}  // namespace

std::string CacheTraceLegend(const llm::ServingEngine& engine) {
  const BlockShape& shape = engine.cache().options().groups[0].shape;
  const uint64_t slices = uint64_t{shape.layers} * shape.kv_heads;
  return absl::StrFormat(
      "cache: %s blocks of %d tokens, %s each (%s). A token takes one slot of "
      "a block:\nits K and V of %d layers x %d KV heads x %d dimensions, %s B "
      "in %s slices. \"8*2\" is\nblock 8, which two sequences share.\n",
      Grouped(engine.cache().PoolBlocks(llm::kAllLayers).value()),
      shape.block_tokens, Grouped(PageBytes(shape).value()) + " B",
      DTypeName(shape.dtype), shape.layers, shape.kv_heads, shape.head_dim,
      Grouped(BytesPerToken(shape).value()), Grouped(2 * slices));
}

std::string CacheTraceStep(const llm::ServingEngine& engine) {
  const KvCacheManager& cache = engine.cache();
  const BlockShape& shape = cache.options().groups[0].shape;
  const CacheStats stats = cache.Stats();
  const PoolStats& pool = stats.pools[0];
  uint64_t computed = 0;
  for (const WorkItem& item : engine.last_items()) {
    computed += item.new_tokens.value() + item.drafts.size();
  }
  std::string text = absl::StrFormat(
      "step %d: %d token%s computed, %s slices of K or V written; blocks: %d "
      "held, %d cached, %d free; slots: %d live, %d tail\n",
      engine.times().steps, computed, computed == 1 ? "" : "s",
      Grouped(2 * computed * shape.layers * shape.kv_heads), pool.held.value(),
      pool.cached.value(), pool.free.value(), pool.slots.live, pool.slots.tail);
  for (const WorkItem& item : engine.last_items()) {
    absl::StrAppendFormat(
        &text, "  request %d.%d %s position %s%s -> %s\n    blocks %s\n",
        item.request.value() + 1, item.sample + 1,  // as answers count them
        item.new_tokens.value() > 1 ? "prefill" : "decode ",
        Range(item.first_new.value(), item.new_tokens.value()),
        item.drafts.empty()
            ? ""
            : absl::StrCat(" and ", item.drafts.size(), " drafts"),
        SlotsText(cache, item, shape.block_tokens),
        BlockTableText(cache, item.sequence));
  }
  return text;
}

}  // namespace paged_kv::tool

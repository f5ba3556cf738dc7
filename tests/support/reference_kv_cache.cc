// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The model's construction, look-ups and numbers. Planning, steps and edits of
// sequences have files of their own.

#include "tests/support/reference_kv_cache.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::testing {
namespace {

constexpr uint64_t kBytesPerExtrasCell = 64;

// Number `value` as four bytes.
std::string FourBytes(uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(value >> shift & 0xFF));
  }
  return bytes;
}

}  // namespace

ReferenceKvCache::ReferenceKvCache(const KvCacheOptions& options)
    : options_(options) {
  // Groups whose pages and blocks are of one size share a pool.
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> pool_of;
  std::vector<std::pair<uint32_t, uint32_t>> pools;  // blocks, block_tokens
  for (const LayerGroup& layers : options.groups) {
    ReferenceGroup group;
    group.block_tokens = layers.shape.block_tokens;
    group.window = layers.window;
    group.sink_blocks =
        layers.window == 0 ? 0 : group.Blocks(layers.sink_tokens);
    const auto key =
        std::make_pair(PageBytes(layers.shape).value(), group.block_tokens);
    const auto [it, added] = pool_of.try_emplace(key, pools.size());
    if (added) pools.emplace_back(0, group.block_tokens);
    group.pool = it->second;
    pools[group.pool].first += options.host_blocks.value();
    chunk_tokens_ = std::lcm(chunk_tokens_, group.block_tokens);
    groups_.push_back(group);
  }
  uint64_t chunks = 0;
  bool all_windowed = true;
  for (const auto& [blocks, block_tokens] : pools) {
    pools_.emplace_back(blocks, block_tokens);
    chunks = std::max<uint64_t>(chunks, blocks);
  }
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    groups_[g].first_place = static_cast<uint32_t>(places_.size());
    for (uint32_t i = 0; i < chunk_tokens_ / groups_[g].block_tokens; ++i) {
      places_.push_back({g, i});
    }
    all_windowed = all_windowed && groups_[g].window != 0;
  }
  // As many chunks as the largest pool has blocks (twice that where windows
  // may leave chunks without blocks) and one per sequence.
  chunks = (all_windowed ? 2 * chunks : chunks) + options.max_sequences;
  contents_ = std::make_unique<ReferenceContents>(
      places_.size(), chunks, options.index_extra_bytes / kBytesPerExtrasCell);
}

absl::StatusCode ReferenceKvCache::MakeExtras(KeyExtras extras,
                                              size_t prompt_tokens,
                                              ReferenceExtras* by_chunk) const {
  constexpr size_t kFraming = 9;
  size_t bytes = 0;
  for (const KeyExtra& extra : extras) bytes += kFraming + extra.value.size();
  if (bytes > options_.max_extra_bytes_per_sequence) {
    return absl::StatusCode::kInvalidArgument;
  }
  std::vector<std::tuple<uint32_t, int, std::string>> sorted;
  for (const KeyExtra& extra : extras) {
    if (extra.position.value() >= prompt_tokens) {
      return absl::StatusCode::kInvalidArgument;
    }
    sorted.emplace_back(extra.position.value(), static_cast<int>(extra.kind),
                        std::string(extra.value));
  }
  std::sort(sorted.begin(), sorted.end());
  by_chunk->clear();
  for (const auto& [position, kind, value] : sorted) {
    const uint32_t chunk = position / chunk_tokens_;
    if (by_chunk->empty() || by_chunk->back().first != chunk) {
      by_chunk->emplace_back(chunk, "");
    }
    absl::StrAppend(&by_chunk->back().second,
                    std::string(1, static_cast<char>(kind)),
                    FourBytes(position), FourBytes(value.size()), value);
  }
  return absl::StatusCode::kOk;
}

namespace {

// What the extras say about one chunk.
absl::string_view ExtrasOf(const ReferenceExtras& extras, uint32_t chunk) {
  for (const auto& [at, bytes] : extras) {
    if (at == chunk) return bytes;
  }
  return "";
}

}  // namespace

// True if a sequence could go on behind `tip`, a prefix of `tokens` tokens: in
// every group the blocks that it attends to, and the sinks, have a copy.
bool ReferenceKvCache::Usable(const ReferenceContent* tip,
                              uint32_t tokens) const {
  for (uint32_t chunk = tokens / chunk_tokens_; chunk-- > 0;) {
    for (const ReferenceGroup& group : groups_) {
      const uint32_t per_chunk = chunk_tokens_ / group.block_tokens;
      for (uint32_t i = 0; i < per_chunk; ++i) {
        const uint32_t logical = chunk * per_chunk + i;
        if (logical >= group.sink_blocks &&
            logical < group.FirstNeeded(tokens)) {
          continue;
        }
        if (tip->copies[group.first_place + i].empty()) return false;
      }
    }
    tip = tip->parent;
  }
  return true;
}

ReferenceKvCache::Hit ReferenceKvCache::FindPrefix(
    absl::Span<const TokenId> prompt, const ReferenceExtras& extras) const {
  Hit best{0, contents_->root()};
  if (!options_.prefix_caching || prompt.empty()) return best;
  // At least one token is left to compute.
  const auto chunks =
      static_cast<uint32_t>((prompt.size() - 1) / chunk_tokens_);
  std::vector<ReferenceContent*> path = {contents_->root()};
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    ReferenceContent* next = ReferenceContents::Find(
        path.back(),
        {prompt.subspan(size_t{chunk} * chunk_tokens_, chunk_tokens_),
         ExtrasOf(extras, chunk)});
    if (next == nullptr) break;
    path.push_back(next);
  }
  for (; path.size() > 1; path.pop_back()) {
    const auto tokens = static_cast<uint32_t>(path.size() - 1) * chunk_tokens_;
    if (Usable(path.back(), tokens)) return {tokens, path.back()};
  }
  return best;
}

absl::StatusCode ReferenceKvCache::Lookup(absl::Span<const TokenId> prompt,
                                          KeyExtras extras, Hit* hit) {
  ReferenceExtras by_chunk;
  const absl::StatusCode code = MakeExtras(extras, prompt.size(), &by_chunk);
  if (code != absl::StatusCode::kOk) return code;
  *hit =
      FindPrefix(prompt.subspan(0, options_.max_tokens_per_sequence), by_chunk);
  return code;
}

// Makes shareable what is whole, written and of known values. A sequence whose
// chunk finds no room stops sharing for good.
void ReferenceKvCache::ShareWritten(ReferenceSequence* sequence) {
  const uint32_t ready = std::min<uint32_t>(
      sequence->written, static_cast<uint32_t>(sequence->known.size()));
  while (sequence->share &&
         (sequence->shared_chunks + 1) * chunk_tokens_ <= ready) {
    const uint32_t chunk = sequence->shared_chunks;
    ReferenceContent* content = contents_->FindOrAdd(
        sequence->tip,
        {absl::MakeConstSpan(sequence->known)
             .subspan(size_t{chunk} * chunk_tokens_, chunk_tokens_),
         ExtrasOf(sequence->extras, chunk)});
    if (content == nullptr) {
      ++counters_.unshared_chunks;
      sequence->share = false;
      return;
    }
    contents_->Pin(content);
    contents_->Unpin(sequence->tip);
    sequence->tip = content;
    ++sequence->shared_chunks;
    for (uint32_t place = 0; place < places_.size(); ++place) {
      const uint32_t g = places_[place].group;
      const ReferenceGroup& group = groups_[g];
      const uint32_t block =
          sequence->tables[g]
              .blocks[chunk * (chunk_tokens_ / group.block_tokens) +
                      places_[place].block_in_chunk];
      ReferencePool& pool = pools_[group.pool];
      // A block is shareable as one content only, the first that it was.
      if (block == kNoReferenceBlock || pool[block].content != nullptr) {
        continue;
      }
      const bool only = contents_->Attach(content, place, block);
      pool.SetContent(block, content, place, !only);
      if (only) Emit(CacheEvent::Kind::kStored, place);
    }
  }
}

void ReferenceKvCache::Emit(CacheEvent::Kind kind, uint32_t place) {
  if (options_.event_capacity == 0 || quiet_) return;
  CacheEvent event;
  event.kind = kind;
  if (kind != CacheEvent::Kind::kCleared) {
    event.group = GroupId(places_[place].group);
    event.block_in_chunk = places_[place].block_in_chunk;
    event.tokens = groups_[places_[place].group].block_tokens;
  }
  events_.push_back(event);
  if (events_.size() > options_.event_capacity) {
    events_.pop_front();
    ++counters_.events_dropped;
  }
}

void ReferenceKvCache::DropContent(uint32_t pool, uint32_t block) {
  ReferencePool& blocks = pools_[pool];
  ReferenceContent* content = blocks[block].content;
  const uint32_t place = blocks[block].place;
  uint32_t first = block;
  const bool none_left = contents_->Detach(content, place, block, &first);
  blocks.SetContent(block, nullptr, 0, false);
  if (first != block) blocks.SetDuplicate(first, false);
  if (none_left) {
    Emit(CacheEvent::Kind::kRemoved, place);
    contents_->DropUnneeded(content);
  }
}

const ReferenceSequence* ReferenceKvCache::Find(SequenceId id) const {
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? nullptr : it->second.get();
}

ReferenceSequence* ReferenceKvCache::Mutable(SequenceId id) {
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? nullptr : it->second.get();
}

const ReferenceStep* ReferenceKvCache::FindStep(StepId step) const {
  for (const ReferenceStep& flying : in_flight_) {
    if (flying.id == step) return &flying;
  }
  return nullptr;
}

bool ReferenceKvCache::TablesUnchanged(const ReferenceStep& step) const {
  return std::all_of(step.parts.begin(), step.parts.end(),
                     [this](const ReferenceStep::Part& part) {
                       const ReferenceSequence* sequence = Find(part.id);
                       return sequence != nullptr &&
                              sequence->table_version == part.table_version;
                     });
}

std::vector<PinId> ReferenceKvCache::PinIds() const {
  std::vector<PinId> ids;
  for (const auto& [id, pin] : pins_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

CacheStats ReferenceKvCache::Stats() const {
  CacheStats stats = counters_;
  for (const ReferencePool& pool : pools_) {
    PoolStats numbers;
    numbers.capacity = BlockCount(pool.capacity());
    numbers.held = BlockCount(pool.Count(ReferenceState::kHeld));
    numbers.cached = BlockCount(pool.Count(ReferenceState::kCached));
    numbers.quarantined = BlockCount(pool.Count(ReferenceState::kQuarantined));
    numbers.free = BlockCount(pool.Count(ReferenceState::kFree));
    numbers.slots = pool.slots();
    stats.pools.push_back(numbers);
  }
  stats.sequences = static_cast<uint32_t>(sequences_.size());
  stats.pins = static_cast<uint32_t>(pins_.size());
  stats.steps_in_flight = static_cast<uint32_t>(in_flight_.size());
  return stats;
}

void ReferenceKvCache::DrainEvents(size_t moved) {
  PAGED_KV_CHECK(moved <= events_.size());
  events_.erase(events_.begin(),
                events_.begin() + static_cast<ptrdiff_t>(moved));
}

// Each reference count is the number of table entries that name the block.
std::string ReferenceKvCache::RecountReferences() const {
  std::vector<std::vector<uint32_t>> refs;
  for (const ReferencePool& pool : pools_) {
    refs.emplace_back(pool.capacity(), 0);
  }
  const auto count = [&](const ReferenceSequence& sequence) {
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      for (uint32_t block : sequence.tables[g].blocks) {
        if (block != kNoReferenceBlock) ++refs[groups_[g].pool][block];
      }
    }
  };
  for (const auto& [id, sequence] : sequences_) count(*sequence);
  for (const auto& [id, pin] : pins_) count(*pin);
  for (uint32_t p = 0; p < pools_.size(); ++p) {
    for (uint32_t block = 0; block < pools_[p].capacity(); ++block) {
      if (refs[p][block] != pools_[p][block].refs) {
        return absl::StrCat("model: block ", block, " of pool ", p, " counts ",
                            pools_[p][block].refs, " references, tables have ",
                            refs[p][block]);
      }
    }
  }
  return "";
}

std::string ReferenceKvCache::Recount() const {
  for (const ReferencePool& pool : pools_) {
    if (std::string error = pool.Recount(); !error.empty()) return error;
  }
  return RecountReferences();
}

}  // namespace paged_kv::testing

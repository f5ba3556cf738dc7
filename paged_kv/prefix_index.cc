// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/prefix_index.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {

absl::Status PrefixIndex::Create(const Config& config) {
  chunk_tokens_ = config.chunk_tokens;
  places_ = config.places;
  place_count_ = static_cast<uint32_t>(places_.size());
  hash_ = config.hash;
  seed_ = config.seed;
  const size_t entries = size_t{config.nodes} + 1;
  PAGED_KV_RETURN_IF_ERROR(nodes_.Create(entries));
  PAGED_KV_RETURN_IF_ERROR(heads_.Create(entries * (place_count_ - 1)));
  PAGED_KV_RETURN_IF_ERROR(tokens_.Create(entries * chunk_tokens_));
  PAGED_KV_RETURN_IF_ERROR(buckets_.Create(entries));
  PAGED_KV_RETURN_IF_ERROR(extras_.Create(config.extra_bytes));
  PAGED_KV_RETURN_IF_ERROR(events_.Create(config.event_capacity));
  if (events_.enabled()) {
    PAGED_KV_RETURN_IF_ERROR(digests_.Create(entries));
    digests_[0] = digest_chain_.Root(config.digest_domain);
  }
  return absl::OkStatus();
}

uint32_t PrefixIndex::ChunkTag(uint32_t parent, const TokenId* tokens,
                               absl::string_view extras) const {
  uint64_t hash =
      hash_(seed_ + parent, tokens, chunk_tokens_ * sizeof(TokenId));
  if (!extras.empty()) hash = hash_(hash, extras.data(), extras.size());
  return static_cast<uint32_t>(hash >> 32);
}

void PrefixIndex::Advance(Probe* probe) const {
  if (probe->in_chain && nodes_[probe->node].tag == probe->tag) {
    PrefetchLine(Tokens(probe->node));
    const BlockId first = First(probe->node, 0);
    if (first != kNoBlock) places_[0].pool->Prefetch(first);
    return;
  }
  probe->node =
      probe->in_chain ? nodes_[probe->node].next : buckets_[Bucket(probe->tag)];
  probe->in_chain = true;
  PrefetchLine(&nodes_.data()[probe->node]);
}

uint32_t PrefixIndex::FindNode(uint32_t tag, const TokenId* tokens,
                               absl::string_view extras,
                               ContentSerial parent) const {
  for (uint32_t node = buckets_[Bucket(tag)]; node != 0;
       node = nodes_[node].next) {
    if (nodes_[node].tag == tag &&
        nodes_[nodes_[node].parent].serial == parent &&
        std::memcmp(Tokens(node), tokens, chunk_tokens_ * sizeof(TokenId)) ==
            0 &&
        extras_.Equals(nodes_[node].extras, extras)) {
      return node;
    }
  }
  return 0;
}

bool PrefixIndex::Find(uint32_t tag, const TokenId* tokens,
                       absl::string_view extras, PrefixCursor* cursor) const {
  const uint32_t node = FindNode(tag, tokens, extras, cursor->serial);
  if (node == 0) return false;
  *cursor = {node, nodes_[node].serial};
  return true;
}

bool PrefixIndex::FindOrAdd(uint32_t tag, const TokenId* tokens,
                            absl::string_view extras, PrefixCursor* cursor) {
  if (Find(tag, tokens, extras, cursor)) return true;
  PAGED_KV_CHECK(nodes_[cursor->node].serial == cursor->serial);
  const uint32_t node = AddNode(tag, tokens, extras, cursor->node);
  if (node == 0) return false;
  *cursor = {node, nodes_[node].serial};
  return true;
}

uint32_t PrefixIndex::AddNode(uint32_t tag, const TokenId* tokens,
                              absl::string_view extras, uint32_t parent) {
  const bool recycled = free_list_ != 0;
  if (!recycled && never_used_ == nodes_.size()) return 0;
  uint32_t extras_id = 0;
  if (!extras.empty()) {
    extras_id = extras_.Add(extras);
    if (extras_id == 0) return 0;
  }
  const uint32_t id = recycled ? free_list_ : never_used_;
  Node& node = nodes_[id];
  if (recycled) {
    free_list_ = node.next;
  } else {
    ++never_used_;
  }
  node = Node{};
  node.serial = ContentSerial(++last_serial_);
  node.parent = parent;
  node.tag = tag;
  node.extras = extras_id;
  // Last in its bucket: evictions mostly take the oldest, and find it first.
  uint32_t* link = &buckets_[Bucket(tag)];
  while (*link != 0) link = &nodes_[*link].next;
  *link = id;
  std::memcpy(Tokens(id), tokens, chunk_tokens_ * sizeof(TokenId));
  if (parent != 0) ++nodes_[parent].refs;
  if (events_.enabled()) {
    digests_[id] = digest_chain_.Extend(digests_[parent], extras,
                                        absl::MakeSpan(tokens, chunk_tokens_));
  }
  ++size_;
  return id;
}

void PrefixIndex::Pin(uint32_t node) {
  if (node != 0) ++nodes_[node].refs;
}

void PrefixIndex::Unpin(uint32_t node) {
  if (node == 0) return;
  PAGED_KV_CHECK(nodes_[node].refs > 0);
  --nodes_[node].refs;
  DropUnused(node);
}

void PrefixIndex::Attach(uint32_t node, uint32_t place, BlockId block) {
  BlockPool& pool = *places_[place].pool;
  uint32_t& head = Head(node, place);
  if (head == 0) {
    pool.AttachFirst(block, node);
    head = block.value() + 1;
    Emit(CacheEvent::Kind::kStored, node, place);
  } else {
    pool.AttachBehind(block, BlockId(head - 1));
  }
}

void PrefixIndex::Detach(BlockPool* pool, BlockId block) {
  const uint32_t node = pool->meta(block).node;
  bool was_first = false;
  const BlockId next = pool->Detach(block, &was_first);
  if (!was_first) return;
  const uint32_t place = PlaceOf(node, pool, block);
  Head(node, place) = next.value() + 1;
  if (next != kNoBlock) return;
  Emit(CacheEvent::Kind::kRemoved, node, place);
  DropUnused(node);
}

uint32_t PrefixIndex::PlaceOf(uint32_t node, const BlockPool* pool,
                              BlockId block) const {
  for (uint32_t place = 0; place < places(); ++place) {
    if (places_[place].pool == pool && First(node, place) == block) {
      return place;
    }
  }
  PAGED_KV_CHECK(false);
}

bool PrefixIndex::Unused(uint32_t node) const {
  if (nodes_[node].refs != 0 || nodes_[node].head != 0) return false;
  for (uint32_t place = 1; place < places(); ++place) {
    if (First(node, place) != kNoBlock) return false;
  }
  return true;
}

void PrefixIndex::DropUnused(uint32_t node) {
  while (node != 0 && Unused(node)) {
    const uint32_t parent = nodes_[node].parent;
    Unlink(node);
    extras_.Remove(nodes_[node].extras);
    nodes_[node].next = free_list_;
    free_list_ = node;
    --size_;
    if (parent != 0) --nodes_[parent].refs;
    node = parent;
  }
}

void PrefixIndex::Unlink(uint32_t node) {
  uint32_t* link = &buckets_[Bucket(nodes_[node].tag)];
  while (*link != node) {
    PAGED_KV_CHECK(*link != 0);
    link = &nodes_[*link].next;
  }
  *link = nodes_[node].next;
}

void PrefixIndex::Emit(CacheEvent::Kind kind, uint32_t node, uint32_t place) {
  if (!events_.enabled() || quiet_) return;
  CacheEvent event;
  event.kind = kind;
  event.group = places_[place].group;
  event.block_in_chunk = places_[place].block_in_chunk;
  event.tokens = places_[place].block_tokens;
  event.digest = digests_[node];
  const uint32_t parent = nodes_[node].parent;
  if (parent != 0) event.parent = digests_[parent];
  events_.Push(event);
}

uint64_t PrefixIndex::BytesPerNode() const {
  return sizeof(Node) + sizeof(uint32_t) * (place_count_ - 1) +
         sizeof(uint32_t);  // a bucket
}

absl::Status PrefixIndex::CheckInvariants(uint64_t pins) const {
  std::vector<uint32_t> children(never_used_, 0);
  uint64_t refs = 0;
  uint32_t found = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (uint32_t node = buckets_[bucket]; node != 0;
         node = nodes_[node].next) {
      if (++found > size_ || Bucket(nodes_[node].tag) != bucket) {
        return absl::InternalError(
            absl::StrCat("bucket ", bucket, " reaches node ", node,
                         " as entry ", found, " of ", size_));
      }
      if (Unused(node)) {
        return absl::InternalError(
            absl::StrCat("node ", node, " is kept by nothing"));
      }
      ++children[nodes_[node].parent];
      refs += nodes_[node].refs;
      for (uint32_t place = 0; place < places(); ++place) {
        const BlockPool& pool = *places_[place].pool;
        uint32_t previous = 0;
        for (BlockId block = First(node, place); block != kNoBlock;
             block = BlockId(pool.meta(block).copy_next - 1)) {
          const BlockMeta& meta = pool.meta(block);
          if (meta.node != node || meta.copy_prev != previous) {
            return absl::InternalError(
                absl::StrCat("block ", block.value(), " is listed under node ",
                             node, " but names node ", meta.node));
          }
          previous = block.value() + 1;
        }
      }
    }
  }
  if (found != size_) {
    return absl::InternalError(
        absl::StrCat("buckets hold ", found, " of ", size_, " nodes"));
  }
  uint64_t parents = 0;
  for (uint32_t node = 1; node < never_used_; ++node) {
    parents += children[node];
    if (children[node] > nodes_[node].refs) {
      return absl::InternalError(absl::StrCat("node ", node, " has ",
                                              children[node], " children, ",
                                              nodes_[node].refs, " refs"));
    }
  }
  if (refs != parents + pins) {
    return absl::InternalError(absl::StrCat("index has ", refs, " refs for ",
                                            parents, " children and ", pins,
                                            " pins"));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_PREFIX_INDEX_H_
#define PAGED_KV_PREFIX_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "paged_kv/block_pool.h"
#include "paged_kv/cache_event.h"
#include "paged_kv/content_digest.h"
#include "paged_kv/event_ring.h"
#include "paged_kv/extras_store.h"
#include "paged_kv/kv_cache_options.h"
#include "paged_kv/lazy_array.h"
#include "paged_kv/prefetch.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// A place in the tree of known prefixes: the node of a prefix's last chunk.
struct PrefixCursor {
  uint32_t node = 0;  // 0: the empty prefix
  ContentSerial serial;
};

// The tree of prefixes whose K/V exists. A node is one chunk (the shortest run
// of tokens that is whole blocks in every group) behind its parent; it keeps
// the chunk's tokens and lists, for every place of a block in the chunk, the
// blocks that hold its K/V. A node lives while it has a block, a child or a
// pin, so the windowed groups' chains survive the release of early blocks.
//
// A look-up compares parent serial, extras and tokens; the hash only finds
// candidates. Chained hashing with the buckets and links in fixed arrays: no
// rehash, no tombstones, no allocation.
//
// Thread safety: thread-compatible.
class PrefixIndex {
 public:
  // Names one list of blocks per node.
  struct Place {
    GroupId group;
    uint32_t block_in_chunk = 0;
    BlockPool* pool = nullptr;  // borrowed
    uint32_t block_tokens = 0;
  };

  struct Config {
    uint32_t nodes = 0;
    uint32_t chunk_tokens = 0;
    std::vector<Place> places;
    HashFunction hash = nullptr;
    uint64_t seed = 0;
    uint32_t extra_bytes = 0;
    uint32_t event_capacity = 0;
    absl::string_view digest_domain;
  };

  absl::Status Create(const Config& config);

  uint32_t chunk_tokens() const { return chunk_tokens_; }

  // Hash of a prefix that continues one of hash `parent` (0: the empty one) by
  // `tokens` [chunk_tokens]. `extras`: canonical frames of this chunk.
  uint32_t ChunkTag(uint32_t parent, const TokenId* tokens,
                    absl::string_view extras) const;
  uint32_t TagOf(uint32_t node) const { return nodes_[node].tag; }

  // A Find() that is still to come. Each Advance() goes one step along its way
  // and asks for what the next step, or at last Find(), reads.
  struct Probe {
    uint32_t tag;
    uint32_t node;
    bool in_chain;
  };
  Probe StartProbe(uint32_t tag) const {
    PrefetchLine(&buckets_.data()[Bucket(tag)]);
    return {tag, 0, false};
  }
  void Advance(Probe* probe) const;

  // Moves `*cursor` to its child with this chunk; false if there is none.
  bool Find(uint32_t tag, const TokenId* tokens, absl::string_view extras,
            PrefixCursor* cursor) const;
  // The same, making the child if needed; false if there is no room. A new
  // node has neither blocks nor pins: attach or pin before anything else.
  bool FindOrAdd(uint32_t tag, const TokenId* tokens, absl::string_view extras,
                 PrefixCursor* cursor);

  // Keeps a node alive without a block. The root needs no pin.
  void Pin(uint32_t node);
  void Unpin(uint32_t node);

  // First block of a node's place; kNoBlock if it has none.
  BlockId First(uint32_t node, uint32_t place) const {
    return BlockId(
        (place == 0 ? nodes_[node].head : heads_[HeadIndex(node, place)]) - 1);
  }
  uint32_t places() const { return place_count_; }

  // Lists a full, held block under a node, as the last choice of a hit.
  void Attach(uint32_t node, uint32_t place, BlockId block);
  // Takes a block off its list; drops the node if nothing is left of it.
  void Detach(BlockPool* pool, BlockId block);

  PrefixCursor Parent(const PrefixCursor& cursor) const {
    const uint32_t parent = nodes_[cursor.node].parent;
    return {parent, nodes_[parent].serial};
  }

  // Loads what evicting a block of this node and adding another in its place
  // will touch: first the node, then what the node names.
  void PrefetchNode(uint32_t node) const {
    PrefetchLine(&nodes_.data()[node]);
    PrefetchLine(Tokens(node));
    if (place_count_ > 1) {
      PrefetchLine(&heads_.data()[HeadIndex(node, 1)]);
    }
  }
  void PrefetchLinks(uint32_t node) const {
    PrefetchLine(&buckets_.data()[Bucket(nodes_[node].tag)]);
    PrefetchLine(&nodes_.data()[nodes_[node].parent]);
  }
  void PrefetchChain(uint32_t node) const {
    PrefetchLine(&nodes_.data()[buckets_[Bucket(nodes_[node].tag)]]);
  }
  // The three for blocks of these nodes that will be evicted in this order, one
  // stage each time it is called. The trail starts with zeroes.
  struct EvictionTrail {
    uint32_t nodes[2] = {};
  };
  void PrefetchEviction(uint32_t node, EvictionTrail* trail) const {
    PrefetchNode(node);
    PrefetchLinks(trail->nodes[0]);
    PrefetchChain(trail->nodes[1]);
    trail->nodes[1] = trail->nodes[0];
    trail->nodes[0] = node;
  }

  EventRing& events() { return events_; }
  const EventRing& events() const { return events_; }
  // Detaches without events, for a Reset that says so once.
  void set_quiet(bool quiet) { quiet_ = quiet; }

  uint32_t size() const { return size_; }
  uint32_t capacity() const { return static_cast<uint32_t>(nodes_.size()) - 1; }
  uint64_t BytesPerNode() const;

  // O(nodes + attached blocks). `pins`: pins that callers hold.
  absl::Status CheckInvariants(uint64_t pins) const;

 private:
  // Half a cache line, which it never straddles.
  struct alignas(32) Node {
    ContentSerial serial;
    uint32_t parent;
    uint32_t next;    // in its bucket, or on the free list; 0: end
    uint32_t tag;     // hash of the prefix, chained from chunk to chunk
    uint32_t refs;    // children and pins
    uint32_t extras;  // ExtrasStore id
    uint32_t head;    // first block of place 0, id + 1; 0: none
  };
  static_assert(sizeof(Node) == 32, "the budget of docs/design.md");

  size_t Bucket(uint32_t tag) const {
    return static_cast<size_t>(uint64_t{tag} * buckets_.size() >> 32);
  }
  // REQUIRES: place > 0.
  size_t HeadIndex(uint32_t node, uint32_t place) const {
    return size_t{node} * (place_count_ - 1) + place - 1;
  }
  uint32_t& Head(uint32_t node, uint32_t place) {
    return place == 0 ? nodes_[node].head : heads_[HeadIndex(node, place)];
  }
  TokenId* Tokens(uint32_t node) {
    return tokens_.data() + size_t{node} * chunk_tokens_;
  }
  const TokenId* Tokens(uint32_t node) const {
    return tokens_.data() + size_t{node} * chunk_tokens_;
  }
  uint32_t FindNode(uint32_t tag, const TokenId* tokens,
                    absl::string_view extras, ContentSerial parent) const;
  uint32_t AddNode(uint32_t tag, const TokenId* tokens,
                   absl::string_view extras, uint32_t parent);
  bool Unused(uint32_t node) const;
  // Frees the node, then its ancestors, as far as nothing keeps them.
  void DropUnused(uint32_t node);
  void Unlink(uint32_t node);
  uint32_t PlaceOf(uint32_t node, const BlockPool* pool, BlockId block) const;
  void Emit(CacheEvent::Kind kind, uint32_t node, uint32_t place);

  uint32_t chunk_tokens_ = 0;
  std::vector<Place> places_;
  uint32_t place_count_ = 0;
  HashFunction hash_ = nullptr;
  uint64_t seed_ = 0;

  // Indexed by node; entry 0 is the root.
  LazyArray<Node> nodes_;
  LazyArray<uint32_t> heads_;         // [node][places - 1]: from place 1 on
  LazyArray<TokenId> tokens_;         // [node][chunk_tokens]
  LazyArray<uint32_t> buckets_;       // first node
  LazyArray<ContentDigest> digests_;  // only with events
  ExtrasStore extras_;
  uint32_t free_list_ = 0;
  uint32_t never_used_ = 1;
  uint32_t size_ = 0;
  uint64_t last_serial_ = 0;

  DigestChain digest_chain_;
  EventRing events_;
  bool quiet_ = false;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_PREFIX_INDEX_H_

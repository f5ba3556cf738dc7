// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_KV_CACHE_OPTIONS_H_
#define PAGED_KV_KV_CACHE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/eviction_policy.h"
#include "paged_kv/types.h"

namespace paged_kv {

class OpLog;

inline constexpr uint32_t kMaxGroups = 64;

// Who owns the bytes of K and V.
enum class MemoryMode : uint8_t {
  kMetadataOnly,  // the engine; the manager only hands out page indices
  kCallerMemory,  // the engine, described by KvCacheOptions::layouts
  kOwnMemory,     // the manager: host memory, 2 MiB-aligned from 2 MiB on
};

// Pages on a device, beside those in host memory. Off by default.
struct DeviceTierOptions {
  // Pages per group; a pool shared by k groups has k times as many. 0: no
  // device. At most host_blocks: each page belongs to a block.
  BlockCount pages{0};
  // Parts that the device's memory is divided into. Block i of a sequence has
  // its page in split i % splits, and each split has a range of pages of its
  // own: [s * n / splits, (s + 1) * n / splits) of a pool's n pages. `pages`
  // must be a multiple.
  uint32_t splits = 1;
  // SwapIn leaves at least this many pages of each split for the growth of
  // sequences on the device; growth itself may use them.
  BlockCount watermark_pages{0};
};

// 64-bit hash of `bytes` bytes at `data`. A collision costs a comparison,
// never a wrong hit.
using HashFunction = uint64_t (*)(uint64_t seed, const void* data,
                                  size_t bytes);

// Everything is bounded here; a manager never grows after Create().
struct KvCacheOptions {
  // ---- What the cache holds ----

  // Layer groups of the model; 1 to kMaxGroups. Groups whose page size and
  // block length agree share one pool.
  std::vector<LayerGroup> groups;
  // Blocks per group. A pool shared by k groups has k times as many.
  BlockCount host_blocks{0};
  uint32_t max_sequences = 256;  // living at once
  uint32_t max_tokens_per_sequence = 32768;
  // Committed and not yet retired; 1 for synchronous engines.
  uint32_t max_steps_in_flight = 2;
  DeviceTierOptions device;

  // ---- Behaviour ----

  // Share K/V between sequences with equal prefixes.
  bool prefix_caching = true;
  // Admissions leave at least this many blocks of each pool for the growth of
  // running sequences; growth itself may use them.
  BlockCount watermark_blocks{0};
  // Order in which cached blocks give way. Default: LRU within priorities.
  EvictionPolicyFactory eviction = nullptr;
  // Bytes of key extras per sequence, framing (9 bytes each) included.
  uint32_t max_extra_bytes_per_sequence = 512;
  // Bytes of key extras of cached blocks over the whole index. A prefix that
  // finds no room is not shared (CacheStats::unshared_chunks).
  uint32_t index_extra_bytes = 1u << 20;
  // Pins living at once (KvCacheManager::Pin).
  uint32_t max_pins = 16;
  // KV events kept until drained; 0: no events and no digests.
  uint32_t event_capacity = 0;
  // Starts every digest chain: model, weights version, dtype, whatever makes
  // K/V of equal tokens differ between deployments.
  std::string digest_domain;

  // ---- Memory ----

  MemoryMode memory = MemoryMode::kMetadataOnly;
  // kCallerMemory: one per group, with host_blocks pages each (all pages of
  // the pool for groups that share one).
  std::vector<PageLayout> layouts;
  int numa_node = -1;  // kOwnMemory; -1: the kernel's choice

  // ---- Performance and diagnosis ----

  // Keys the look-up hash. 0: random per manager, so that prompts cannot be
  // crafted to collide.
  uint64_t hash_seed = 0;
  HashFunction hash = nullptr;  // default: XXH3
  // Where every mutating call is recorded (op_log.h); borrowed; may be null.
  OpLog* op_log = nullptr;
};

// InvalidArgument, naming the field and its value, if a manager could not be
// made of `options`.
absl::Status Validate(const KvCacheOptions& options);

}  // namespace paged_kv

#endif  // PAGED_KV_KV_CACHE_OPTIONS_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/kv_cache_options.h"

#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv {
namespace {

constexpr uint64_t kMaxBlocks = (uint64_t{1} << 31) - 1;
constexpr uint32_t kMaxChunkTokens = 1u << 16;
constexpr uint32_t kMaxTokens = 1u << 30;
constexpr uint32_t kMaxSequences = 1u << 24;
constexpr uint32_t kMaxSteps = 64;
constexpr uint32_t kMaxDeviceSplits = 256;

absl::Status CheckRange(const char* field, uint64_t value, uint64_t low,
                        uint64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("KvCacheOptions::", field,
                                                 " is ", value, ", must be ",
                                                 low, " to ", high));
}

absl::Status CheckGroups(const KvCacheOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(
      CheckRange("groups.size()", options.groups.size(), 1, kMaxGroups));
  uint64_t chunk = 1;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> pools;
  for (size_t i = 0; i < options.groups.size(); ++i) {
    const LayerGroup& group = options.groups[i];
    if (absl::Status status = Validate(group.shape); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("group ", i, ": ", status.message()));
    }
    if (group.sink_tokens > 0 && group.window == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("group ", i, ": ", group.sink_tokens,
                       " sink_tokens without a window"));
    }
    PAGED_KV_RETURN_IF_ERROR(
        CheckRange("groups[].window", group.window, 0, kMaxTokens));
    PAGED_KV_RETURN_IF_ERROR(
        CheckRange("groups[].sink_tokens", group.sink_tokens, 0, kMaxTokens));
    chunk = std::lcm(chunk, uint64_t{group.shape.block_tokens});
    if (chunk > kMaxChunkTokens) {
      return absl::InvalidArgumentError(absl::StrCat(
          "block_tokens of the groups have the least common multiple ", chunk,
          ", must be at most ", kMaxChunkTokens));
    }
    const auto key =
        std::pair(PageBytes(group.shape).value(), group.shape.block_tokens);
    pools[key] += options.host_blocks.value();
    PAGED_KV_RETURN_IF_ERROR(CheckRange("host_blocks (times groups of a pool)",
                                        pools[key], 1, kMaxBlocks));
    if (options.memory == MemoryMode::kOwnMemory &&
        PageBytes(group.shape).value() >
            std::numeric_limits<int64_t>::max() / pools[key]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "group ", i, ": ", pools[key], " pages of ",
          PageBytes(group.shape).value(), " bytes exceed the address space"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDevice(const KvCacheOptions& options) {
  const DeviceTierOptions& device = options.device;
  PAGED_KV_RETURN_IF_ERROR(CheckRange("device.pages", device.pages.value(), 0,
                                      options.host_blocks.value()));
  PAGED_KV_RETURN_IF_ERROR(
      CheckRange("device.splits", device.splits, 1, kMaxDeviceSplits));
  if (device.pages.value() % device.splits != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("KvCacheOptions::device.pages is ", device.pages.value(),
                     ", must be a multiple of device.splits, ", device.splits));
  }
  return CheckRange("device.watermark_pages", device.watermark_pages.value(), 0,
                    kMaxBlocks);
}

absl::Status CheckMemory(const KvCacheOptions& options) {
  const size_t layouts = options.layouts.size();
  if (options.memory > MemoryMode::kOwnMemory) {
    return absl::InvalidArgumentError(
        absl::StrCat("KvCacheOptions::memory is ",
                     static_cast<int>(options.memory), ", not a MemoryMode"));
  }
  if (options.memory != MemoryMode::kCallerMemory) {
    if (layouts == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        layouts, " layouts given, but memory is not kCallerMemory"));
  }
  if (layouts != options.groups.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        layouts, " layouts for ", options.groups.size(), " groups"));
  }
  for (size_t i = 0; i < layouts; ++i) {
    if (options.layouts[i].base == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("layouts[", i, "].base is null"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const KvCacheOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(CheckGroups(options));
  PAGED_KV_RETURN_IF_ERROR(CheckDevice(options));
  PAGED_KV_RETURN_IF_ERROR(CheckMemory(options));
  PAGED_KV_RETURN_IF_ERROR(
      CheckRange("max_sequences", options.max_sequences, 1, kMaxSequences));
  PAGED_KV_RETURN_IF_ERROR(CheckRange("max_tokens_per_sequence",
                                      options.max_tokens_per_sequence, 1,
                                      kMaxTokens));
  PAGED_KV_RETURN_IF_ERROR(CheckRange(
      "max_steps_in_flight", options.max_steps_in_flight, 1, kMaxSteps));
  PAGED_KV_RETURN_IF_ERROR(CheckRange(
      "watermark_blocks", options.watermark_blocks.value(), 0, kMaxBlocks));
  PAGED_KV_RETURN_IF_ERROR(
      CheckRange("max_pins", options.max_pins, 0, kMaxSequences));
  PAGED_KV_RETURN_IF_ERROR(CheckRange("max_extra_bytes_per_sequence",
                                      options.max_extra_bytes_per_sequence, 0,
                                      1u << 20));
  PAGED_KV_RETURN_IF_ERROR(
      CheckRange("event_capacity", options.event_capacity, 0, 1u << 28));
  if (options.numa_node < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("KvCacheOptions::numa_node is ", options.numa_node,
                     ", must be a node or -1"));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv

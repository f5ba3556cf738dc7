// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// An engine without arithmetic: it copies, writes and reads slots exactly
// where the manager's exports tell it to, as late as it may.

#ifndef PAGED_KV_TESTS_SUPPORT_SIMULATED_ENGINE_H_
#define PAGED_KV_TESTS_SUPPORT_SIMULATED_ENGINE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "paged_kv/kv_cache_manager.h"
#include "tests/support/reference_kv_cache.h"

namespace paged_kv::testing {

// Every write is a number. When a step is committed, the engine takes the
// manager's tables and the numbers that the model expects a kernel to read
// through them; it runs the step only when it retires. A block that was given
// away, shared or overwritten too early shows as a wrong number.
class SimulatedEngine {
 public:
  explicit SimulatedEngine(const ReferenceKvCache& model);

  // Takes the exports of `step`, which has just been committed in both; its
  // rows are the writes from `first_write` on. Returns what is wrong with
  // them, empty if nothing is.
  std::string Load(const KvCacheManager& manager, const ReferenceKvCache& model,
                   StepId step, uint64_t first_write);
  // Carries out the oldest step. Returns the first wrong read.
  std::string Run(const ReferenceKvCache& model);

 private:
  struct GroupTables {
    std::vector<int32_t> indptr, pages, last_page_tokens, first_token;
    std::vector<int64_t> slots;
    std::vector<uint64_t> reads;  // of all rows, in the order of the pages
  };
  struct Work {
    StepId step;
    uint64_t first_write = 0;
    std::vector<BlockCopy> copies;
    std::vector<GroupTables> groups;
  };

  // Where the next row begins.
  struct RowStart {
    size_t page = 0;
    size_t slot = 0;
  };

  std::string Export(const KvCacheManager& manager, const ReferenceGroup& group,
                     const StepView& view, uint32_t g, Work* work);
  std::string CheckRow(const ReferenceKvCache& model,
                       const PlannedSequence& part, uint32_t g, size_t i,
                       RowStart* at, GroupTables* got);
  std::string LoadGroup(const KvCacheManager& manager,
                        const ReferenceKvCache& model, const StepView& view,
                        uint32_t g, Work* work);
  std::string CheckPadded(const KvCacheManager& manager, const StepView& view,
                          uint32_t g, const Work& work);

  std::vector<std::vector<uint64_t>> memory_;  // [pool][page * tokens + slot]
  std::deque<Work> loaded_;
  std::vector<Work> spare_;  // keeps the capacity of its arrays
  std::vector<int32_t> padded_, tokens_, first_token_;
  uint64_t loads_ = 0;
};

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_SIMULATED_ENGINE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/tool/stress_run.h"
#include "paged_kv/op_log.h"
#include "paged_kv/thread_safe_kv_cache.h"
#include "tests/support/lockstep_replay.h"

namespace paged_kv::tool {
namespace {

using testing::Operation;
using Kind = Operation::Kind;
using testing::RandomBits;

// Ids of the sequences that live, as far as the threads know: any thread may
// use those of the others, so that they meet.
class SharedIds {
 public:
  void Put(SequenceId id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ids_.push_back(id);
  }
  SequenceId Get(RandomBits* random) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ids_.empty() ? SequenceId(random->Below(100)) : ids_[At(random)];
  }
  // To be freed.
  SequenceId Take(RandomBits* random) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ids_.empty()) return SequenceId(random->Below(100));
    SequenceId& place = ids_[At(random)];
    const SequenceId id = place;
    place = ids_.back();
    ids_.pop_back();
    return id;
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ids_.clear();
  }

 private:
  size_t At(RandomBits* random) const {
    return random->Below(static_cast<uint32_t>(ids_.size()));
  }

  mutable std::mutex mutex_;
  std::vector<SequenceId> ids_;  // guarded by mutex_
};

// One thread's calls. What it reads of the cache to choose arguments may be
// stale by the time of the call: then the call is refused, which is the point.
class Worker {
 public:
  Worker(ThreadSafeKvCache* cache, SharedIds* ids, uint32_t longest_prompt,
         uint64_t seed)
      : cache_(*cache),
        ids_(*ids),
        longest_(longest_prompt),
        max_steps_(cache->Locked(
            [](const auto& m) { return m.options().max_steps_in_flight; })),
        random_(seed) {}

  void Run(uint64_t operations) {
    for (uint64_t i = 0; i < operations && error_.empty(); ++i) RunOne();
  }

  const std::string& error() const { return error_; }
  const StressResult& counts() const { return counts_; }

 private:
  void RunOne() {
    const auto [kind, status] = Call(random_.Below(100));
    StressResult::Count& count = counts_.by_kind[static_cast<size_t>(kind)];
    ++count.operations;
    ++counts_.operations;
    if (!status.ok()) return;
    ++count.granted;
    ++counts_.granted;
  }

  std::pair<Kind, absl::Status> Call(uint32_t choice) {
    if (choice < 18) return {Kind::kStep, Step()};
    if (choice < 24) return {Kind::kAllocate, Allocate()};
    if (choice < 34) return {Kind::kAppend, Append()};
    if (choice < 62) return RetireOrAllocate();
    if (choice < 68) return {Kind::kSetTokens, SetTokens()};
    if (choice < 71) return {Kind::kAccept, Accept()};
    if (choice < 74) return {Kind::kTruncate, Truncate()};
    if (choice < 78) return {Kind::kFork, Fork()};
    if (choice < 87) return {Kind::kFree, Free()};
    if (choice < 88) return {Kind::kPin, PinAndUnpin()};
    if (choice < 92) return {Kind::kLookup, cache_.Lookup(Prompt()).status()};
    if (choice < 94) return {Kind::kMarkWritten, MarkWritten()};
    if (choice < 95) return {Kind::kDrainEvents, Drain()};
    if (choice < 96) return {Kind::kReset, ResetRarely()};
    return {Kind::kExport, CheckStats()};
  }

  absl::Status Step() {
    RetireIfFull();
    const std::vector<TokenId> prompt = Prompt();
    std::vector<StepRequest> requests = {StepRequest::Admit(prompt)};
    if (random_.OneIn(3)) {
      requests[0].new_tokens = TokenCount(random_.Between(1, 9));
    }
    requests[0].lookahead = TokenCount(random_.Below(3));
    if (random_.OneIn(2)) {
      requests.push_back(
          StepRequest::Extend(ids_.Get(&random_), TokenCount(1)));
      if (random_.OneIn(2)) requests.erase(requests.begin());
    }
    const auto step = cache_.Step(requests);
    if (!step.ok()) return step.status();
    for (const PlannedSequence& part : step->sequences) {
      if (part.kind == StepRequest::Kind::kAdmit) ids_.Put(part.id);
    }
    return Export(step->id);
  }

  // The tables may be gone already: another thread may have retired the step
  // or changed its sequences. What is exported must fit the pool.
  absl::Status Export(StepId step) {
    const auto size = cache_.TableSize(step, GroupId(0));
    if (!size.ok()) return absl::OkStatus();
    std::vector<int32_t> indptr(size->sequences + 1), pages(size->pages),
        last(size->sequences), first(size->sequences);
    const auto table =
        cache_.ExportPageTable(step, GroupId(0),
                               {absl::MakeSpan(indptr), absl::MakeSpan(pages),
                                absl::MakeSpan(last), absl::MakeSpan(first)});
    if (!table.ok()) return absl::OkStatus();
    const uint32_t blocks = cache_.Locked(
        [](const auto& m) { return m.PoolBlocks(GroupId(0)).value(); });
    for (int32_t page : table->page_indices) {
      if (page < 0 || static_cast<uint32_t>(page) >= blocks) {
        error_ = absl::StrCat("page ", page, " of a pool of ", blocks);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Allocate() {
    RetireIfFull();
    const auto admission = cache_.Allocate(Prompt());
    if (admission.ok()) ids_.Put(admission->id);
    return admission.status();
  }

  absl::Status Append() {
    RetireIfFull();
    const SequenceId id = ids_.Get(&random_);
    const std::vector<TokenId> tokens(random_.Between(1, 5), 1);
    return cache_.Append(id, tokens).status();
  }

  // The oldest step, unless another thread is faster; mostly makes one if
  // there is none.
  std::pair<Kind, absl::Status> RetireOrAllocate() {
    const CacheStats stats = cache_.Stats();
    if (stats.steps_in_flight == 0 && !random_.OneIn(8)) {
      return {Kind::kAllocate, Allocate()};
    }
    return {Kind::kRetire, cache_.Retire(StepId(stats.steps_retired + 1))};
  }
  // Makes room for a step if there is none.
  void RetireIfFull() {
    const CacheStats stats = cache_.Stats();
    if (stats.steps_in_flight < max_steps_ || random_.OneIn(8)) return;
    (void)cache_.Retire(StepId(stats.steps_retired + 1));
  }

  absl::Status SetTokens() {
    const SequenceId id = ids_.Get(&random_);
    const auto info = cache_.Describe(id);
    if (!info.ok()) return info.status();
    const uint32_t missing =
        info->tokens > info->known ? (info->tokens - info->known).value() : 0;
    const std::vector<TokenId> tokens(missing, 2);
    return cache_.SetTokens(id, TokenPos(info->known.value()), tokens);
  }

  absl::Status Accept() {
    const SequenceId id = ids_.Get(&random_);
    const auto info = cache_.Describe(id);
    if (!info.ok()) return info.status();
    const std::vector<TokenId> tokens(
        random_.Below(info->lookahead.value() + 1), 3);
    return cache_.Accept(id, tokens);
  }

  absl::Status Truncate() {
    const SequenceId id = ids_.Get(&random_);
    const auto info = cache_.Describe(id);
    if (!info.ok()) return info.status();
    return cache_.Truncate(id,
                           TokenCount(random_.Between(info->tokens.value() / 2,
                                                      info->tokens.value())));
  }

  absl::Status Fork() {
    const auto child = cache_.Fork(ids_.Get(&random_));
    if (child.ok()) ids_.Put(*child);
    return child.status();
  }

  // Now and then one that is still in use elsewhere, or was freed before.
  absl::Status Free() {
    return cache_.Free(random_.OneIn(16) ? ids_.Get(&random_)
                                         : ids_.Take(&random_));
  }

  absl::Status PinAndUnpin() {
    const auto pin = cache_.Pin(Prompt());
    if (!pin.ok()) return pin.status();
    return cache_.Unpin(*pin);
  }

  absl::Status MarkWritten() {
    return cache_.MarkWritten(StepId(cache_.Stats().steps_retired + 1), 0);
  }

  absl::Status Drain() {
    std::vector<CacheEvent> events(random_.Below(20));
    cache_.DrainEvents(absl::MakeSpan(events));
    return absl::OkStatus();
  }

  absl::Status ResetRarely() {
    if (random_.OneIn(20)) {
      cache_.FreeAll();
      ids_.Clear();
    }
    return cache_.Reset();
  }

  // A snapshot that another thread's call cuts through would not add up.
  absl::Status CheckStats() {
    for (const PoolStats& pool : cache_.Stats().pools) {
      const BlockCount sum =
          pool.held + pool.cached + pool.quarantined + pool.free;
      const uint64_t slots = pool.slots.Total();
      if (sum != pool.capacity || slots % pool.capacity.value() != 0 ||
          slots == 0) {
        error_ =
            absl::StrCat("a snapshot counts ", sum.value(), " of ",
                         pool.capacity.value(), " blocks, ", slots, " slots");
      }
    }
    if (random_.OneIn(64)) {
      const absl::Status status = cache_.CheckInvariants();
      if (!status.ok()) error_ = status.ToString();
    }
    return absl::OkStatus();
  }

  std::vector<TokenId> Prompt() {
    const uint32_t length = random_.Between(1, longest_);
    const uint32_t common = random_.Below(length + 1);
    const auto text = static_cast<TokenId>(random_.Below(3));
    std::vector<TokenId> prompt(length);
    for (uint32_t i = 0; i < length; ++i) {
      prompt[i] = i < common ? 100 * text + static_cast<TokenId>(i % 7)
                             : static_cast<TokenId>(random_.Below(3));
    }
    return prompt;
  }

  ThreadSafeKvCache& cache_;
  SharedIds& ids_;
  uint32_t longest_;
  uint32_t max_steps_;
  RandomBits random_;
  StressResult counts_;
  std::string error_;
};

void Violate(const StressOptions& options, uint64_t round, std::string what,
             std::string log, StressResult* result) {
  ++result->violations;
  result->violation = std::move(what);
  result->cache = StressCache(options, round).name;
  result->violation_round = round;
  result->log = std::move(log);
}

void Add(const StressResult& part, StressResult* sum) {
  for (size_t i = 0; i < sum->by_kind.size(); ++i) {
    sum->by_kind[i].operations += part.by_kind[i].operations;
    sum->by_kind[i].granted += part.by_kind[i].granted;
  }
  sum->operations += part.operations;
  sum->granted += part.granted;
}

void RunRound(const StressOptions& options, uint64_t round, uint64_t operations,
              StressResult* result) {
  StringOpLog log;
  testing::RandomCache kind = StressCache(options, round);
  kind.options.op_log = &log;
  auto cache = ThreadSafeKvCache::Create(kind.options);
  if (!cache.ok()) {
    return Violate(options, round, cache.status().ToString(), "", result);
  }
  SharedIds ids;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < options.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(
        cache->get(), &ids, kind.workload.longest_prompt,
        StressRoundSeed(options, round) * 64 + i));
  }
  for (uint32_t i = 0; i < options.threads; ++i) {
    const uint64_t share = operations / options.threads +
                           (i < operations % options.threads ? 1 : 0);
    threads.emplace_back([&, i, share] { workers[i]->Run(share); });
  }
  for (std::thread& thread : threads) thread.join();

  ++result->rounds;
  std::string error;
  for (const auto& worker : workers) {
    Add(worker->counts(), result);
    if (error.empty()) error = worker->error();
  }
  if (error.empty()) {
    const absl::Status status = (*cache)->CheckInvariants();
    if (!status.ok()) error = status.ToString();
  }
  // The calls in the order in which they took effect, one thread.
  testing::LockstepOptions lockstep;
  lockstep.violate_at_call = options.pretend_violation_at;
  const auto replay = testing::ReplayInLockstep(log.contents(), lockstep);
  const auto twin = ReplayOpLog(log.contents());
  if (replay.ok()) result->calls += replay->operations;
  if (error.empty() && !replay.ok()) error = replay.status().ToString();
  if (error.empty() && replay.ok()) error = replay->violation;
  if (error.empty() && !twin.ok()) error = twin.status().ToString();
  if (error.empty() && (replay->fingerprint != (*cache)->Fingerprint() ||
                        (*twin)->Fingerprint() != (*cache)->Fingerprint())) {
    error = "the log, replayed, leads to another state";
  }
  if (!error.empty()) Violate(options, round, error, log.contents(), result);
}

}  // namespace

StressResult RunThreadedStress(const StressOptions& options,
                               Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  progress.Start(absl::StrCat("operations from ", options.threads, " threads"));
  StressResult result;
  for (uint64_t round = options.first_round;
       result.operations < options.operations && result.violations == 0;
       ++round) {
    RunRound(options, round,
             std::min(options.operations - result.operations, kStressRound),
             &result);
    progress.Update(result.operations, options.operations);
  }
  progress.Clear();
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return result;
}

}  // namespace paged_kv::tool

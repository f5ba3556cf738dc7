// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A lock around KvCacheManager.

#ifndef PAGED_KV_THREAD_SAFE_KV_CACHE_H_
#define PAGED_KV_THREAD_SAFE_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv {

// KvCacheManager for several threads. Each call is atomic and they take effect
// in some order; planning and committing are one call, Step(), so that no other
// thread comes between them. What would point into the manager is copied.
//
// Thread safety: thread-safe. Uses std::mutex, which the thread sanitizer sees.
class ThreadSafeKvCache {
 public:
  static absl::StatusOr<std::unique_ptr<ThreadSafeKvCache>> Create(
      const KvCacheOptions& options) {
    absl::StatusOr<std::unique_ptr<KvCacheManager>> manager =
        KvCacheManager::Create(options);
    if (!manager.ok()) return manager.status();
    return std::unique_ptr<ThreadSafeKvCache>(
        new ThreadSafeKvCache(*std::move(manager)));
  }

  // Calls f(KvCacheManager&) under the lock and returns its result, for several
  // operations in one piece. The reference must not outlive the call.
  template <typename F>
  auto Locked(F f) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return f(*manager_);
  }
  template <typename F>
  auto Locked(F f) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return f(static_cast<const KvCacheManager&>(*manager_));
  }

  // A committed step.
  struct CommittedStep {
    StepId id;
    std::vector<PlannedSequence> sequences;
    std::vector<BlockCopy> copies;
  };
  // Plan() and Commit().
  absl::StatusOr<CommittedStep> Step(absl::Span<const StepRequest> requests) {
    return Locked([&](KvCacheManager& m) -> absl::StatusOr<CommittedStep> {
      absl::StatusOr<StepPlan> plan = m.Plan(requests);
      if (!plan.ok()) return plan.status();
      const StepView view = plan->view();
      absl::StatusOr<StepId> id = m.Commit(*std::move(plan));
      if (!id.ok()) return id.status();
      return CommittedStep{*id,
                           {view.sequences.begin(), view.sequences.end()},
                           {view.copies.begin(), view.copies.end()}};
    });
  }

  absl::StatusOr<Prefix> Lookup(absl::Span<const TokenId> prompt,
                                KeyExtras extras = {}) const {
    return Locked([&](auto& m) { return m.Lookup(prompt, extras); });
  }
  absl::Status Retire(StepId step) {
    return Locked([&](auto& m) { return m.Retire(step); });
  }
  absl::Status MarkWritten(StepId step, uint32_t layer) {
    return Locked([&](auto& m) { return m.MarkWritten(step, layer); });
  }
  absl::Status SetTokens(SequenceId id, TokenPos first,
                         absl::Span<const TokenId> tokens) {
    return Locked([&](auto& m) { return m.SetTokens(id, first, tokens); });
  }
  absl::Status Accept(SequenceId id, absl::Span<const TokenId> tokens) {
    return Locked([&](auto& m) { return m.Accept(id, tokens); });
  }
  absl::Status Truncate(SequenceId id, TokenCount tokens) {
    return Locked([&](auto& m) { return m.Truncate(id, tokens); });
  }
  absl::StatusOr<SequenceId> Fork(SequenceId parent) {
    return Locked([&](auto& m) { return m.Fork(parent); });
  }
  absl::Status Free(SequenceId id) {
    return Locked([&](auto& m) { return m.Free(id); });
  }
  void FreeAll() {
    Locked([](auto& m) { m.FreeAll(); });
  }
  absl::Status Reset() {
    return Locked([](auto& m) { return m.Reset(); });
  }
  absl::StatusOr<Admission> Allocate(absl::Span<const TokenId> prompt,
                                     KeyExtras extras = {}) {
    return Locked([&](auto& m) { return m.Allocate(prompt, extras); });
  }
  absl::StatusOr<Admission> Append(SequenceId id,
                                   absl::Span<const TokenId> tokens) {
    return Locked([&](auto& m) { return m.Append(id, tokens); });
  }
  absl::StatusOr<PinId> Pin(absl::Span<const TokenId> prompt,
                            KeyExtras extras = {}) {
    return Locked([&](auto& m) { return m.Pin(prompt, extras); });
  }
  absl::Status Unpin(PinId pin) {
    return Locked([&](auto& m) { return m.Unpin(pin); });
  }
  absl::StatusOr<PageTable> ExportPageTable(
      StepId step, GroupId group, const PageTableBuffers& buffers) const {
    return Locked(
        [&](auto& m) { return m.ExportPageTable(step, group, buffers); });
  }
  absl::Status ExportSlotMapping(StepId step, GroupId group,
                                 absl::Span<int64_t> slots) const {
    return Locked(
        [&](auto& m) { return m.ExportSlotMapping(step, group, slots); });
  }
  absl::StatusOr<PageTableSize> TableSize(StepId step, GroupId group) const {
    return Locked([&](auto& m) { return m.TableSize(step, group); });
  }
  absl::StatusOr<SequenceInfo> Describe(SequenceId id) const {
    return Locked([&](auto& m) { return m.Describe(id); });
  }
  absl::StatusOr<std::vector<TokenId>> Tokens(SequenceId id) const {
    return Locked([&](auto& m) -> absl::StatusOr<std::vector<TokenId>> {
      absl::StatusOr<absl::Span<const TokenId>> tokens = m.Tokens(id);
      if (!tokens.ok()) return tokens.status();
      return std::vector<TokenId>(tokens->begin(), tokens->end());
    });
  }
  CacheStats Stats() const {
    return Locked([](auto& m) { return m.Stats(); });
  }
  size_t DrainEvents(absl::Span<CacheEvent> events) {
    return Locked([&](auto& m) { return m.DrainEvents(events); });
  }
  absl::Status CheckInvariants() const {
    return Locked([](auto& m) { return m.CheckInvariants(); });
  }
  uint64_t Fingerprint() const {
    return Locked([](auto& m) { return m.Fingerprint(); });
  }

 private:
  explicit ThreadSafeKvCache(std::unique_ptr<KvCacheManager> manager)
      : manager_(std::move(manager)) {}

  mutable std::mutex mutex_;
  std::unique_ptr<KvCacheManager> manager_;  // guarded by mutex_
};

}  // namespace paged_kv

#endif  // PAGED_KV_THREAD_SAFE_KV_CACHE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A manager and the naive model, called in lock-step and compared.

#ifndef PAGED_KV_TESTS_SUPPORT_LOCKSTEP_CACHE_H_
#define PAGED_KV_TESTS_SUPPORT_LOCKSTEP_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/support/reference_kv_cache.h"
#include "tests/support/simulated_engine.h"

namespace paged_kv::testing {

struct LockstepOptions {
  // Everything is compared at every `full_check_every`th call, and the
  // manager's own invariants are checked; the numbers, results and what the
  // call touched at every call.
  uint32_t full_check_every = 32;
  // At every so many calls Fingerprint() is taken before, so that a refused
  // one is seen to leave it as it was (it is O(blocks)).
  uint32_t fingerprint_every = 32;
  // The call that is declared a violation, to test what follows from one; 0:
  // none.
  uint64_t violate_at_call = 0;
};

// Each call is made on the manager and on the model and returns the code that
// the manager gave. After the first difference ok() is false, violation() says
// what it was, and no further call may be made.
class LockstepCache {
 public:
  static absl::StatusOr<std::unique_ptr<LockstepCache>> Create(
      const KvCacheOptions& options, const LockstepOptions& lockstep = {});

  bool ok() const { return violation_.empty(); }
  const std::string& violation() const { return violation_; }
  uint64_t calls() const { return calls_; }
  uint64_t calls_ok() const { return calls_ok_; }

  KvCacheManager& manager() { return *manager_; }
  const ReferenceKvCache& model() const { return model_; }

  // ---- Plans. The requests must live until the plan is committed. ----

  absl::StatusCode Plan(absl::Span<const StepRequest> requests, bool fitting);
  bool HasPlan() const { return plan_made_; }
  // Commits the plan made last. Its id is last_step().
  absl::StatusCode Commit();
  // Commits the plan that the plan made last replaced.
  absl::StatusCode CommitReplaced();
  // Commits what is left of a plan that was committed before.
  absl::StatusCode CommitAgain();
  void DropPlan();
  StepId last_step() const { return last_step_; }
  // Ids of the sequences of the last commit, in order.
  const std::vector<SequenceId>& committed() const { return committed_; }

  // ---- The manager's other calls ----

  absl::StatusCode Allocate(absl::Span<const TokenId> prompt, KeyExtras extras);
  absl::StatusCode Append(SequenceId id, absl::Span<const TokenId> tokens);
  absl::StatusCode Retire(StepId step);
  absl::StatusCode MarkWritten(StepId step, uint32_t layer);
  absl::StatusCode SetTokens(SequenceId id, TokenPos first,
                             absl::Span<const TokenId> tokens);
  absl::StatusCode Accept(SequenceId id, absl::Span<const TokenId> tokens);
  absl::StatusCode Truncate(SequenceId id, TokenCount tokens);
  absl::StatusCode Fork(SequenceId parent);
  SequenceId last_fork() const { return last_fork_; }
  absl::StatusCode Free(SequenceId id);
  absl::StatusCode FreeAll();
  absl::StatusCode Reset();
  absl::StatusCode Pin(absl::Span<const TokenId> prompt, KeyExtras extras);
  PinId last_pin() const { return last_pin_; }
  absl::StatusCode Unpin(PinId pin);
  absl::StatusCode Lookup(absl::Span<const TokenId> prompt, KeyExtras extras);
  // Exports tables of a step in flight (or not) again, and of sequences.
  absl::StatusCode ExportAgain(StepId step, GroupId group);
  absl::StatusCode ExportSequences(absl::Span<const SequenceId> ids,
                                   GroupId group);
  absl::StatusCode DrainEvents(size_t room);

  // Compares everything now.
  void CheckAll();

 private:
  LockstepCache(std::unique_ptr<KvCacheManager> manager,
                const LockstepOptions& lockstep);

  // Begins and ends a call: remembers and compares.
  void Begin();
  absl::StatusCode End(const char* call, absl::StatusCode got,
                       absl::StatusCode expected);
  template <typename... Args>
  void Violate(const Args&... args) {
    if (ok()) violation_ = absl::StrCat("call ", calls_, ": ", args...);
  }

  void ReplacePlan();
  absl::StatusCode FinishCommit(const absl::StatusOr<StepId>& step,
                                absl::StatusCode expected, const char* call);
  absl::StatusCode OneCall(const absl::StatusOr<Admission>& admission,
                           const char* call);
  absl::StatusCode Edited(const char* call, SequenceId id, absl::StatusCode got,
                          absl::StatusCode expected);

  void ComparePlan(bool fitting);
  void CompareView(const StepView& view);
  void CompareStats();
  void CompareSequence(SequenceId id);
  void ComparePools();
  void CheckNewId(SequenceId id);

  LockstepOptions lockstep_;
  std::unique_ptr<KvCacheManager> manager_;
  ReferenceKvCache model_;
  SimulatedEngine engine_;

  std::string violation_;
  uint64_t calls_ = 0;
  uint64_t calls_ok_ = 0;
  uint64_t fingerprint_ = 0;
  bool has_fingerprint_ = false;
  uint64_t version_ = 0;  // counts what makes plans stale

  bool plan_made_ = false;
  bool has_replaced_ = false;
  uint64_t plan_version_ = 0;
  StepPlan plan_, replaced_, spent_;
  ReferencePlan model_plan_;
  std::vector<StepRequest> requests_;
  std::vector<absl::Status> outcomes_;
  std::vector<SequenceId> committed_;
  StepId last_step_;
  SequenceId last_fork_;
  PinId last_pin_;
  std::vector<uint32_t> generations_;  // last one seen of every slot
  std::vector<CacheEvent> drained_;
};

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_LOCKSTEP_CACHE_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Operations as small printable structs, where they come from, and what runs
// them on a manager and its model in lock-step.

#ifndef PAGED_KV_TESTS_SUPPORT_RANDOM_OPERATIONS_H_
#define PAGED_KV_TESTS_SUPPORT_RANDOM_OPERATIONS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "paged_kv/key_extras.h"
#include "paged_kv/step.h"
#include "tests/support/lockstep_cache.h"
#include "tests/support/random_options.h"

namespace paged_kv::testing {

// One operation, valid or not. Its numbers are choices, taken modulo what
// there is at that moment (`pick` a sequence, step or pin; `seed` everything
// else), so that any bytes are an operation and a printed one can be pasted
// back.
struct Operation {
  enum class Kind : uint8_t {
    kStep,         // plan and commit 1 to 4 requests
    kStepFitting,  // the same with PlanFitting
    kAllocate,
    kAppend,
    kRetire,     // the oldest step in flight
    kSetTokens,  // of the next unknown positions
    kAccept,
    kTruncate,
    kFork,
    kFree,
    kPin,
    kUnpin,
    kLookup,
    kExport,  // of sequences, or a step's again
    kMarkWritten,
    kDrainEvents,
    kReset,
    kFreeAll,
    // Mostly invalid:
    kPlanDropped,
    kPlanStale,     // committed after the cache changed
    kPlanReplaced,  // committed after another plan was made
    kCommitTwice,
    kRetireWrong,  // out of order, twice, unknown
    kSetWrongTokens,
    kFreeWrong,  // freed before, or never there
    kCallWrong,  // any other call with a wrong id or number
  };

  Kind kind = Kind::kLookup;
  uint32_t pick = 0;
  uint32_t seed = 0;
};
inline constexpr uint32_t kOperationKinds = 26;

const char* KindName(Operation::Kind kind);
// As C++: {Operation::Kind::kFork, 3, 77}.
std::ostream& operator<<(std::ostream& os, const Operation& operation);

// Draws operations, watching the model so that most of them succeed and the
// pool is neither empty nor stuck.
class RandomOperations {
 public:
  explicit RandomOperations(uint64_t seed) : random_(seed) {}

  Operation Next(const ReferenceKvCache& model);

 private:
  RandomBits random_;
};

// Carries out operations on a LockstepCache, which is borrowed. Arguments are
// made in operation_arguments.cc.
class OperationRunner {
 public:
  OperationRunner(LockstepCache* cache, const WorkloadShape& workload)
      : cache_(*cache), workload_(workload) {}

  // Makes the calls of `operation`. True if all of them were granted.
  bool Run(const Operation& operation);

  // The arguments of the last plan, for messages.
  std::string DescribeRequests() const;

 private:
  using Tokens = std::vector<TokenId>;

  bool RunStep(const Operation& operation, RandomBits* random);
  bool RunEdit(const Operation& operation, RandomBits* random);
  bool RunOther(const Operation& operation, RandomBits* random);
  bool RunWrong(const Operation& operation, RandomBits* random);
  bool RunCallWrong(RandomBits* random);

  bool Ok(absl::StatusCode code) const { return code == absl::StatusCode::kOk; }
  const ReferenceSequence* Pick(uint32_t pick) const;
  SequenceId WrongId(RandomBits* random) const;
  uint32_t SmallRows(RandomBits* random) const;
  void MakePrompt(RandomBits* random, Tokens* prompt) const;
  void MakeNext(const ReferenceSequence& sequence, size_t count,
                RandomBits* random, Tokens* tokens) const;
  void MakeExtras(RandomBits* random, size_t prompt_tokens,
                  std::vector<KeyExtra>* extras) const;
  // `count` requests into requests_.
  void MakeRequests(uint32_t count, RandomBits* random);
  void MakeAdmit(RandomBits* random, StepRequest* request, Tokens* tokens,
                 std::vector<KeyExtra>* extras) const;
  void MakeExtend(uint32_t pick, RandomBits* random, StepRequest* request,
                  Tokens* tokens) const;
  absl::StatusCode ChangeSomething(RandomBits* random);

  LockstepCache& cache_;
  WorkloadShape workload_;
  std::vector<StepRequest> requests_;
  std::vector<Tokens> tokens_;                 // of requests_
  std::vector<std::vector<KeyExtra>> extras_;  // of requests_
  Tokens scratch_;
  std::vector<KeyExtra> scratch_extras_;
  std::vector<SequenceId> ids_;
  SequenceId freed_;  // the one that was freed last
  PinId unpinned_;
};

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_RANDOM_OPERATIONS_H_

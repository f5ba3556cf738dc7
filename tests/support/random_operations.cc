// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which operations there are and how often. What they do is in
// operation_runner.cc.

#include "tests/support/random_operations.h"

#include "paged_kv/check.h"

namespace paged_kv::testing {
namespace {

using Kind = Operation::Kind;

struct Weight {
  Kind kind;
  uint32_t weight;
};

// The invalid kinds are an eighth; full pools, missing sequences and wrong
// moments add to that.
constexpr Weight kWeights[] = {
    {Kind::kStep, 150},       {Kind::kStepFitting, 20},
    {Kind::kAllocate, 40},    {Kind::kAppend, 110},
    {Kind::kRetire, 210},     {Kind::kSetTokens, 60},
    {Kind::kAccept, 35},      {Kind::kTruncate, 35},
    {Kind::kFork, 45},        {Kind::kFree, 70},
    {Kind::kPin, 6},          {Kind::kUnpin, 6},
    {Kind::kLookup, 60},      {Kind::kExport, 25},
    {Kind::kMarkWritten, 25}, {Kind::kDrainEvents, 10},
    {Kind::kReset, 4},        {Kind::kFreeAll, 1},
    {Kind::kPlanDropped, 20}, {Kind::kPlanStale, 15},
    {Kind::kPlanReplaced, 8}, {Kind::kCommitTwice, 8},
    {Kind::kRetireWrong, 15}, {Kind::kSetWrongTokens, 10},
    {Kind::kFreeWrong, 15},   {Kind::kCallWrong, 20},
};
static_assert(sizeof(kWeights) / sizeof(Weight) == kOperationKinds);

constexpr uint32_t TotalWeight() {
  uint32_t total = 0;
  for (const Weight& weight : kWeights) total += weight.weight;
  return total;
}

// kWeights, spread out for one look-up.
struct KindTable {
  Kind kinds[TotalWeight()];
  constexpr KindTable() : kinds{} {
    uint32_t at = 0;
    for (const Weight& weight : kWeights) {
      for (uint32_t i = 0; i < weight.weight; ++i) kinds[at++] = weight.kind;
    }
  }
};
constexpr KindTable kKindTable;

}  // namespace

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kStep:
      return "Step";
    case Kind::kStepFitting:
      return "StepFitting";
    case Kind::kAllocate:
      return "Allocate";
    case Kind::kAppend:
      return "Append";
    case Kind::kRetire:
      return "Retire";
    case Kind::kSetTokens:
      return "SetTokens";
    case Kind::kAccept:
      return "Accept";
    case Kind::kTruncate:
      return "Truncate";
    case Kind::kFork:
      return "Fork";
    case Kind::kFree:
      return "Free";
    case Kind::kPin:
      return "Pin";
    case Kind::kUnpin:
      return "Unpin";
    case Kind::kLookup:
      return "Lookup";
    case Kind::kExport:
      return "Export";
    case Kind::kMarkWritten:
      return "MarkWritten";
    case Kind::kDrainEvents:
      return "DrainEvents";
    case Kind::kReset:
      return "Reset";
    case Kind::kFreeAll:
      return "FreeAll";
    case Kind::kPlanDropped:
      return "PlanDropped";
    case Kind::kPlanStale:
      return "PlanStale";
    case Kind::kPlanReplaced:
      return "PlanReplaced";
    case Kind::kCommitTwice:
      return "CommitTwice";
    case Kind::kRetireWrong:
      return "RetireWrong";
    case Kind::kSetWrongTokens:
      return "SetWrongTokens";
    case Kind::kFreeWrong:
      return "FreeWrong";
    case Kind::kCallWrong:
      return "CallWrong";
  }
  PAGED_KV_CHECK(false);
}

std::ostream& operator<<(std::ostream& os, const Operation& operation) {
  return os << "{Operation::Kind::k" << KindName(operation.kind) << ", "
            << operation.pick << "u, " << operation.seed << "u}";
}

Operation RandomOperations::Next(const ReferenceKvCache& model) {
  Operation operation;
  operation.kind = kKindTable.kinds[random_.Below(TotalWeight())];
  operation.pick = random_.Below(1u << 16);
  operation.seed = static_cast<uint32_t>(random_());
  const bool plans = operation.kind <= Kind::kAppend;
  // No step can be planned: mostly retire one.
  if (plans &&
      model.in_flight().size() >= model.options().max_steps_in_flight &&
      !random_.OneIn(8)) {
    operation.kind = Kind::kRetire;
    return operation;
  }
  // Nothing to retire: mostly make something to.
  if (operation.kind == Kind::kRetire && model.in_flight().empty()) {
    operation.kind = Kind::kStep;
  }
  // A full pool: mostly free something. An empty one: mostly fill it.
  uint32_t available = ~0u, blocks = 0;
  for (const ReferenceGroup& group : model.groups()) {
    const ReferencePool& pool = model.pool(group.pool);
    if (pool.Available() >= available) continue;
    available = pool.Available();
    blocks = pool.capacity();
  }
  const bool full =
      available <= blocks / 8 + model.options().watermark_blocks.value() ||
      model.living().size() >= model.options().max_sequences;
  if (plans && full && random_.OneIn(2)) {
    operation.kind = model.living().empty() ? Kind::kRetire : Kind::kFree;
  } else if (operation.kind > Kind::kRetire && operation.kind <= Kind::kFree &&
             (model.living().empty() ||
              (operation.kind == Kind::kFree && !full && random_.OneIn(2)))) {
    operation.kind = Kind::kAllocate;
  } else if (operation.kind == Kind::kReset && !random_.OneIn(4)) {
    operation.kind = Kind::kLookup;
  }
  return operation;
}

}  // namespace paged_kv::testing

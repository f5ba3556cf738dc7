// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong on a card, and when: the k-th operation of a kind, or each
// with some probability, from a seed.

#ifndef PAGED_KV_FPGA_DMA_CARD_MODEL_FAULT_PLAN_H_
#define PAGED_KV_FPGA_DMA_CARD_MODEL_FAULT_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace paged_kv::fpga_dma {

enum class CardOperation : uint8_t {
  kUpload,
  kDownload,
  kCopy,
  kKernel,
  kAllocate,
  kReset,
};
inline constexpr int kCardOperations = 6;

enum class FaultKind : uint8_t {
  // It is reported as failed; a part of what it writes may have been written.
  // A kernel reports an error, an allocation a full bank, a reset no success.
  kFail,
  // It succeeds, and a bit of what it wrote is wrong (FlipBit()).
  kFlipBit,
  // It never ends, and its channel or compute unit is stuck until a reset.
  kHang,
  // It takes `delay` longer, and then does what it should: the write that
  // comes after everybody has given it up.
  kDelay,
  // It is done, and nobody is told.
  kLoseCompletion,
  // The card drops off the bus, with all that is pending and all it held.
  kLoseDevice,
};

// One cause of faults. Operations of its kind are counted from 1.
struct FaultRule {
  CardOperation operation = CardOperation::kUpload;
  FaultKind kind = FaultKind::kFail;
  uint64_t nth = 0;        // the nth such operation; 0: none in particular
  double probability = 0;  // of every such operation
  absl::Duration delay;    // kDelay
};

struct FaultPlanOptions {
  uint64_t seed = 1;
  std::vector<FaultRule> rules;
};

// From text such as "upload:fail@3 kernel:hang%0.01 copy:delay=5ms@2 seed=7":
// operation:kind, then @n for the n-th or %p for a probability; words are
// separated by spaces or commas. Operations: upload, download, copy, kernel,
// allocate, reset. Kinds: fail, flip, hang, delay=<duration>, silent, lose.
// InvalidArgument names the word.
absl::StatusOr<FaultPlanOptions> ParseFaultPlan(absl::string_view text);

// InvalidArgument: a probability outside [0, 1], a rule with both or neither of
// `nth` and `probability`, a delay that is not positive and finite, or a kind
// that the operation cannot have (an allocation or a reset only fails).
absl::Status ValidateFaultPlan(const FaultPlanOptions& options);

// A fault of one operation.
struct Fault {
  FaultKind kind = FaultKind::kFail;
  absl::Duration delay;
  // A random number for its details: which bit, how much was written.
  uint64_t random = 0;
};

// Gives out faults in the order in which operations are started.
//
// Thread safety: thread-compatible.
class FaultPlan {
 public:
  // `options` are valid (ValidateFaultPlan).
  explicit FaultPlan(const FaultPlanOptions& options);

  // The fault of the next operation of this kind. The first rule that applies
  // decides, and a rule's probability is drawn from its own stream of random
  // numbers, so that rules and kinds do not disturb each other.
  std::optional<Fault> Next(CardOperation operation);

  // Operations of a kind, and faults, given out so far.
  uint64_t operations(CardOperation operation) const;
  uint64_t faults() const { return faults_; }

 private:
  FaultPlanOptions options_;
  std::vector<uint64_t> streams_;  // [rules]
  uint64_t counts_[kCardOperations] = {};
  uint64_t faults_ = 0;
};

// Turns the bit of what an operation wrote that its kFlipBit makes wrong.
// Operations of different kinds turn different bits: whoever checks an upload
// by reading it back cannot see a bit that both have turned, once in 8,192 such
// pairs of faults for transfers of 1 KiB if bits were drawn freely.
// REQUIRES: `bytes` is not empty.
void FlipBit(CardOperation operation, const Fault& fault,
             absl::Span<std::byte> bytes);

const char* CardOperationName(CardOperation operation);
const char* FaultKindName(FaultKind kind);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_CARD_MODEL_FAULT_PLAN_H_

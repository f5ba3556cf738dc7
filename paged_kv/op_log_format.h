// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an operation log.
//
// A record is [length][payload][checksum]: length as a varint (LEB128, at most
// 10 bytes), checksum as the low 32 bits, little-endian, of XXH3 of the payload
// seeded with the record's number, so that lost, doubled and swapped records
// are found too. Record 0 holds the options, every other one an operation and
// its result. Integers are varints, signed ones in zigzag, byte strings and
// lists have their length in front.

#ifndef PAGED_KV_OP_LOG_FORMAT_H_
#define PAGED_KV_OP_LOG_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "paged_kv/key_extras.h"
#include "paged_kv/kv_cache_options.h"
#include "paged_kv/step.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// Values are part of the format: append, never renumber.
enum class OpKind : uint8_t {
  kCommit = 1,
  kRetire = 2,
  kMarkWritten = 3,
  kSetTokens = 4,
  kAccept = 5,
  kTruncate = 6,
  kFork = 7,
  kFree = 8,
  kFreeAll = 9,
  kReset = 10,
  kPin = 11,
  kUnpin = 12,
  kDrainEvents = 13,
  kSwapIn = 14,  // SwapInPrefix, too
  kSwapOut = 15,
  kWriteBack = 16,
  kFinishTransfer = 17,
  kLoseDevice = 18,
};

const char* OpKindName(OpKind kind);

// A KeyExtra that owns its value.
struct OpExtra {
  KeyExtra::Kind kind = KeyExtra::Kind::kOther;
  uint32_t position = 0;
  std::string value;
};

// A StepRequest that owns what it points to.
struct OpRequest {
  StepRequest::Kind kind = StepRequest::Kind::kExtend;
  uint64_t id = 0;
  uint32_t new_tokens = 0;
  uint32_t lookahead = 0;
  uint32_t reserve_tokens = 0;
  uint32_t priority = kDefaultPriority;
  bool share = true;
  std::vector<TokenId> tokens;
  std::vector<OpExtra> extras;
};

// One decoded operation; what its kind does not use is zero.
struct OpRecord {
  OpKind kind = OpKind::kFreeAll;
  absl::StatusCode code = absl::StatusCode::kOk;
  uint64_t result = 0;          // id returned; kDrainEvents: events moved;
                                // swaps: transfers started; kLoseDevice:
                                // blocks
  uint64_t id = 0;              // sequence, step or pin of the call
  uint64_t number = 0;          // kMarkWritten: layer; kSetTokens: position;
                                // kTruncate, kSwapIn: tokens; kWriteBack:
                                // pages; kDrainEvents: room
  std::vector<TokenId> tokens;  // kSetTokens, kAccept, kPin
  std::vector<OpExtra> extras;  // kPin
  bool fitting = false;         // kCommit: of a PlanFitting()
  bool moved = false;           // kFinishTransfer
  std::vector<OpRequest> requests;    // kCommit
  std::vector<SequenceId> sequences;  // kCommit: of the step; of a swap;
                                      // kLoseDevice: that were lost
};

// Views into `record` for calls of the manager. They borrow from it.
KeyExtra AsKeyExtra(const OpExtra& extra);
std::vector<KeyExtra> AsKeyExtras(const std::vector<OpExtra>& extras);

// The requests of `ops`; extras go to *storage, which has to live as long.
std::vector<StepRequest> AsStepRequests(
    const std::vector<OpRequest>& ops,
    std::vector<std::vector<KeyExtra>>* storage);

// ---- Writing: appends to *out ----

void PutTokens(absl::Span<const TokenId> tokens, std::string* out);
void PutExtras(KeyExtras extras, std::string* out);
void PutRequest(const StepRequest& request, std::string* out);

// Payload of record 0.
std::string EncodeOptions(const KvCacheOptions& options);

// ---- Reading ----

// How the log names the eviction policy of its manager.
enum class LoggedEviction : uint8_t { kLru = 0, kSegmentedLru = 1, kOther = 2 };

struct LoggedOptions {
  KvCacheOptions options;  // metadata only; eviction unset if kOther
  LoggedEviction eviction = LoggedEviction::kLru;
};

// Reads a log record by record. The log is borrowed.
class OpLogReader {
 public:
  explicit OpLogReader(absl::string_view log) : rest_(log) {}

  // Record 0. REQUIRES: nothing was read before.
  absl::StatusOr<LoggedOptions> ReadOptions();
  // The next operation. REQUIRES: !AtEnd() and the options were read.
  absl::StatusOr<OpRecord> Next();

  bool AtEnd() const { return rest_.empty(); }
  // Number of the record that was read last, from 0.
  uint64_t number() const { return next_number_ - 1; }

 private:
  absl::StatusOr<absl::string_view> NextPayload();

  absl::string_view rest_;
  uint64_t next_number_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_OP_LOG_FORMAT_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_SUPPORT_LOCKSTEP_REPLAY_H_
#define PAGED_KV_TESTS_SUPPORT_LOCKSTEP_REPLAY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/support/lockstep_cache.h"

namespace paged_kv::testing {

struct LockstepReplay {
  uint64_t operations = 0;   // records replayed
  uint64_t granted = 0;      // of these, with the status OK
  uint64_t fingerprint = 0;  // of the manager at the end
  std::string violation;     // with the number of its record; empty: none
};

// Applies an operation log to a new manager and the model in lock-step. What
// the log says of results is compared, too. DataLoss if the log is corrupt,
// Unimplemented if its manager had a device tier, which the model has not,
// other errors if no manager can be made for it.
absl::StatusOr<LockstepReplay> ReplayInLockstep(
    absl::string_view log, const LockstepOptions& lockstep = {});

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_LOCKSTEP_REPLAY_H_

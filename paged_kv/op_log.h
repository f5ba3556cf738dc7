// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Record and replay: a log of every mutating call rebuilds the exact state, on
// another machine and under a debugger.
//
//   StringOpLog log;
//   options.op_log = &log;
//   ... use the manager ...
//   auto twin = ReplayOpLog(log.contents());
//   (*twin)->Fingerprint() == manager->Fingerprint();
//
// The log is the concatenation of the records, so that a sink may be a file, a
// socket or a ring. What a record holds: op_log_format.h.

#ifndef PAGED_KV_OP_LOG_H_
#define PAGED_KV_OP_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "paged_kv/eviction_policy.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/kv_cache_options.h"

namespace paged_kv {

// Where a manager writes its records.
//
// Thread safety: called under the manager's synchronization, so that the order
// of the records is the order in which the calls took effect.
class OpLog {
 public:
  virtual ~OpLog() = default;

  // Takes one whole record, which is valid for the call only. The manager has
  // applied the operation already; a sink that fails has to remember it.
  virtual void Append(absl::string_view record) = 0;
};

// Keeps the log in memory.
class StringOpLog : public OpLog {
 public:
  void Append(absl::string_view record) override {
    contents_.append(record.data(), record.size());
  }

  const std::string& contents() const { return contents_; }

 private:
  std::string contents_;
};

// What a log cannot hold, and what it may ask for.
struct ReplayOptions {
  // For logs of managers with an eviction policy of the embedder's own; those
  // of this library are known by the log.
  EvictionPolicyFactory eviction = nullptr;
  // Any hash gives the same results; null: the default one.
  HashFunction hash = nullptr;
  // Refuses logs whose manager would need more than about this for metadata.
  uint64_t max_metadata_bytes = uint64_t{16} << 30;
  // Where the twin records in its turn; borrowed; may be null.
  OpLog* op_log = nullptr;
};

// Makes a metadata-only manager with the options of the log's first record and
// applies the others to it, comparing every result with the recorded one.
// DataLoss, with the number of the record (from 0), if the log is cut inside a
// record or corrupt, or an operation gave another result than recorded.
// InvalidArgument if the log needs ReplayOptions::eviction and it is null.
// ResourceExhausted beyond max_metadata_bytes.
absl::StatusOr<std::unique_ptr<KvCacheManager>> ReplayOpLog(
    absl::string_view log, const ReplayOptions& options = {});

}  // namespace paged_kv

#endif  // PAGED_KV_OP_LOG_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_INTERRUPT_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_INTERRUPT_H_

#include <csignal>

namespace paged_kv::tool {

// While it lives, Ctrl-C (SIGINT) and SIGTERM ask the command to finish what it
// shows instead of ending the process; a second one ends it.
//
// Thread safety: one at a time in a process.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  struct sigaction interrupt_before_;
  struct sigaction terminate_before_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_INTERRUPT_H_

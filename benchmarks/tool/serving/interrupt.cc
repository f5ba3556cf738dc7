// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/interrupt.h"

namespace paged_kv::tool {
namespace {

volatile std::sig_atomic_t interrupted_flag = 0;

void OnSignal(int) { interrupted_flag = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted_flag = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  // The second signal does what it would have done without us. No SA_RESTART,
  // so that a read of standard input returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

bool InterruptGuard::interrupted() const { return interrupted_flag != 0; }

}  // namespace paged_kv::tool

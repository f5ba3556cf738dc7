// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_MODELLED_TIMES_H_
#define PAGED_KV_FPGA_DMA_MODELLED_TIMES_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace paged_kv::fpga_dma {

enum class CallKind : uint8_t { kUpload, kDownload, kCopy, kKernel };

// The clock of a card whose blocking calls return at once and take modelled
// time. Who makes the calls announces each in the order of submission, makes
// it on any thread, and lets the modelled card take the calls up when they have
// really returned, so that times do not depend on what real threads do when.
//
// Thread safety: Bind() and the calls themselves in any thread, all else by
// one thread at a time.
class ModelledTimes {
 public:
  virtual ~ModelledTimes() = default;

  struct Announced {
    uint64_t ticket = 0;
    // The call will not return before the card is reset.
    bool hangs = false;
  };
  // A call of `kind` on channel or compute unit `index` (0 for copies) is
  // submitted.
  virtual Announced Announce(CallKind kind, uint32_t index) = 0;

  // The next call that this thread makes to the card is that of `ticket`.
  virtual void Bind(uint64_t ticket) = 0;

  struct Finish {
    uint64_t ticket = 0;
    absl::Time started;
    absl::Time finished;
  };
  // Channels and units that are free at `now` take up their next calls; then
  // the call in progress that finishes first, if there is one. Calls that
  // hang, and those behind them, do not finish.
  // REQUIRES: all announced calls have returned, but those that hang or wait
  // for one that does.
  virtual std::optional<Finish> NextFinish(absl::Time now) = 0;

  // That call has finished: its channel or unit is free.
  virtual void Retire(uint64_t ticket) = 0;

  // No announced call is of interest any more; all is idle at `now`.
  virtual void GiveUp(absl::Time now) = 0;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_MODELLED_TIMES_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver library's own symbol: the virtual clock and the reset in C.

#include "absl/time/time.h"
#include "fpga_dma/emulated_card/card.h"
#include "fpga_dma/emulated_card/emulated_card.h"
#include "fpga_dma/emulated_card/ticks.h"
#include "fpga_dma/emulated_card/xcl_driver.h"

namespace paged_kv::fpga_dma {
namespace {

Card* ToCard(void* card) { return static_cast<Card*>(card); }

void* Find(void* device) { return FindCard(device); }

int32_t HasVirtualClock(void* card) {
  return ToCard(card)->has_virtual_clock() ? 1 : 0;
}

uint32_t Channels(void* card) { return ToCard(card)->board().dma.channels; }

CallKind ToCallKind(PagedKvCallKind kind) {
  switch (kind) {
    case kPagedKvUpload:
      return CallKind::kUpload;
    case kPagedKvDownload:
      return CallKind::kDownload;
    case kPagedKvCopy:
      return CallKind::kCopy;
    case kPagedKvKernel:
      break;
  }
  return CallKind::kKernel;
}

uint64_t Announce(void* card, PagedKvCallKind kind, uint32_t index,
                  int32_t* hangs) {
  bool will_hang = false;
  const uint64_t ticket =
      ToCard(card)->Announce(ToCallKind(kind), index, &will_hang);
  *hangs = will_hang ? 1 : 0;
  return ticket;
}

void Bind(uint64_t ticket) { Card::Bind(ticket); }

int32_t NextFinish(void* card, int64_t now_ticks, PagedKvFinish* finish) {
  const auto next = ToCard(card)->NextFinish(FromTicks(now_ticks));
  if (!next.has_value()) return 0;
  finish->ticket = next->ticket;
  finish->started_ticks = ToTicks(next->started);
  finish->finished_ticks = ToTicks(next->finished);
  return 1;
}

void Retire(void* card, uint64_t ticket) { ToCard(card)->Retire(ticket); }

void GiveUp(void* card, int64_t now_ticks) {
  ToCard(card)->GiveUp(FromTicks(now_ticks));
}

int32_t Reset(void* card) { return ToCard(card)->Reset(); }

constexpr PagedKvEmulatedCard kInterface = {PAGEDKV_EMULATED_CARD_VERSION,
                                            &Find,
                                            &HasVirtualClock,
                                            &Channels,
                                            &Announce,
                                            &Bind,
                                            &NextFinish,
                                            &Retire,
                                            &GiveUp,
                                            &Reset};

}  // namespace
}  // namespace paged_kv::fpga_dma

extern "C" const PagedKvEmulatedCard* pagedkv_emulated_card() {
  return &paged_kv::fpga_dma::kInterface;
}

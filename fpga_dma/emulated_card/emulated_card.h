// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the emulated card's driver library offers beside the driver interface
// of XRT: its virtual clock, and a reset. A program that drives whatever card
// there is looks the one symbol up (dlsym) and does without where it is
// missing. Plain C.
//
// Blocking calls of the driver return as soon as they have done their work.
// Who wants modelled times announces each call, binds it to the thread that
// makes it, and asks for the calls' ends in virtual time afterwards; see
// modelled_times.h, whose words these are.

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_EMULATED_CARD_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_EMULATED_CARD_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAGEDKV_EMULATED_CARD_VERSION 1
// A tick is a quarter of a nanosecond, the resolution of absl::Time.
#define PAGEDKV_EMULATED_CARD_TICKS_PER_NS 4
#define PAGEDKV_EMULATED_CARD_SYMBOL "pagedkv_emulated_card"

enum PagedKvCallKind {
  kPagedKvUpload = 0,
  kPagedKvDownload = 1,
  kPagedKvCopy = 2,
  kPagedKvKernel = 3
};

struct PagedKvFinish {
  uint64_t ticket;
  int64_t started_ticks;
  int64_t finished_ticks;
};

// `card` is what `find` returned; it stays valid while some XRT device of it
// is open. Times are ticks from an arbitrary zero.
struct PagedKvEmulatedCard {
  uint32_t version;  // PAGEDKV_EMULATED_CARD_VERSION

  // The card of an open XRT device (an xclDeviceHandle). Null if that handle is
  // not of this driver.
  void* (*find)(void* device);
  // 0: the card lets its calls block for as long as they take.
  int32_t (*has_virtual_clock)(void* card);
  // DMA channels per direction.
  uint32_t (*channels)(void* card);

  // A ticket for a call of this kind on channel or compute unit `index` (0 for
  // copies), submitted after all that were announced before; *hangs is set to
  // whether it will not return before a reset.
  uint64_t (*announce)(void* card, enum PagedKvCallKind kind, uint32_t index,
                       int32_t* hangs);
  // The next call of the calling thread is that of `ticket`.
  void (*bind)(uint64_t ticket);
  // Free channels and units take up their next calls at `now_ticks`; then the
  // call in progress that finishes first. 0 if there is none.
  int32_t (*next_finish)(void* card, int64_t now_ticks,
                         struct PagedKvFinish* finish);
  void (*retire)(void* card, uint64_t ticket);
  void (*give_up)(void* card, int64_t now_ticks);

  // Resets the card, which XRT's API does not offer: calls that hang return,
  // memory is lost, a card that had dropped off comes back. 0, or a negative
  // errno value if it stays away.
  int32_t (*reset)(void* card);
};

// The symbol.
const struct PagedKvEmulatedCard* pagedkv_emulated_card(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_EMULATED_CARD_H_

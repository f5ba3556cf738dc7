// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/xrt_emulated_times.h"

#include <dlfcn.h>

#include "absl/time/time.h"
#include "fpga_dma/emulated_card/ticks.h"

namespace paged_kv::fpga_dma {
namespace {

// XRT loads its driver library with RTLD_GLOBAL, so the default search finds
// the symbol once a device was opened.
const PagedKvEmulatedCard* FindApi() {
  void* symbol = dlsym(RTLD_DEFAULT, PAGEDKV_EMULATED_CARD_SYMBOL);
  if (symbol == nullptr) return nullptr;
  const auto get = reinterpret_cast<decltype(&pagedkv_emulated_card)>(symbol);
  const PagedKvEmulatedCard* api = get();
  return api->version == PAGEDKV_EMULATED_CARD_VERSION ? api : nullptr;
}

PagedKvCallKind ToCallKind(CallKind kind) {
  switch (kind) {
    case CallKind::kUpload:
      return kPagedKvUpload;
    case CallKind::kDownload:
      return kPagedKvDownload;
    case CallKind::kCopy:
      return kPagedKvCopy;
    case CallKind::kKernel:
      break;
  }
  return kPagedKvKernel;
}

}  // namespace

std::unique_ptr<XrtEmulatedTimes> XrtEmulatedTimes::Find(void* device_handle) {
  const PagedKvEmulatedCard* api = FindApi();
  if (api == nullptr) return nullptr;
  void* card = api->find(device_handle);
  if (card == nullptr || api->has_virtual_clock(card) == 0) return nullptr;
  return std::unique_ptr<XrtEmulatedTimes>(new XrtEmulatedTimes(api, card));
}

bool XrtEmulatedTimes::IsEmulated(void* device_handle) {
  const PagedKvEmulatedCard* api = FindApi();
  return api != nullptr && api->find(device_handle) != nullptr;
}

void XrtEmulatedTimes::ResetIfEmulated(void* device_handle) {
  const PagedKvEmulatedCard* api = FindApi();
  if (api == nullptr) return;
  void* card = api->find(device_handle);
  // Whether it came back shows when it is loaded again.
  if (card != nullptr) api->reset(card);
}

ModelledTimes::Announced XrtEmulatedTimes::Announce(CallKind kind,
                                                    uint32_t index) {
  int32_t hangs = 0;
  const uint64_t ticket =
      api_->announce(card_, ToCallKind(kind), index, &hangs);
  return {ticket, hangs != 0};
}

void XrtEmulatedTimes::Bind(uint64_t ticket) { api_->bind(ticket); }

std::optional<ModelledTimes::Finish> XrtEmulatedTimes::NextFinish(
    absl::Time now) {
  PagedKvFinish finish;
  if (api_->next_finish(card_, ToTicks(now), &finish) == 0) {
    return std::nullopt;
  }
  return Finish{finish.ticket, FromTicks(finish.started_ticks),
                FromTicks(finish.finished_ticks)};
}

void XrtEmulatedTimes::Retire(uint64_t ticket) { api_->retire(card_, ticket); }

void XrtEmulatedTimes::GiveUp(absl::Time now) {
  api_->give_up(card_, ToTicks(now));
}

}  // namespace paged_kv::fpga_dma

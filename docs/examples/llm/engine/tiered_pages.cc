// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/tiered_pages.h"

#include <cstring>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

constexpr std::align_val_t kAlignment{4096};

}  // namespace

void TieredPages::Free::operator()(void* memory) const {
  ::operator delete(memory, kAlignment);
}

absl::StatusOr<std::unique_ptr<TieredPages>> TieredPages::Create(
    const BlockShape& shape, uint32_t host_pages, uint32_t device_pages) {
  PAGED_KV_RETURN_IF_ERROR(Validate(shape));
  const uint64_t pages = uint64_t{host_pages} + device_pages;
  const uint64_t bytes = pages * PageBytes(shape).value();
  void* memory = ::operator new(bytes, kAlignment, std::nothrow);
  if (memory == nullptr || pages > UINT32_MAX) {
    Free()(memory);
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", pages, " pages, ", bytes, " bytes"));
  }
  // Kernels may read slots behind the last token, and what they read there must
  // be numbers.
  std::memset(memory, 0, bytes);
  return std::unique_ptr<TieredPages>(
      new TieredPages(shape, host_pages, device_pages,
                      Memory(static_cast<std::byte*>(memory))));
}

TieredPages::TieredPages(const BlockShape& shape, uint32_t host_pages,
                         uint32_t device_pages, Memory memory)
    : page_bytes_(PageBytes(shape).value()),
      first_device_page_(host_pages),
      memory_(std::move(memory)),
      pages_{shape, OwnPageLayout(shape, memory_.get()),
             host_pages + device_pages} {}

uint32_t TieredPages::IndexOf(Tier tier, uint32_t page) const {
  const uint32_t index = tier == Tier::kHost ? page : first_device_page_ + page;
  PAGED_KV_CHECK(index < pages_.num_pages);
  return index;
}

void TieredPages::Move(const TierTransfer& transfer) {
  std::memcpy(PageOf(transfer.target_tier, transfer.target_page),
              PageOf(transfer.source_tier, transfer.source_page), page_bytes_);
}

}  // namespace paged_kv::llm

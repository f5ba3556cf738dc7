// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The board files as text; the source is generated when the build is
// configured.

#ifndef PAGED_KV_FPGA_DMA_CARD_MODEL_BUILTIN_BOARDS_H_
#define PAGED_KV_FPGA_DMA_CARD_MODEL_BUILTIN_BOARDS_H_

#include "absl/types/span.h"

namespace paged_kv::fpga_dma::internal {

struct BuiltinBoardText {
  const char* name;
  const char* json;
};
absl::Span<const BuiltinBoardText> BuiltinBoardTexts();

}  // namespace paged_kv::fpga_dma::internal

#endif  // PAGED_KV_FPGA_DMA_CARD_MODEL_BUILTIN_BOARDS_H_

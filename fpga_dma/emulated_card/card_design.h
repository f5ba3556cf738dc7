// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The design that an emulated card is loaded with: the project's kernels on a
// board's compute units, connected as the board says.

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_DESIGN_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_DESIGN_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/xclbin/xclbin_file.h"
#include "fpga_dma/xclbin/xclbin_writer.h"

namespace paged_kv::fpga_dma {

// InvalidArgument or NotFound: the board's compute units and `kernels` do not
// fit, see KernelRunner::Create().
absl::StatusOr<xclbin::Design> MakeCardDesign(
    const Board& board, absl::Span<const KernelSpec> kernels);

// That design as an xclbin file of all kernels of the project.
absl::StatusOr<std::vector<char>> PackCardXclbin(const Board& board);

// InvalidArgument unless `file` is that design: it is for a real card, for
// another board, or was packed by another version of the project. Says which,
// and what to do.
absl::Status CheckCardDesign(const xclbin::XclbinFile& file,
                             const Board& board);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_DESIGN_H_

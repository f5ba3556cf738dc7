// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/emulated_card/card_design.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fpga_dma/card_model/kernel_runner.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

// What stands in the place of a bitstream.
constexpr absl::string_view kDesignMark = "PagedKV emulated design 1\n";

std::string BitstreamText(const Board& board) {
  return absl::StrCat(kDesignMark, "board ", board.name, "\n");
}

xclbin::DesignKernel ToDesignKernel(const KernelSpec& spec) {
  xclbin::DesignKernel kernel{std::string(spec.name), {}};
  for (const KernelArgumentSpec& argument : spec.arguments) {
    kernel.arguments.push_back({std::string(argument.name), argument.is_address,
                                argument.width_bytes});
  }
  return kernel;
}

absl::string_view ToText(absl::Span<const char> bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace

absl::StatusOr<xclbin::Design> MakeCardDesign(
    const Board& board, absl::Span<const KernelSpec> kernels) {
  PAGED_KV_ASSIGN_OR_RETURN(const KernelRunner runner,
                            KernelRunner::Create(board, kernels));
  xclbin::Design design;
  design.platform = absl::StrCat("pagedkv_emulated_", board.name);
  design.clock_mhz = static_cast<uint32_t>(std::lround(board.clock_hz / 1e6));
  design.bitstream = BitstreamText(board);
  for (const BoardBank& bank : board.banks) {
    const bool hbm = absl::StartsWith(bank.name, "HBM");
    design.memories.push_back(
        {bank.name, hbm ? xclbin::MemoryType::kHbm : xclbin::MemoryType::kDdr4,
         bank.bytes, bank.base_address});
  }
  for (const KernelSpec& kernel : kernels) {
    const bool used = absl::c_any_of(
        board.compute_units,
        [&](const auto& unit) { return unit.kernel == kernel.name; });
    if (used) design.kernels.push_back(ToDesignKernel(kernel));
  }
  for (uint32_t i = 0; i < board.compute_units.size(); ++i) {
    xclbin::DesignUnit unit{
        board.compute_units[i].kernel, board.compute_units[i].instance, {}};
    for (const BankId bank : runner.argument_banks(i)) {
      unit.argument_memories.push_back(
          bank == kNoBank ? -1 : static_cast<int32_t>(bank.value()));
    }
    design.units.push_back(std::move(unit));
  }
  return design;
}

absl::StatusOr<std::vector<char>> PackCardXclbin(const Board& board) {
  PAGED_KV_ASSIGN_OR_RETURN(const xclbin::Design design,
                            MakeCardDesign(board, Kernels()));
  return xclbin::PackXclbin(design);
}

absl::Status CheckCardDesign(const xclbin::XclbinFile& file,
                             const Board& board) {
  using xclbin::SectionKind;
  PAGED_KV_ASSIGN_OR_RETURN(std::vector<char> content, PackCardXclbin(board));
  PAGED_KV_ASSIGN_OR_RETURN(
      const xclbin::XclbinFile wanted,
      xclbin::XclbinFile::Parse(std::move(content), "packed design"));
  const absl::string_view mark = ToText(*file.Section(SectionKind::kBitstream));
  if (!absl::StartsWith(mark, kDesignMark)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the xclbin (platform ", file.platform(),
                     ") holds a bitstream for a real card; pack one for the "
                     "emulated card with pagedkv_pack_xclbin"));
  }
  for (const SectionKind kind :
       {SectionKind::kBitstream, SectionKind::kMemTopology,
        SectionKind::kIpLayout, SectionKind::kConnectivity,
        SectionKind::kEmbeddedMetadata}) {
    if (ToText(*file.Section(kind)) == ToText(*wanted.Section(kind))) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the xclbin is for ", file.platform(), " and differs from the design ",
        "of this card, ", wanted.platform(), ", in section ",
        static_cast<uint32_t>(kind),
        "; pack it again with pagedkv_pack_xclbin"));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::fpga_dma

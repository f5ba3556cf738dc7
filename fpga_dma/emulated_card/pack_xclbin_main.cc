// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// pagedkv_pack_xclbin BOARD OUTPUT: packs the project's kernels on a board as
// an xclbin for the emulated card. BOARD is u250, u280, u55c or a board file.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/emulated_card/card_design.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

absl::Status Pack(const std::string& board_name, const std::string& output) {
  const bool is_file =
      absl::StrContains(board_name, '/') || absl::EndsWith(board_name, ".json");
  PAGED_KV_ASSIGN_OR_RETURN(const Board board, is_file
                                                   ? LoadBoard(board_name)
                                                   : BuiltinBoard(board_name));
  PAGED_KV_ASSIGN_OR_RETURN(const std::vector<char> content,
                            PackCardXclbin(board));
  std::ofstream stream(output, std::ios::binary);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream) {
    return absl::UnknownError(absl::StrCat("cannot write ", output));
  }
  std::printf("%s: board %s, %zu banks, %zu compute units, %zu bytes\n",
              output.c_str(), board.name.c_str(), board.banks.size(),
              board.compute_units.size(), content.size());
  return absl::OkStatus();
}

}  // namespace
}  // namespace paged_kv::fpga_dma

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(
        stderr,
        "usage: %s BOARD OUTPUT\n"
        "BOARD is one of %s, or a board file (*.json)\n",
        argv[0],
        absl::StrJoin(paged_kv::fpga_dma::BuiltinBoardNames(), ", ").c_str());
    return 2;
  }
  const absl::Status status = paged_kv::fpga_dma::Pack(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "pagedkv_pack_xclbin: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

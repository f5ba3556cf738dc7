// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/open_card.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmarks/tool/file_io.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/simulated_device.h"
#include "paged_kv/status_macros.h"

#ifdef PAGED_KV_TOOL_HAS_XRT
#include "fpga_dma/emulated_card/card_design.h"
#include "fpga_dma/xrt_device.h"
#endif

namespace paged_kv::tool {
namespace {

using fpga_dma::Board;

absl::StatusOr<Board> FindBoard(const std::string& name) {
  if (absl::StrContains(name, '/') || absl::EndsWith(name, ".json")) {
    return fpga_dma::LoadBoard(name);
  }
  return fpga_dma::BuiltinBoard(name);
}

absl::StatusOr<OpenedCard> OpenSimulated(const Board& board) {
  fpga_dma::SimulatedDeviceOptions options;
  options.board = board;
  options.kernels = fpga_dma::Kernels();
  PAGED_KV_ASSIGN_OR_RETURN(
      std::unique_ptr<fpga_dma::SimulatedDevice> device,
      fpga_dma::SimulatedDevice::Create(std::move(options)));
  return OpenedCard{std::move(device), "simulated in this process", board};
}

#ifdef PAGED_KV_TOOL_HAS_XRT

// Beside this program, where the build leaves the emulated card's driver; an
// empty path if it is not there.
std::filesystem::path EmulatedCardRoot() {
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path root =
      program.parent_path().parent_path() / "emulated_card";
  const bool found =
      std::filesystem::exists(root / "lib" / "libxrt_core.so.2", error);
  return found ? root : std::filesystem::path();
}

// XRT reads designs from files.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::error_code error;
    std::string name =
        (std::filesystem::temp_directory_path(error) / "pagedkv.XXXXXX")
            .string();
    const int file = mkstemp(name.data());
    if (file < 0) return;
    close(file);
    path_ = name;
  }
  ~TemporaryFile() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove(path_, error);
  }
  const std::string& path() const { return path_; }  // empty: none

 private:
  std::string path_;
};

absl::StatusOr<OpenedCard> OpenEmulated(const std::string& name,
                                        const Board& board,
                                        const std::filesystem::path& root) {
  PAGED_KV_ASSIGN_OR_RETURN(const std::vector<char> design,
                            fpga_dma::PackCardXclbin(board));
  const TemporaryFile file;
  if (file.path().empty()) {
    return absl::UnavailableError(
        "cannot make a temporary file for the card's design; set TMPDIR to a "
        "folder that can be written");
  }
  PAGED_KV_RETURN_IF_ERROR(
      WriteFile(file.path(), absl::string_view(design.data(), design.size())));
  setenv("XILINX_XRT", root.c_str(), 1);
  setenv("PAGEDKV_CARD_BOARD", name.c_str(), 1);
  unsetenv("XCL_EMULATION_MODE");  // it makes XRT load another driver
  fpga_dma::XrtDeviceOptions options;
  options.xclbin = file.path();
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<fpga_dma::Device> device,
                            fpga_dma::OpenXrtDevice(options));
  return OpenedCard{std::move(device), "emulated, driven through XRT", board,
                    true};
}

absl::StatusOr<OpenedCard> OpenReal(const CardChoice& choice) {
  if (choice.xclbin.empty()) {
    return absl::InvalidArgumentError(
        "--device needs --xclbin, the design to load (docs/fpga.md says how to "
        "build one)");
  }
  fpga_dma::XrtDeviceOptions options;
  options.device = choice.device;
  options.xclbin = choice.xclbin;
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<fpga_dma::Device> device,
                            fpga_dma::OpenXrtDevice(options));
  return OpenedCard{std::move(device), "driven through XRT", absl::nullopt,
                    true};
}

#endif  // PAGED_KV_TOOL_HAS_XRT

}  // namespace

absl::StatusOr<OpenedCard> OpenCard(const CardChoice& choice) {
  if (!choice.xclbin.empty() && choice.device.empty()) {
    return absl::InvalidArgumentError(
        "--xclbin is for a card: name it with --device (an index or a PCIe "
        "address; 'pagedkv card --info' lists them)");
  }
#ifdef PAGED_KV_TOOL_HAS_XRT
  if (!choice.device.empty()) return OpenReal(choice);
#else
  if (!choice.device.empty()) {
    return absl::FailedPreconditionError(
        "this pagedkv was built without XRT: install libxrt-dev and uuid-dev "
        "and build again");
  }
#endif
  PAGED_KV_ASSIGN_OR_RETURN(const Board board, FindBoard(choice.board));
#ifdef PAGED_KV_TOOL_HAS_XRT
  const std::filesystem::path root = EmulatedCardRoot();
  if (!root.empty()) return OpenEmulated(choice.board, board, root);
#endif
  return OpenSimulated(board);
}

std::string DescribeCards() {
  std::string text =
      absl::StrCat("boards without hardware (--board): ",
                   absl::StrJoin(fpga_dma::BuiltinBoardNames(), ", "), "\n");
#ifdef PAGED_KV_TOOL_HAS_XRT
  const fpga_dma::XrtInfo info = fpga_dma::DescribeXrt();
  absl::StrAppend(&text, "XRT ", info.headers_version, ", XILINX_XRT=",
                  info.xilinx_xrt.empty() ? "(not set)" : info.xilinx_xrt,
                  "\n");
  for (const fpga_dma::XrtCardInfo& card : info.cards) {
    absl::StrAppend(&text, "card ", card.index, ": ", card.name,
                    card.address.empty() ? "" : " at ", card.address,
                    card.emulated ? " (emulated)" : "",
                    card.problem.empty() ? "" : ": ", card.problem, "\n");
  }
  if (!info.advice.empty()) absl::StrAppend(&text, info.advice, "\n");
#else
  absl::StrAppend(&text,
                  "built without XRT: install libxrt-dev and uuid-dev and "
                  "build again to drive cards\n");
#endif
  return text;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_FILE_H_
#define PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_FILE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "fpga_dma/xclbin/xclbin_format.h"

namespace paged_kv::fpga_dma::xclbin {

struct MemoryEntry {
  std::string tag;  // "DDR[0]"
  uint8_t type = 0;
  bool used = false;  // false: the design does not connect this memory
  uint64_t bytes = 0;
  uint64_t base_address = 0;
};

struct UnitEntry {
  std::string kernel;    // "paged_decode"
  std::string instance;  // "paged_decode_1"
  uint64_t base_address = 0;
  int32_t ip = 0;  // index in the IP layout, which may hold more than units
};

// A checked xclbin. XRT 2.13 crashes on empty, truncated and some foreign
// files, so nothing goes to XRT that has not passed Parse().
//
// Thread safety: immutable.
class XclbinFile {
 public:
  // Reads and checks `path`. NotFound, PermissionDenied, or as Parse().
  static absl::StatusOr<XclbinFile> Read(const std::string& path);
  // Checks `content`; `name` is for messages. InvalidArgument with what is
  // wrong and what to do: empty, truncated, not an xclbin, a section that is
  // missing or does not fit.
  static absl::StatusOr<XclbinFile> Parse(std::vector<char> content,
                                          absl::string_view name);

  // The whole file, 8-byte aligned, for XRT.
  absl::Span<const char> content() const { return content_; }
  // A section's bytes, or nothing.
  std::optional<absl::Span<const char>> Section(SectionKind kind) const;

  const Header& header() const { return header_; }
  const std::string& platform() const { return platform_; }
  std::array<uint8_t, 16> uuid() const;
  // In the order of the file: the index is XRT's memory index. [memories]
  const std::vector<MemoryEntry>& memories() const { return memories_; }
  // Kernel instances alone, by base address. [units]
  const std::vector<UnitEntry>& units() const { return units_; }
  const std::vector<Connection>& connections() const { return connections_; }
  // The memories that argument `argument` of `unit` is connected to.
  std::vector<int32_t> MemoriesOf(const UnitEntry& unit,
                                  int32_t argument) const;

 private:
  XclbinFile() = default;
  absl::Status ParseHeader();
  absl::Status ParseSections();
  absl::Status ParseMemories();
  absl::Status ParseUnits();
  absl::Status ParseConnections();
  absl::Status Bad(absl::string_view what) const;

  std::string name_;
  std::vector<char> content_;
  Header header_;
  std::string platform_;
  std::vector<SectionHeader> sections_;
  std::vector<MemoryEntry> memories_;
  std::vector<UnitEntry> units_;
  std::vector<Connection> connections_;
  int32_t ip_count_ = 0;
};

}  // namespace paged_kv::fpga_dma::xclbin

#endif  // PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_FILE_H_

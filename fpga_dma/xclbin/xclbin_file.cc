// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/xclbin/xclbin_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma::xclbin {
namespace {

// Text in a fixed field; nothing if it is not terminated.
template <size_t n>
std::optional<std::string> FieldText(const char (&field)[n]) {
  const char* end = std::find(field, field + n, '\0');
  if (end == field + n) return std::nullopt;
  return std::string(field, end);
}

template <typename T>
T ReadAt(absl::Span<const char> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// The entries of a counted table, or nothing if they do not fit the section.
template <typename Entry>
std::optional<std::vector<Entry>> ReadTable(absl::Span<const char> section,
                                            uint64_t header_bytes) {
  if (section.size() < header_bytes) return std::nullopt;
  const auto count = ReadAt<int32_t>(section, 0);
  if (count < 0) return std::nullopt;
  const uint64_t room = (section.size() - header_bytes) / sizeof(Entry);
  if (static_cast<uint64_t>(count) > room) return std::nullopt;
  std::vector<Entry> entries(static_cast<size_t>(count));
  if (count > 0) {
    std::memcpy(entries.data(), section.data() + header_bytes,
                entries.size() * sizeof(Entry));
  }
  return entries;
}

absl::string_view SectionName(SectionKind kind) {
  switch (kind) {
    case SectionKind::kBitstream:
      return "bitstream";
    case SectionKind::kEmbeddedMetadata:
      return "embedded metadata";
    case SectionKind::kMemTopology:
      return "memory topology";
    case SectionKind::kConnectivity:
      return "connectivity";
    case SectionKind::kIpLayout:
      return "IP layout";
    case SectionKind::kGroupTopology:
      return "group topology";
    case SectionKind::kGroupConnectivity:
      return "group connectivity";
  }
  return "unknown";
}

}  // namespace

absl::StatusOr<XclbinFile> XclbinFile::Read(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(
        absl::StrCat("xclbin ", path, ": there is no such file"));
  }
  if (kind == std::filesystem::file_type::directory) {
    return absl::InvalidArgumentError(
        absl::StrCat("xclbin ", path, ": a folder, not a file"));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return absl::PermissionDeniedError(
        absl::StrCat("xclbin ", path, ": cannot be opened for reading"));
  }
  std::vector<char> content{std::istreambuf_iterator<char>(stream),
                            std::istreambuf_iterator<char>()};
  return Parse(std::move(content), path);
}

absl::StatusOr<XclbinFile> XclbinFile::Parse(std::vector<char> content,
                                             absl::string_view name) {
  XclbinFile file;
  file.name_ = std::string(name);
  file.content_ = std::move(content);
  PAGED_KV_RETURN_IF_ERROR(file.ParseHeader());
  PAGED_KV_RETURN_IF_ERROR(file.ParseSections());
  PAGED_KV_RETURN_IF_ERROR(file.ParseMemories());
  PAGED_KV_RETURN_IF_ERROR(file.ParseUnits());
  PAGED_KV_RETURN_IF_ERROR(file.ParseConnections());
  return file;
}

absl::Status XclbinFile::Bad(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "xclbin ", name_, ": ", what,
      "; build it with v++ or pagedkv_pack_xclbin and copy it whole"));
}

absl::Status XclbinFile::ParseHeader() {
  if (content_.empty()) return Bad("the file is empty");
  const size_t magic_bytes = std::min(content_.size(), sizeof(kMagic));
  if (std::memcmp(content_.data(), kMagic, magic_bytes) != 0) {
    return Bad("not an xclbin (it does not start with \"xclbin2\")");
  }
  if (content_.size() < sizeof(Header)) {
    return Bad(absl::StrCat("truncated: ", content_.size(),
                            " bytes, the header alone has ", sizeof(Header)));
  }
  header_ = ReadAt<Header>(content_, 0);
  const uint64_t signature =
      header_.signature_bytes > 0
          ? static_cast<uint64_t>(header_.signature_bytes)
          : 0;
  if (header_.length > content_.size()) {
    return Bad(absl::StrCat("truncated: ", content_.size(), " of ",
                            header_.length, " bytes"));
  }
  if (content_.size() - header_.length > signature) {
    return Bad(absl::StrCat(content_.size() - header_.length,
                            " bytes follow its end"));
  }
  const std::optional<std::string> platform = FieldText(header_.platform_name);
  if (!platform.has_value()) return Bad("its platform name has no end");
  platform_ = *platform;
  return absl::OkStatus();
}

absl::Status XclbinFile::ParseSections() {
  const uint64_t count = header_.section_count;
  if (count == 0 || count > kMaxSections) {
    return Bad(absl::StrCat("it has ", count, " sections"));
  }
  const uint64_t end_of_table = sizeof(Header) + count * sizeof(SectionHeader);
  if (end_of_table > header_.length) {
    return Bad(absl::StrCat("truncated: ", count, " section headers in ",
                            header_.length, " bytes"));
  }
  for (uint64_t i = 0; i < count; ++i) {
    const auto section = ReadAt<SectionHeader>(
        content_, sizeof(Header) + i * sizeof(SectionHeader));
    if (section.offset < end_of_table || section.offset > header_.length ||
        section.bytes > header_.length - section.offset) {
      return Bad(absl::StrCat("section ", i, " (kind ", section.kind,
                              ") lies at ", section.offset, " + ",
                              section.bytes, " of ", header_.length, " bytes"));
    }
    sections_.push_back(section);
  }
  for (const SectionKind kind :
       {SectionKind::kBitstream, SectionKind::kEmbeddedMetadata,
        SectionKind::kMemTopology, SectionKind::kConnectivity,
        SectionKind::kIpLayout}) {
    const auto section = Section(kind);
    if (!section.has_value() || section->empty()) {
      return Bad(absl::StrCat("it has no ", SectionName(kind), " section"));
    }
  }
  const auto xml = *Section(SectionKind::kEmbeddedMetadata);
  if (!absl::StrContains(absl::string_view(xml.data(), xml.size()),
                         "<project")) {
    return Bad("its embedded metadata is not a project description");
  }
  return absl::OkStatus();
}

absl::Status XclbinFile::ParseMemories() {
  for (const SectionKind kind :
       {SectionKind::kGroupTopology, SectionKind::kMemTopology}) {
    const auto section = Section(kind);
    if (!section.has_value()) continue;
    const auto table = ReadTable<Memory>(*section, kTopologyHeaderBytes);
    if (!table.has_value()) {
      return Bad(absl::StrCat("its ", SectionName(kind),
                              " is longer than the section"));
    }
    if (kind != SectionKind::kMemTopology) continue;
    for (const Memory& memory : *table) {
      const auto tag = FieldText(memory.tag);
      constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
      if (!tag.has_value()) return Bad("a memory's name has no end");
      const bool addressed =
          memory.type != static_cast<uint8_t>(MemoryType::kStreaming);
      if (addressed && (memory.size_kib > kMax >> 10 ||
                        memory.size_kib << 10 > kMax - memory.base_address)) {
        return Bad(absl::StrCat("memory ", *tag, " has ", memory.size_kib,
                                " KiB at ", memory.base_address));
      }
      memories_.push_back({*tag, memory.type, memory.used != 0,
                           addressed ? memory.size_kib << 10 : 0,
                           memory.base_address});
    }
  }
  const bool any_used = absl::c_any_of(
      memories_, [](const MemoryEntry& memory) { return memory.used; });
  if (!any_used) return Bad("it uses no memory");
  return absl::OkStatus();
}

absl::Status XclbinFile::ParseUnits() {
  const auto table =
      ReadTable<Ip>(*Section(SectionKind::kIpLayout), kIpLayoutHeaderBytes);
  if (!table.has_value()) {
    return Bad("its IP layout is longer than the section");
  }
  ip_count_ = static_cast<int32_t>(table->size());
  for (size_t i = 0; i < table->size(); ++i) {
    const Ip& ip = (*table)[i];
    const auto name = FieldText(ip.name);
    if (!name.has_value()) return Bad("a compute unit's name has no end");
    if (ip.type != kIpKernel) continue;
    const size_t colon = name->find(':');
    if (colon == std::string::npos) {
      return Bad(absl::StrCat("compute unit \"", *name,
                              "\" is not named kernel:instance"));
    }
    units_.push_back({name->substr(0, colon), name->substr(colon + 1),
                      ip.base_address, static_cast<int32_t>(i)});
  }
  if (units_.empty()) return Bad("it has no compute unit");
  absl::c_stable_sort(units_, [](const UnitEntry& a, const UnitEntry& b) {
    return a.base_address < b.base_address;
  });
  return absl::OkStatus();
}

absl::Status XclbinFile::ParseConnections() {
  for (const SectionKind kind :
       {SectionKind::kGroupConnectivity, SectionKind::kConnectivity}) {
    const auto section = Section(kind);
    if (!section.has_value()) continue;
    const auto table =
        ReadTable<Connection>(*section, kConnectivityHeaderBytes);
    if (!table.has_value()) {
      return Bad(absl::StrCat("its ", SectionName(kind),
                              " is longer than the section"));
    }
    if (kind == SectionKind::kConnectivity) connections_ = *table;
  }
  for (const Connection& connection : connections_) {
    const bool known =
        connection.argument >= 0 && connection.ip >= 0 &&
        connection.ip < ip_count_ && connection.memory >= 0 &&
        static_cast<size_t>(connection.memory) < memories_.size();
    if (!known) {
      return Bad(absl::StrCat("argument ", connection.argument, " of unit ",
                              connection.ip, " is connected to memory ",
                              connection.memory, " of ", memories_.size()));
    }
  }
  return absl::OkStatus();
}

std::optional<absl::Span<const char>> XclbinFile::Section(
    SectionKind kind) const {
  for (const SectionHeader& section : sections_) {
    if (section.kind == static_cast<uint32_t>(kind)) {
      return absl::MakeConstSpan(content_).subspan(section.offset,
                                                   section.bytes);
    }
  }
  return std::nullopt;
}

std::array<uint8_t, 16> XclbinFile::uuid() const {
  std::array<uint8_t, 16> uuid;
  absl::c_copy(header_.uuid, uuid.begin());
  return uuid;
}

std::vector<int32_t> XclbinFile::MemoriesOf(const UnitEntry& unit,
                                            int32_t argument) const {
  std::vector<int32_t> memories;
  for (const Connection& connection : connections_) {
    if (connection.ip == unit.ip && connection.argument == argument) {
      memories.push_back(connection.memory);
    }
  }
  return memories;
}

}  // namespace paged_kv::fpga_dma::xclbin

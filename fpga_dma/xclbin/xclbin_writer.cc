// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/xclbin/xclbin_writer.h"

#include <xxhash.h>

#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "fpga_dma/xclbin/design_metadata.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma::xclbin {
namespace {

template <typename T>
void AppendBytes(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <size_t n>
void SetField(const std::string& text, char (&field)[n]) {
  std::memcpy(field, text.data(), text.size());
}

absl::Status CheckName(const std::string& name, size_t max_length) {
  const bool plain = absl::c_all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("_[]-.").find(c) != absl::string_view::npos;
  });
  if (name.empty() || name.size() > max_length || !plain) {
    return absl::InvalidArgumentError(
        absl::StrCat("design: the name \"", name, "\" does not have 1 to ",
                     max_length, " letters, digits and _[]-."));
  }
  return absl::OkStatus();
}

absl::Status CheckUnit(const Design& design, const DesignUnit& unit) {
  Ip ip;
  PAGED_KV_RETURN_IF_ERROR(
      CheckName(unit.instance, sizeof(ip.name) - 2 - unit.kernel.size()));
  const auto kernel = absl::c_find_if(
      design.kernels,
      [&](const DesignKernel& k) { return k.name == unit.kernel; });
  if (kernel == design.kernels.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "design: unit ", unit.instance, " is of unknown kernel ", unit.kernel));
  }
  if (unit.argument_memories.size() != kernel->arguments.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("design: unit ", unit.instance, " connects ",
                     unit.argument_memories.size(), " arguments, ", unit.kernel,
                     " has ", kernel->arguments.size()));
  }
  for (size_t i = 0; i < kernel->arguments.size(); ++i) {
    const int32_t memory = unit.argument_memories[i];
    const bool valid = kernel->arguments[i].is_address
                           ? memory >= 0 && static_cast<size_t>(memory) <
                                                design.memories.size()
                           : memory == -1;
    if (!valid) {
      return absl::InvalidArgumentError(
          absl::StrCat("design: argument ", i, " of unit ", unit.instance,
                       " is connected to memory ", memory));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDesign(const Design& design) {
  const Header header;
  const Memory memory_entry;
  PAGED_KV_RETURN_IF_ERROR(
      CheckName(design.platform, sizeof(header.platform_name) - 1));
  if (design.memories.empty() || design.units.empty() ||
      design.bitstream.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("design: ", design.memories.size(), " memories, ",
                     design.units.size(), " units, ", design.bitstream.size(),
                     " bytes of bitstream; each has to be there"));
  }
  for (const DesignMemory& memory : design.memories) {
    PAGED_KV_RETURN_IF_ERROR(
        CheckName(memory.tag, sizeof(memory_entry.tag) - 1));
    if (memory.bytes == 0 || memory.bytes % 1024 != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("design: memory ", memory.tag, " has ", memory.bytes,
                       " bytes, not a multiple of 1 KiB"));
    }
  }
  for (const DesignKernel& kernel : design.kernels) {
    PAGED_KV_RETURN_IF_ERROR(CheckName(kernel.name, 40));
    for (const DesignArgument& argument : kernel.arguments) {
      PAGED_KV_RETURN_IF_ERROR(CheckName(argument.name, 40));
    }
  }
  for (const DesignUnit& unit : design.units) {
    PAGED_KV_RETURN_IF_ERROR(CheckUnit(design, unit));
  }
  return absl::OkStatus();
}

std::string MemTopology(const Design& design) {
  std::string bytes;
  AppendBytes(static_cast<uint64_t>(design.memories.size()), &bytes);
  for (const DesignMemory& memory : design.memories) {
    Memory entry;
    entry.type = static_cast<uint8_t>(memory.type);
    entry.used = 1;
    entry.size_kib = memory.bytes >> 10;
    entry.base_address = memory.base_address;
    SetField(memory.tag, entry.tag);
    AppendBytes(entry, &bytes);
  }
  return bytes;
}

std::string IpLayout(const Design& design) {
  std::string bytes;
  AppendBytes(static_cast<uint64_t>(design.units.size()), &bytes);
  for (size_t i = 0; i < design.units.size(); ++i) {
    Ip entry;
    entry.type = kIpKernel;
    entry.properties =
        kIpInterruptEnable | static_cast<uint32_t>(IpControl::kHandshake)
                                 << kIpControlShift;
    entry.base_address = UnitAddress(i);
    SetField(
        absl::StrCat(design.units[i].kernel, ":", design.units[i].instance),
        entry.name);
    AppendBytes(entry, &bytes);
  }
  return bytes;
}

std::string Connectivity(const Design& design) {
  std::vector<Connection> connections;
  for (size_t u = 0; u < design.units.size(); ++u) {
    const std::vector<int32_t>& memories = design.units[u].argument_memories;
    for (size_t a = 0; a < memories.size(); ++a) {
      if (memories[a] < 0) continue;
      connections.push_back(
          {static_cast<int32_t>(a), static_cast<int32_t>(u), memories[a]});
    }
  }
  std::string bytes;
  AppendBytes(static_cast<uint32_t>(connections.size()), &bytes);
  for (const Connection& connection : connections) {
    AppendBytes(connection, &bytes);
  }
  return bytes;
}

struct NamedSection {
  SectionKind kind;
  std::string name;  // XRT does not read it; tools print it
  std::string bytes;
};

Header MakeHeader(const Design& design, uint64_t length, size_t section_count) {
  Header header;
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  std::memset(header.reserved, 0xFF, sizeof(header.reserved));
  header.unique_id = 1;
  header.length = length;
  header.version_major = 2;
  header.version_minor = 1;
  header.mode = static_cast<uint16_t>(Mode::kFlat);
  SetField(design.platform, header.platform_name);
  header.section_count = static_cast<uint32_t>(section_count);
  return header;
}

// A version 4 uuid (RFC 9562) whose free bits are a hash of the content: XRT
// skips loading a design that is loaded already, so equal means equal.
void SetUuid(absl::string_view content, Header* header) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  std::memcpy(header->uuid, &hash.low64, 8);
  std::memcpy(header->uuid + 8, &hash.high64, 8);
  header->uuid[6] = static_cast<uint8_t>((header->uuid[6] & 0x0F) | 0x40);
  header->uuid[8] = static_cast<uint8_t>((header->uuid[8] & 0x3F) | 0x80);
}

}  // namespace

std::vector<uint32_t> RegisterOffsets(
    absl::Span<const DesignArgument> arguments) {
  std::vector<uint32_t> offsets;
  uint32_t next = 0x10;
  for (const DesignArgument& argument : arguments) {
    offsets.push_back(next);
    next += argument.width_bytes + 4;
  }
  return offsets;
}

absl::StatusOr<std::vector<char>> PackXclbin(const Design& design) {
  PAGED_KV_RETURN_IF_ERROR(CheckDesign(design));
  const NamedSection sections[] = {
      {SectionKind::kBitstream, "BITSTREAM", design.bitstream},
      {SectionKind::kEmbeddedMetadata, "EMBEDDED_METADA",
       EmbeddedMetadata(design)},
      {SectionKind::kMemTopology, "MEM_TOPOLOGY", MemTopology(design)},
      {SectionKind::kConnectivity, "CONNECTIVITY", Connectivity(design)},
      {SectionKind::kIpLayout, "IP_LAYOUT", IpLayout(design)},
  };
  const uint64_t body_start =
      sizeof(Header) + std::size(sections) * sizeof(SectionHeader);
  std::string table;
  std::string body;
  for (const NamedSection& section : sections) {
    body.resize((body.size() + 7) / 8 * 8);  // sections are 8-byte aligned
    SectionHeader header;
    header.kind = static_cast<uint32_t>(section.kind);
    SetField(section.name, header.name);
    header.offset = body_start + body.size();
    header.bytes = section.bytes.size();
    AppendBytes(header, &table);
    body += section.bytes;
  }
  Header header =
      MakeHeader(design, body_start + body.size(), std::size(sections));
  SetUuid(absl::StrCat(design.platform, table, body), &header);
  std::string file;
  AppendBytes(header, &file);
  absl::StrAppend(&file, table, body);
  return std::vector<char>(file.begin(), file.end());
}

}  // namespace paged_kv::fpga_dma::xclbin

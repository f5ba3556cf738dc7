// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The container of an FPGA design: a header, section headers, sections. The
// layout is that of "axlf" in xclbin.h of XRT 2.13, written out here so that
// files can be checked and packed where XRT is not installed. All integers are
// little-endian. xclbin_format_test compares it with XRT's own header.

#ifndef PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_FORMAT_H_
#define PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_FORMAT_H_

#include <bit>
#include <cstdint>
#include <type_traits>

namespace paged_kv::fpga_dma::xclbin {

static_assert(std::endian::native == std::endian::little,
              "the structs below are copied from files byte by byte");

inline constexpr char kMagic[8] = {'x', 'c', 'l', 'b', 'i', 'n', '2', '\0'};
inline constexpr int32_t kNoSignature = -1;
inline constexpr uint32_t kMaxSections = 0x10000;

enum class SectionKind : uint32_t {
  kBitstream = 0,
  kEmbeddedMetadata = 2,  // XML: kernels, their arguments, their registers
  kMemTopology = 6,
  kConnectivity = 7,
  kIpLayout = 8,
  kGroupTopology = 26,
  kGroupConnectivity = 27,
};

enum class Mode : uint16_t { kFlat = 0, kHwEmulation = 4, kSwEmulation = 5 };

enum class MemoryType : uint8_t { kDdr4 = 1, kStreaming = 3, kHbm = 6 };

inline constexpr uint32_t kIpKernel = 1;
inline constexpr uint32_t kIpInterruptEnable = 1;
inline constexpr uint32_t kIpControlShift = 8;
enum class IpControl : uint8_t { kHandshake = 0, kChain = 1, kNone = 2 };

struct SectionHeader {
  uint32_t kind = 0;
  char name[16] = {};
  uint32_t padding = 0;
  uint64_t offset = 0;  // from the start of the file
  uint64_t bytes = 0;
};

struct Header {
  char magic[8] = {};
  int32_t signature_bytes = kNoSignature;
  uint8_t reserved[28] = {};  // all ones
  uint8_t key_block[256] = {};
  uint64_t unique_id = 0;
  uint64_t length = 0;  // of the file, without a signature
  uint64_t timestamp = 0;
  uint64_t platform_timestamp = 0;
  uint16_t version_patch = 0;
  uint8_t version_major = 0;
  uint8_t version_minor = 0;
  uint16_t mode = 0;
  uint16_t action_mask = 0;
  uint8_t platform_uuid[16] = {};
  char platform_name[64] = {};
  uint8_t uuid[16] = {};
  char debug_file[16] = {};
  uint32_t section_count = 0;
  uint32_t padding = 0;
  // section_count SectionHeaders follow.
};

// Both topologies: {uint32_t count, 4 bytes of padding, Memory[count]}.
struct Memory {
  uint8_t type = 0;
  uint8_t used = 0;
  uint8_t padding[6] = {};
  uint64_t size_kib = 0;
  uint64_t base_address = 0;
  char tag[16] = {};
};

// {uint32_t count, 4 bytes of padding, Ip[count]}, sorted by base_address.
struct Ip {
  uint32_t type = 0;
  uint32_t properties = 0;
  uint64_t base_address = 0;
  char name[64] = {};  // "kernel:instance"
};

// {uint32_t count, Connection[count]}.
struct Connection {
  int32_t argument = 0;
  int32_t ip = 0;      // index in the IP layout
  int32_t memory = 0;  // index in the memory topology
};

inline constexpr uint64_t kTopologyHeaderBytes = 8;
inline constexpr uint64_t kIpLayoutHeaderBytes = 8;
inline constexpr uint64_t kConnectivityHeaderBytes = 4;

static_assert(sizeof(SectionHeader) == 40);
static_assert(sizeof(Header) == 456);
static_assert(sizeof(Memory) == 40);
static_assert(sizeof(Ip) == 80);
static_assert(sizeof(Connection) == 12);
static_assert(std::is_trivially_copyable_v<Header>);

}  // namespace paged_kv::fpga_dma::xclbin

#endif  // PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_FORMAT_H_

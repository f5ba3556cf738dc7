// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The container's layout as XRT's own header has it.

#include "fpga_dma/xclbin/xclbin_format.h"

#include <gtest/gtest.h>
// After the header under test, whose names it must not lend.
#include <xclbin.h>

#include <cstddef>

namespace paged_kv::fpga_dma::xclbin {
namespace {

TEST(XclbinFormatTest, HasTheLayoutOfXrt) {
  constexpr size_t kInner = offsetof(::axlf, m_header);
  EXPECT_EQ(sizeof(Header), offsetof(::axlf, m_sections));
  EXPECT_EQ(offsetof(Header, signature_bytes),
            offsetof(::axlf, m_signature_length));
  EXPECT_EQ(offsetof(Header, key_block), offsetof(::axlf, m_keyBlock));
  EXPECT_EQ(offsetof(Header, unique_id), offsetof(::axlf, m_uniqueId));
  EXPECT_EQ(offsetof(Header, length),
            kInner + offsetof(::axlf_header, m_length));
  EXPECT_EQ(offsetof(Header, mode), kInner + offsetof(::axlf_header, m_mode));
  EXPECT_EQ(offsetof(Header, platform_name),
            kInner + offsetof(::axlf_header, m_platformVBNV));
  EXPECT_EQ(offsetof(Header, uuid), kInner + offsetof(::axlf_header, uuid));
  EXPECT_EQ(offsetof(Header, section_count),
            kInner + offsetof(::axlf_header, m_numSections));

  EXPECT_EQ(sizeof(SectionHeader), sizeof(::axlf_section_header));
  EXPECT_EQ(offsetof(SectionHeader, name),
            offsetof(::axlf_section_header, m_sectionName));
  EXPECT_EQ(offsetof(SectionHeader, offset),
            offsetof(::axlf_section_header, m_sectionOffset));
  EXPECT_EQ(offsetof(SectionHeader, bytes),
            offsetof(::axlf_section_header, m_sectionSize));

  EXPECT_EQ(kTopologyHeaderBytes, offsetof(::mem_topology, m_mem_data));
  EXPECT_EQ(sizeof(Memory), sizeof(::mem_data));
  EXPECT_EQ(offsetof(Memory, used), offsetof(::mem_data, m_used));
  EXPECT_EQ(offsetof(Memory, size_kib), offsetof(::mem_data, m_size));
  EXPECT_EQ(offsetof(Memory, base_address),
            offsetof(::mem_data, m_base_address));
  EXPECT_EQ(offsetof(Memory, tag), offsetof(::mem_data, m_tag));

  EXPECT_EQ(kIpLayoutHeaderBytes, offsetof(::ip_layout, m_ip_data));
  EXPECT_EQ(sizeof(Ip), sizeof(::ip_data));
  EXPECT_EQ(offsetof(Ip, properties), offsetof(::ip_data, properties));
  EXPECT_EQ(offsetof(Ip, base_address), offsetof(::ip_data, m_base_address));
  EXPECT_EQ(offsetof(Ip, name), offsetof(::ip_data, m_name));

  EXPECT_EQ(kConnectivityHeaderBytes, offsetof(::connectivity, m_connection));
  EXPECT_EQ(sizeof(Connection), sizeof(::connection));
  EXPECT_EQ(offsetof(Connection, ip),
            offsetof(::connection, m_ip_layout_index));
  EXPECT_EQ(offsetof(Connection, memory),
            offsetof(::connection, mem_data_index));
}

TEST(XclbinFormatTest, HasTheNumbersOfXrt) {
  const auto number = [](auto value) { return static_cast<int>(value); };
  EXPECT_EQ(number(SectionKind::kBitstream), ::BITSTREAM);
  EXPECT_EQ(number(SectionKind::kEmbeddedMetadata), ::EMBEDDED_METADATA);
  EXPECT_EQ(number(SectionKind::kMemTopology), ::MEM_TOPOLOGY);
  EXPECT_EQ(number(SectionKind::kConnectivity), ::CONNECTIVITY);
  EXPECT_EQ(number(SectionKind::kIpLayout), ::IP_LAYOUT);
  EXPECT_EQ(number(SectionKind::kGroupTopology), ::ASK_GROUP_TOPOLOGY);
  EXPECT_EQ(number(SectionKind::kGroupConnectivity), ::ASK_GROUP_CONNECTIVITY);
  EXPECT_EQ(number(Mode::kHwEmulation), ::XCLBIN_HW_EMU);
  EXPECT_EQ(number(Mode::kSwEmulation), ::XCLBIN_SW_EMU);
  EXPECT_EQ(number(MemoryType::kDdr4), ::MEM_DDR4);
  EXPECT_EQ(number(MemoryType::kStreaming), ::MEM_STREAMING);
  EXPECT_EQ(number(MemoryType::kHbm), ::MEM_HBM);
  EXPECT_EQ(number(kIpKernel), ::IP_KERNEL);
  EXPECT_EQ(number(IpControl::kChain), ::AP_CTRL_CHAIN);
  EXPECT_EQ(kIpControlShift, IP_CONTROL_SHIFT);
  EXPECT_EQ(kMaxSections, XCLBIN_MAX_NUM_SECTION);
}

}  // namespace
}  // namespace paged_kv::fpga_dma::xclbin

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is refused before XRT sees it, and that a packed design is read back.

#include "fpga_dma/xclbin/xclbin_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fpga_dma/xclbin/xclbin_writer.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma::xclbin {
namespace {

using ::testing::TempDir;

Design SmallDesign() {
  Design design;
  design.platform = "pagedkv_test_board";
  design.memories = {
      {"DDR[0]", MemoryType::kDdr4, uint64_t{16} << 30, 0},
      {"HBM[0]", MemoryType::kHbm, uint64_t{256} << 20, uint64_t{1} << 40}};
  design.kernels = {
      {"scale", {{"in", true, 8}, {"out", true, 8}, {"n", false}}},
      {"clear", {{"out", true, 8}, {"n", false, 4}}}};
  design.units = {{"scale", "scale_1", {0, 1, -1}},
                  {"clear", "clear_1", {1, -1}},
                  {"scale", "scale_2", {1, 1, -1}}};
  design.bitstream = "no bits";
  return design;
}

std::vector<char> PackedDesign() {
  auto packed = PackXclbin(SmallDesign());
  EXPECT_TRUE(packed.ok()) << packed.status();
  return *packed;
}

absl::Status ParseStatus(std::vector<char> content) {
  return XclbinFile::Parse(std::move(content), "x.xclbin").status();
}

TEST(XclbinFileTest, ReadsAPackedDesignBack) {
  const auto file = XclbinFile::Parse(PackedDesign(), "x.xclbin");
  ASSERT_TRUE(file.ok()) << file.status();
  const Design design = SmallDesign();
  EXPECT_EQ(file->platform(), design.platform);
  ASSERT_EQ(file->memories().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(file->memories()[i].tag, design.memories[i].tag);
    EXPECT_EQ(file->memories()[i].bytes, design.memories[i].bytes);
    EXPECT_EQ(file->memories()[i].base_address,
              design.memories[i].base_address);
    EXPECT_TRUE(file->memories()[i].used);
  }
  ASSERT_EQ(file->units().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const UnitEntry& unit = file->units()[i];
    EXPECT_EQ(unit.kernel, design.units[i].kernel);
    EXPECT_EQ(unit.instance, design.units[i].instance);
    for (size_t a = 0; a < design.units[i].argument_memories.size(); ++a) {
      const int32_t memory = design.units[i].argument_memories[a];
      const std::vector<int32_t> wanted =
          memory < 0 ? std::vector<int32_t>{} : std::vector<int32_t>{memory};
      EXPECT_EQ(file->MemoriesOf(unit, static_cast<int32_t>(a)), wanted);
    }
  }
  const auto bits = file->Section(SectionKind::kBitstream);
  ASSERT_TRUE(bits.has_value());
  EXPECT_EQ(absl::string_view(bits->data(), bits->size()), "no bits");
  EXPECT_FALSE(file->Section(SectionKind::kGroupTopology).has_value());
}

TEST(XclbinFileTest, TheSameDesignIsTheSameFileAndAnotherIsNot) {
  EXPECT_EQ(PackedDesign(), PackedDesign());
  Design other = SmallDesign();
  other.units[0].argument_memories[0] = 1;
  const auto packed = PackXclbin(other);
  ASSERT_TRUE(packed.ok());
  EXPECT_NE(XclbinFile::Parse(*packed, "a")->uuid(),
            XclbinFile::Parse(PackedDesign(), "b")->uuid());
}

TEST(XclbinFileTest, RefusesEveryTruncation) {
  const std::vector<char> whole = PackedDesign();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const absl::Status status =
        ParseStatus({whole.begin(), whole.begin() + static_cast<long>(bytes)});
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes;
  }
  EXPECT_TRUE(ParseStatus(whole).ok());
}

TEST(XclbinFileTest, SaysWhatIsWrong) {
  const auto message = [](std::vector<char> content) {
    return std::string(ParseStatus(std::move(content)).message());
  };
  EXPECT_NE(message({}).find("x.xclbin: the file is empty"), std::string::npos);
  const absl::string_view elf = "\177ELF and so on";
  EXPECT_NE(message({elf.begin(), elf.end()}).find("not an xclbin"),
            std::string::npos);
  std::vector<char> whole = PackedDesign();
  const size_t bytes = whole.size();
  whole.resize(bytes / 2);
  EXPECT_NE(message(whole).find(absl::StrCat("truncated: ", bytes / 2, " of ",
                                             bytes, " bytes")),
            std::string::npos)
      << message(whole);
  whole = PackedDesign();
  whole.push_back('\0');
  EXPECT_NE(message(whole).find("1 bytes follow its end"), std::string::npos);
}

// Changes the header, a section header or a section of a good file.
class Damage {
 public:
  Damage() : content_(PackedDesign()) {}

  Header* header() { return reinterpret_cast<Header*>(content_.data()); }
  SectionHeader* section(SectionKind kind) {
    auto* sections =
        reinterpret_cast<SectionHeader*>(content_.data() + sizeof(Header));
    return std::find_if(sections, sections + header()->section_count,
                        [&](const SectionHeader& each) {
                          return each.kind == static_cast<uint32_t>(kind);
                        });
  }
  template <typename T>
  T* in_section(SectionKind kind, uint64_t offset) {
    return reinterpret_cast<T*>(content_.data() + section(kind)->offset +
                                offset);
  }
  absl::StatusCode code() const { return ParseStatus(content_).code(); }

 private:
  std::vector<char> content_;
};

TEST(XclbinFileTest, RefusesWhatDoesNotFitTogether) {
  const std::pair<const char*, std::function<void(Damage*)>> damages[] = {
      {"no sections", [](Damage* d) { d->header()->section_count = 0; }},
      {"sections beyond the end",
       [](Damage* d) { d->header()->section_count = 60000; }},
      {"too many sections",
       [](Damage* d) { d->header()->section_count = ~0u; }},
      {"a longer file", [](Damage* d) { ++d->header()->length; }},
      {"a platform without end",
       [](Damage* d) { std::memset(d->header()->platform_name, 'p', 64); }},
      {"a section in the header",
       [](Damage* d) { d->section(SectionKind::kIpLayout)->offset = 8; }},
      {"a section beyond the end",
       [](Damage* d) {
         d->section(SectionKind::kIpLayout)->offset = ~uint64_t{0} - 8;
       }},
      {"a section that wraps around",
       [](Damage* d) {
         d->section(SectionKind::kIpLayout)->bytes = ~uint64_t{0} - 8;
       }},
      {"no memory topology",
       [](Damage* d) { d->section(SectionKind::kMemTopology)->kind = 99; }},
      {"no metadata",
       [](Damage* d) {
         d->section(SectionKind::kEmbeddedMetadata)->kind = 99;
       }},
      {"no bitstream",
       [](Damage* d) { d->section(SectionKind::kBitstream)->bytes = 0; }},
      {"foreign metadata",
       [](Damage* d) {
         std::memset(d->in_section<char>(SectionKind::kEmbeddedMetadata, 0),
                     ' ', 60);
       }},
      {"more memories than fit",
       [](Damage* d) {
         *d->in_section<int32_t>(SectionKind::kMemTopology, 0) = 3;
       }},
      {"a negative number of memories",
       [](Damage* d) {
         *d->in_section<int32_t>(SectionKind::kMemTopology, 0) = -1;
       }},
      {"no memory in use",
       [](Damage* d) {
         d->in_section<Memory>(SectionKind::kMemTopology, 8)[0].used = 0;
         d->in_section<Memory>(SectionKind::kMemTopology, 8)[1].used = 0;
       }},
      {"a memory beyond all addresses",
       [](Damage* d) {
         d->in_section<Memory>(SectionKind::kMemTopology, 8)->size_kib =
             ~uint64_t{0};
       }},
      {"a memory's name without end",
       [](Damage* d) {
         std::memset(d->in_section<Memory>(SectionKind::kMemTopology, 8)->tag,
                     'm', 16);
       }},
      {"more units than fit",
       [](Damage* d) {
         *d->in_section<int32_t>(SectionKind::kIpLayout, 0) = 1 << 30;
       }},
      {"a unit's name without colon",
       [](Damage* d) {
         std::memset(d->in_section<Ip>(SectionKind::kIpLayout, 8)->name, 'u',
                     10);
       }},
      {"no unit",
       [](Damage* d) {
         *d->in_section<int32_t>(SectionKind::kIpLayout, 0) = 0;
       }},
      {"a connection to nowhere",
       [](Damage* d) {
         d->in_section<Connection>(SectionKind::kConnectivity, 4)->memory = 2;
       }},
      {"a connection of no unit",
       [](Damage* d) {
         d->in_section<Connection>(SectionKind::kConnectivity, 4)->ip = -1;
       }},
      {"more connections than fit",
       [](Damage* d) {
         *d->in_section<int32_t>(SectionKind::kConnectivity, 0) = 1000;
       }},
  };
  EXPECT_EQ(Damage().code(), absl::StatusCode::kOk);
  for (const auto& [name, apply] : damages) {
    Damage damage;
    apply(&damage);
    EXPECT_EQ(damage.code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(XclbinFileTest, SurvivesRandomDamage) {
  std::mt19937_64 random(TestSeed(5));
  const std::vector<char> whole = PackedDesign();
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<char> content = whole;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      content[random() % content.size()] = static_cast<char>(random());
    }
    const auto file = XclbinFile::Parse(std::move(content), "damaged");
    if (!file.ok()) ++refused;
  }
  EXPECT_GT(refused, 1000u);
}

TEST(XclbinFileTest, ReadsFilesAndSaysWhyItCannot) {
  const std::string path = TempDir() + "/design.xclbin";
  const std::vector<char> whole = PackedDesign();
  std::ofstream(path, std::ios::binary)
      .write(whole.data(), static_cast<std::streamsize>(whole.size()));
  EXPECT_TRUE(XclbinFile::Read(path).ok());
  const auto missing = XclbinFile::Read(path + ".no");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find(path + ".no"), std::string::npos);
  EXPECT_EQ(XclbinFile::Read(TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(XclbinFile::Read("").status().code(), absl::StatusCode::kNotFound);
}

TEST(XclbinWriterTest, RefusesWhatCannotBeExpressed) {
  const std::pair<const char*, std::function<void(Design*)>> changes[] = {
      {"no memory", [](Design* d) { d->memories.clear(); }},
      {"no unit", [](Design* d) { d->units.clear(); }},
      {"no bitstream", [](Design* d) { d->bitstream.clear(); }},
      {"no platform", [](Design* d) { d->platform.clear(); }},
      {"a long platform", [](Design* d) { d->platform.assign(64, 'p'); }},
      {"a name with a quote", [](Design* d) { d->platform = "a\"b"; }},
      {"a long memory name",
       [](Design* d) { d->memories[0].tag.assign(16, 'm'); }},
      {"a memory that is no multiple of 1 KiB",
       [](Design* d) { d->memories[0].bytes += 1; }},
      {"a memory of 0 bytes", [](Design* d) { d->memories[0].bytes = 0; }},
      {"an unknown kernel", [](Design* d) { d->units[0].kernel = "other"; }},
      {"a long instance name",
       [](Design* d) { d->units[0].instance.assign(58, 'u'); }},
      {"an argument too few",
       [](Design* d) { d->units[0].argument_memories.pop_back(); }},
      {"an unknown memory",
       [](Design* d) { d->units[0].argument_memories[0] = 2; }},
      {"an address nowhere",
       [](Design* d) { d->units[0].argument_memories[0] = -1; }},
      {"a scalar in memory",
       [](Design* d) { d->units[0].argument_memories[2] = 0; }},
  };
  for (const auto& [name, change] : changes) {
    Design design = SmallDesign();
    change(&design);
    EXPECT_EQ(PackXclbin(design).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
}

TEST(XclbinWriterTest, RegistersFollowVitisHls) {
  EXPECT_EQ(RegisterOffsets({}), std::vector<uint32_t>());
  EXPECT_EQ(RegisterOffsets({{"a", true, 8},
                             {"b", true, 8},
                             {"n", false, 4},
                             {"m", false, 4},
                             {"c", true, 8}}),
            (std::vector<uint32_t>{0x10, 0x1C, 0x28, 0x30, 0x38}));
}

}  // namespace
}  // namespace paged_kv::fpga_dma::xclbin

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/gguf_file.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/examples/llm/support/gguf_writer.h"

namespace paged_kv::llm {
namespace {

absl::StatusOr<GgufFile> Read(const std::string& file) {
  return ReadGguf(*OpenMemory(file));
}

template <typename T>
T Value(const GgufFile& file, const std::string& key) {
  return std::get<T>(file.metadata.at(key));
}

TEST(GgufFileTest, ReadsEveryTypeOfValue) {
  GgufWriter writer;
  writer.AddRaw("u8", 0, "\xFE");
  writer.AddRaw("i8", 1, "\xFE");
  writer.AddRaw("u16", 2, LittleEndian(uint16_t{65000}));
  writer.AddRaw("i16", 3, LittleEndian(int16_t{-65}));
  writer.AddRaw("u32", 4, LittleEndian(uint32_t{4000000000}));
  writer.AddRaw("i32", 5, LittleEndian(int32_t{-2000000000}));
  writer.Add("f32", 0.25F);
  writer.Add("yes", true);
  writer.Add("no", false);
  writer.Add("text", "gr\u00fcn");
  writer.AddRaw("u64", 10, LittleEndian(uint64_t{1} << 62));
  writer.AddRaw("i64", 11, LittleEndian(int64_t{-1} << 62));
  writer.AddRaw("f64", 12, LittleEndian(1e300));
  writer.Add("texts", std::vector<std::string>{"", "b", "cc"});
  writer.Add("reals", std::vector<float>{1.5F, -2.0F});
  writer.Add("integers", std::vector<int32_t>{-1, 2});
  writer.Add("none", std::vector<int32_t>{});
  const auto file = Read(writer.Finish());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata.size(), 17U);
  EXPECT_EQ(Value<int64_t>(*file, "u8"), 254);
  EXPECT_EQ(Value<int64_t>(*file, "i8"), -2);
  EXPECT_EQ(Value<int64_t>(*file, "u16"), 65000);
  EXPECT_EQ(Value<int64_t>(*file, "i16"), -65);
  EXPECT_EQ(Value<int64_t>(*file, "u32"), 4000000000);
  EXPECT_EQ(Value<int64_t>(*file, "i32"), -2000000000);
  EXPECT_EQ(Value<double>(*file, "f32"), 0.25);
  EXPECT_TRUE(Value<bool>(*file, "yes"));
  EXPECT_FALSE(Value<bool>(*file, "no"));
  EXPECT_EQ(Value<std::string>(*file, "text"), "gr\u00fcn");
  EXPECT_EQ(Value<int64_t>(*file, "u64"), int64_t{1} << 62);
  EXPECT_EQ(Value<int64_t>(*file, "i64"), int64_t{-1} << 62);
  EXPECT_EQ(Value<double>(*file, "f64"), 1e300);
  EXPECT_EQ(Value<std::vector<std::string>>(*file, "texts"),
            (std::vector<std::string>{"", "b", "cc"}));
  EXPECT_EQ(Value<std::vector<double>>(*file, "reals"),
            (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ(Value<std::vector<int64_t>>(*file, "integers"),
            (std::vector<int64_t>{-1, 2}));
  EXPECT_TRUE(Value<std::vector<int64_t>>(*file, "none").empty());
}

TEST(GgufFileTest, PlacesTensorsByTheFilesAlignment) {
  for (const uint32_t alignment : {8U, 32U, 4096U}) {
    for (const uint32_t version : {2U, 3U}) {
      GgufWriter writer;
      writer.version = version;
      writer.alignment = alignment;
      if (alignment != 32) writer.Add("general.alignment", alignment);
      writer.AddTensor("q", {64, 3}, 8, std::string(6 * 34, 'q'));
      writer.AddF32("v", {5}, {1, 2, 3, 4, 5});
      writer.AddF32("cube", {1, 2, 3}, {1, 2, 3, 4, 5, 6});
      const std::string bytes = writer.Finish();
      const auto file = Read(bytes);
      ASSERT_TRUE(file.ok()) << file.status();
      const GgufTensor& q = file->tensors.at("q");
      EXPECT_EQ(q.type, TensorType::kQ8_0);
      EXPECT_EQ(q.shape, (std::vector<uint64_t>{64, 3}));
      EXPECT_EQ(q.elements(), 192U);
      EXPECT_EQ(bytes.substr(q.offset, q.bytes), std::string(6 * 34, 'q'));
      const GgufTensor& v = file->tensors.at("v");
      EXPECT_EQ(bytes.substr(v.offset, 4), LittleEndian(1.0F));
      EXPECT_EQ(v.bytes, 20U);
      EXPECT_EQ(file->tensors.at("cube").elements(), 6U);
    }
  }
}

TEST(GgufFileTest, RefusesWhatIsNoGguf) {
  for (const std::string& bytes :
       {std::string(), std::string("GGU"), std::string("GGUF"),
        std::string("GGML") + std::string(100, '\0'),
        std::string("GGUF") + std::string(100, '\xFF')}) {
    EXPECT_FALSE(Read(bytes).ok());
  }
}

// What a tensor of this shape and type says.
std::string TensorError(std::vector<uint64_t> shape, uint32_t type) {
  GgufWriter writer;
  writer.AddTensor("odd", std::move(shape), type, std::string(4096, '\0'));
  const auto file = Read(writer.Finish());
  EXPECT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("odd"), absl::string_view::npos);
  return std::string(file.status().message());
}

TEST(GgufFileTest, RefusesTensorsThatCannotBe) {
  EXPECT_NE(TensorError({}, 0).find("0 dimensions"), std::string::npos);
  EXPECT_NE(TensorError({1, 1, 1, 1, 1}, 0).find("5 dim"), std::string::npos);
  EXPECT_NE(TensorError({4, 0}, 0).find("dimension of 0"), std::string::npos);
  EXPECT_NE(TensorError({33}, 2).find("blocks of 32"), std::string::npos);
  EXPECT_NE(TensorError({128}, 14).find("blocks of 256"), std::string::npos);
  EXPECT_NE(TensorError({32}, 20).find("IQ4_NL"), std::string::npos);
  EXPECT_NE(TensorError({1025}, 0).find("needs 4100"), std::string::npos);
  const uint64_t huge = uint64_t{1} << 32;
  TensorError({huge, huge}, 0);
  TensorError({uint64_t{1} << 63, 2}, 0);
}

TEST(GgufFileTest, RefusesValuesThatCannotBe) {
  const auto error = [](uint32_t type, const std::string& value) {
    GgufWriter writer;
    writer.AddRaw("odd", type, value);
    const auto file = Read(writer.Finish());
    EXPECT_FALSE(file.ok());
    EXPECT_NE(file.status().message().find("odd"), absl::string_view::npos);
    return std::string(file.status().message());
  };
  EXPECT_NE(error(13, "").find("type 13"), std::string::npos);
  EXPECT_NE(error(10, std::string(8, '\xFF')).find("2^63"), std::string::npos);
  EXPECT_NE(error(9, LittleEndian(uint32_t{9}) + std::string(8, '\0'))
                .find("array of arrays"),
            std::string::npos);
  EXPECT_NE(error(9, LittleEndian(uint32_t{8}) + LittleEndian(uint64_t{99}))
                .find("99 values"),
            std::string::npos);
  EXPECT_NE(error(8, LittleEndian(uint64_t{1000})).find("1000 bytes"),
            std::string::npos);
}

TEST(GgufFileTest, RefusesAlignmentsThatCannotBe) {
  for (const uint32_t alignment : {0U, (1U << 20) + 1}) {
    GgufWriter writer;
    writer.Add("general.alignment", alignment);
    EXPECT_FALSE(Read(writer.Finish()).ok());
  }
  GgufWriter text;
  text.Add("general.alignment", "32");
  EXPECT_FALSE(Read(text.Finish()).ok());
}

}  // namespace
}  // namespace paged_kv::llm

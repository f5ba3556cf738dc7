// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Broken GGUF files: refused, without a crash, a hang, or memory out of
// proportion to the file. The sanitizers make this test strict.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <random>
#include <string>

#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/gguf_model.h"
#include "docs/examples/llm/tokenizer/tokenizer.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/support/tiny_gguf.h"
#include "tests/paged_kv/test_seed.h"

namespace {

// The largest request to operator new since it was last set to 0.
std::atomic<size_t> largest_allocation{0};

// Out of line: GCC takes a `new` and a free() that it sees for a mismatch.
[[gnu::noinline]] void* Allocate(size_t bytes, size_t alignment) {
  size_t seen = largest_allocation.load();
  while (seen < bytes &&
         !largest_allocation.compare_exchange_weak(seen, bytes)) {
  }
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)),
                     std::max<size_t>(bytes, 1)) != 0) {
    throw std::bad_alloc();
  }
  return memory;
}

[[gnu::noinline]] void Release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(size_t bytes) {
  return Allocate(bytes, alignof(max_align_t));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, alignof(max_align_t));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete(void* memory, size_t) noexcept { Release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  Release(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  Release(memory);
}

namespace paged_kv::llm {
namespace {

// Buffers of fixed size, and vectors that doubled while they grew.
constexpr size_t kFixedBytes = 256 << 10;
constexpr size_t kBytesPerFileByte = 32;

// Loads the file and, if that works, encodes with its vocabulary.
absl::Status Use(const std::string& file) {
  largest_allocation = 0;
  const auto model = LoadGgufModel(OpenMemory(file), {});
  EXPECT_LE(largest_allocation.load(),
            kFixedBytes + kBytesPerFileByte * file.size());
  if (!model.ok()) return model.status();
  const auto tokenizer = Tokenizer::Create((*model)->vocabulary);
  if (!tokenizer.ok()) return tokenizer.status();
  return (*tokenizer)->Encode("ab a \u00e9\u65e5 A").status();
}

std::string TinyFile() { return TinyGguf("llama", /*tied=*/false).Finish(); }

TEST(GgufCorruptionTest, TheWholeFileLoads) {
  // It lacks most bytes, so that what it has no token for is refused.
  EXPECT_EQ(Use(TinyFile()).code(), absl::StatusCode::kInvalidArgument);
  GgufWriter writer = TinyGguf("llama", /*tied=*/false);
  writer.Add("tokenizer.ggml.unknown_token_id", uint32_t{0});
  EXPECT_TRUE(Use(writer.Finish()).ok());
}

TEST(GgufCorruptionTest, EveryTruncationIsRefused) {
  const std::string file = TinyFile();
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_FALSE(LoadGgufModel(OpenMemory(file.substr(0, size)), {}).ok())
        << size;
  }
}

// One to four changes of different kinds.
std::string Corrupt(std::string file, size_t header_bytes,
                    std::mt19937_64* random) {
  const auto below = [&](size_t limit) {
    return static_cast<size_t>((*random)() % limit);
  };
  constexpr uint64_t kExtremes[] = {0,
                                    1,
                                    0x7F,
                                    0xFF,
                                    0xFFFF,
                                    0x7FFFFFFF,
                                    0x80000000,
                                    0xFFFFFFFF,
                                    uint64_t{1} << 40,
                                    uint64_t{1} << 63,
                                    std::numeric_limits<uint64_t>::max(),
                                    std::numeric_limits<uint64_t>::max() - 31};
  const size_t changes = 1 + below(4);
  for (size_t change = 0; change < changes && file.size() > 16; ++change) {
    // Mostly where structure is: the data are just numbers.
    const size_t at = below(std::min(file.size() - 8, header_bytes));
    switch (below(6)) {
      case 0:
        file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
        break;
      case 1:
        file[at] = static_cast<char>((*random)());
        break;
      case 2:
        file.replace(at, 8, LittleEndian(kExtremes[below(12)]));
        break;
      case 3:
        file.replace(at, 4,
                     LittleEndian(static_cast<uint32_t>(kExtremes[below(12)])));
        break;
      case 4:
        file.erase(at, 1 + below(16));
        break;
      default:
        file.insert(at, file.substr(below(file.size()), 1 + below(40)));
        break;
    }
  }
  if (below(8) == 0) file.resize(below(file.size() + 1));
  return file;
}

TEST(GgufCorruptionTest, RandomCorruptionsNeverCrash) {
  std::mt19937_64 random(TestSeed(21));
  const std::string file = TinyFile();
  const size_t data = file.find("output_norm.weight") + 200;
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    refused += Use(Corrupt(file, data, &random)).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 4000);
}

// A lying length at each place where one can stand.
TEST(GgufCorruptionTest, LyingLengthsTakeNoMemory) {
  const std::string file = TinyFile();
  const size_t header = file.find("output_norm.weight") + 200;
  for (size_t at = 4; at < header; ++at) {
    for (const uint64_t lie :
         {uint64_t{file.size() * 2}, uint64_t{1} << 31, uint64_t{1} << 62}) {
      std::string broken = file;
      broken.replace(at, 8, LittleEndian(lie));
      Use(broken).IgnoreError();
    }
  }
}

TEST(GgufCorruptionTest, OverlappingAndMisplacedTensorsAreRefused) {
  const auto refused = [](uint64_t offset, const char* text) {
    GgufWriter writer = TinyGguf("llama", /*tied=*/false);
    writer.tensors[2].fixed_offset = true;
    writer.tensors[2].offset = offset;
    const absl::Status status = Use(writer.Finish());
    return status.code() == absl::StatusCode::kInvalidArgument &&
           status.message().find(text) != absl::string_view::npos;
  };
  EXPECT_TRUE(refused(0, "overlap"));
  EXPECT_TRUE(refused(8, "aligned"));
  EXPECT_TRUE(refused(uint64_t{1} << 40, "the data, which has"));
  EXPECT_TRUE(refused(0 - uint64_t{32}, "the data, which has"));
}

TEST(GgufCorruptionTest, NamesThatComeTwiceAreRefused) {
  GgufWriter keys = TinyGguf("llama", /*tied=*/false);
  keys.Add("general.name", "again");
  EXPECT_NE(Use(keys.Finish()).message().find("general.name"),
            absl::string_view::npos);
  GgufWriter tensors = TinyGguf("llama", /*tied=*/false);
  tensors.tensors.push_back(tensors.tensors[4]);
  EXPECT_NE(Use(tensors.Finish()).message().find(tensors.tensors[4].name),
            absl::string_view::npos);
}

}  // namespace
}  // namespace paged_kv::llm

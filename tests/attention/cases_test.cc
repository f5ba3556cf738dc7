// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that other systems have had, kept from happening here. The names
// carry the numbers of the collection of cases.

#include <sys/mman.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "attention/append_kv.h"
#include "attention/copy_blocks.h"
#include "attention/merge_partials.h"
#include "attention/paged_decode.h"
#include "attention/paged_prefill.h"
#include "gtest/gtest.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention::testing {
namespace {

// Address space for pages far apart, of which only what is touched exists.
class SparseMemory {
 public:
  explicit SparseMemory(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseMemory() { munmap(data_, bytes_); }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  void* data() const { return data_; }
  bool ok() const { return data_ != MAP_FAILED; }

 private:
  size_t bytes_;
  void* data_;
};

// A sequence in pages whose offsets pass 2^31 and 2^32 bytes and whose ids pass
// 2^16: appended, copied, attended by decode and by prefill.
void ExpectFarPagesWork(uint32_t head_dim, int64_t page_stride,
                        const std::vector<int32_t>& page_ids) {
  KvPages pages;
  pages.shape.kv_heads = 2;
  pages.shape.head_dim = head_dim;
  pages.shape.block_tokens = 16;
  pages.num_pages = 70'000;
  const SparseMemory memory(static_cast<size_t>(page_stride) * pages.num_pages);
  if (!memory.ok()) GTEST_SKIP() << "no address space for sparse pages";
  pages.layout = OwnPageLayout(pages.shape, memory.data());
  ASSERT_LE(pages.layout.page_stride, page_stride);
  pages.layout.page_stride = page_stride;

  // 40 tokens in two full pages and half of a third, which is reached by a copy
  // from another far page.
  constexpr int64_t kTokens = 40;
  const auto copied_from = static_cast<uint32_t>(page_ids[2]) - 1;
  std::vector<int64_t> slots;
  for (int64_t t = 0; t < kTokens; ++t) {
    const int64_t page = t < 32 ? page_ids[t / 16] : copied_from;
    slots.push_back(page * 16 + t % 16);
  }
  Random random(9);
  std::vector<float> k(kTokens * 2 * head_dim), v(k.size());
  for (float& x : k) x = random.Uniform(1.7f);
  for (float& x : v) x = random.Uniform(1.7f);
  SerialFor serial;
  KvRows k_rows, v_rows;
  k_rows.data = k.data();
  v_rows.data = v.data();
  ASSERT_TRUE(AppendKv(pages, 0, k_rows, v_rows, slots, serial).ok());
  const PageCopy copy{copied_from, static_cast<uint32_t>(page_ids[2]), 8};
  ASSERT_TRUE(CopyBlocks(pages, {copy}, serial).ok());

  // The same tokens in a small pool are the reference.
  AttentionSpec spec;
  spec.shape = pages.shape;
  PageMemory small(spec.shape, 3, PageOrder::kOwn, Poison::kNan);
  for (int64_t& slot : slots) slot = &slot - slots.data();
  ASSERT_TRUE(AppendKv(small.pages(), 0, k_rows, v_rows, slots, serial).ok());

  std::vector<float> q(2 * 4 * head_dim);
  for (float& x : q) x = random.Uniform(1.7f);
  const std::vector<int32_t> near_ids = {0, 1, 2};
  const std::vector<int32_t> indptr = {0, 3}, last = {8}, first = {0};
  const auto attend = [&](const KvPages& where, const std::vector<int32_t>& ids,
                          bool decode) {
    AttentionInputs inputs;
    inputs.pages = where;
    inputs.table = {indptr, ids, last, first, 16, 0};
    inputs.query_heads = 4;
    const size_t queries = decode ? 1 : 2;
    inputs.q = absl::MakeConstSpan(q).first(queries * 4 * head_dim);
    std::vector<float> out(queries * 4 * head_dim, std::nanf(""));
    const AttentionOutputs outputs{absl::MakeSpan(out), {}};
    const absl::Status status =
        decode ? PagedDecode(inputs, {}, outputs, serial)
               : PagedPrefill(inputs, std::vector<int32_t>{0, 2}, {}, outputs,
                              serial);
    EXPECT_TRUE(status.ok()) << status;
    return out;
  };
  for (const bool decode : {true, false}) {
    EXPECT_EQ(attend(pages, page_ids, decode),
              attend(small.pages(), near_ids, decode));
  }
}

TEST(CasesTest, F1_PageIdTimesStrideBeyond32Bits) {
  // 276,480 x 7,768 = 2,147,696,640 is just beyond 2^31.
  ExpectFarPagesWork(64, 276'480, {7'768, 7'767, 7'770});
  ExpectFarPagesWork(64, 276'480, {15'535, 7'768, 15'537});  // beyond 2^32
}

TEST(CasesTest, F1_PageIdBeyond16Bits) {
  ExpectFarPagesWork(64, 276'480, {65'536, 1, 65'538});
  ExpectFarPagesWork(64, 8'192, {65'535, 65'537, 69'999});
}

// A tile's lanes, V rows and scales behind the last token hold NaN or infinity,
// which a multiplication by a weight of 0 would let through.
TEST(CasesTest, PoisonedSlotsNeverLeak) {
  for (const Poison poison : {Poison::kNan, Poison::kInfinity}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16,
                              DType::kFp8E4M3, DType::kInt8}) {
      for (uint32_t tokens = 1; tokens <= 40; ++tokens) {
        AttentionSpec spec;
        spec.shape.dtype = dtype;
        spec.shape.head_dim = 24;
        spec.poison = poison;
        spec.decode = true;
        spec.sequences = {{1, tokens}};
        const AttentionProblem problem(spec);
        SerialFor serial;
        const auto want = RunReference(problem, serial);
        for (const Isa isa : SupportedIsas()) {
          const auto got = RunKernel(problem, isa, serial);
          ASSERT_EQ(Compare(*want, *got, ToleranceFor(isa, spec.shape.dtype)),
                    "")
              << IsaName(isa) << " " << ToString(spec);
        }
      }
    }
  }
}

// -128 is never written; engines that quantise themselves may have it.
TEST(CasesTest, TheLowestInt8CodeIsReadAsWhatItIs) {
  for (const uint32_t head_dim : {24u, 32u, 64u}) {
    for (const uint32_t queries : {1u, 5u}) {
      AttentionSpec spec;
      spec.shape.dtype = DType::kInt8;
      spec.shape.head_dim = head_dim;
      spec.group = 3;
      spec.decode = queries == 1;
      spec.sequences = {{queries, 70}};
      AttentionProblem problem(spec);
      constexpr uint32_t kLowest = 0x80;
      const uint32_t pages =
          (70 + spec.shape.block_tokens - 1) / spec.shape.block_tokens;
      for (uint32_t i = 0; i < pages; ++i) {
        const auto page =
            static_cast<uint32_t>(problem.inputs().table.page_indices[i]);
        for (uint32_t token = 0; token < spec.shape.block_tokens; ++token) {
          const uint32_t dim = (7 * i + 5 * token) % head_dim;
          PageMemory& memory = problem.memory();
          memory.StoreBits(memory.KeyOffset(page, 0, 0, token, dim), kLowest);
          memory.StoreBits(memory.ValueOffset(page, 0, 0, token, dim), kLowest);
        }
      }
      SerialFor serial;
      const auto want = RunReference(problem, serial);
      ASSERT_TRUE(want.ok()) << want.status();
      for (const Isa isa : SupportedIsas()) {
        const auto got = RunKernel(problem, isa, serial);
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ(Compare(*want, *got, ToleranceFor(isa, spec.shape.dtype)), "")
            << IsaName(isa) << " " << ToString(spec);
      }
    }
  }
}

// What is wrong in a token that is seen must show, not vanish in a maximum.
TEST(CasesTest, NanInASeenTokenShows) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const uint32_t payload : {0x7FFFFFFFu, 0xFFFFFFFFu, 0x7FC17FC1u}) {
      for (const bool in_key : {false, true}) {
        AttentionSpec spec;
        spec.shape.dtype = dtype;
        spec.shape.head_dim = 16;
        spec.decode = true;
        spec.sequences = {{1, 70}};
        AttentionProblem problem(spec);
        const auto page =
            static_cast<uint32_t>(problem.inputs().table.page_indices[2]);
        PageMemory& memory = problem.memory();
        memory.StoreBits(in_key ? memory.KeyOffset(page, 0, 0, 5, 3)
                                : memory.ValueOffset(page, 0, 0, 5, 3),
                         payload);
        SerialFor serial;
        for (const Isa isa : SupportedIsas()) {
          const auto got = RunKernel(problem, isa, serial);
          ASSERT_TRUE(got.ok()) << got.status();
          EXPECT_TRUE(std::isnan(got->out[3]))
              << IsaName(isa) << " " << DTypeName(dtype);
          EXPECT_EQ(std::isnan(got->out[4]), in_key);
        }
      }
    }
  }
}

// The same for 8-bit types: the code of NaN, and a scale of NaN.
TEST(CasesTest, NanInASeenEightBitTokenShows) {
  struct Spoilt {
    DType dtype;
    bool in_scale;
    uint8_t code;
  };
  for (const Spoilt& spoilt : {Spoilt{DType::kFp8E4M3, false, 0x7F},
                               {DType::kFp8E4M3, false, 0xFF},
                               {DType::kFp8E4M3, true, 0},
                               {DType::kInt8, true, 0}}) {
    for (const bool in_key : {false, true}) {
      for (const uint32_t queries : {1, 40}) {
        AttentionSpec spec;
        spec.shape.dtype = spoilt.dtype;
        spec.shape.head_dim = 16;
        spec.decode = queries == 1;
        spec.sequences = {{queries, 70}};
        AttentionProblem problem(spec);
        const auto page =
            static_cast<uint32_t>(problem.inputs().table.page_indices[1]);
        PageMemory& memory = problem.memory();
        if (spoilt.in_scale) {
          memory.StoreScale(in_key ? memory.KeyScaleOffset(page, 0, 0, 5)
                                   : memory.ValueScaleOffset(page, 0, 0, 5),
                            std::nanf(""));
        } else {
          memory.StoreBits(in_key ? memory.KeyOffset(page, 0, 0, 5, 3)
                                  : memory.ValueOffset(page, 0, 0, 5, 3),
                           spoilt.code);
        }
        SerialFor serial;
        for (const Isa isa : SupportedIsas()) {
          const auto got = RunKernel(problem, isa, serial);
          ASSERT_TRUE(got.ok()) << got.status();
          EXPECT_TRUE(std::isnan(got->out[3]))
              << IsaName(isa) << " " << DTypeName(spoilt.dtype);
          EXPECT_EQ(std::isnan(got->out[4]), in_key || spoilt.in_scale);
        }
      }
    }
  }
}

}  // namespace
}  // namespace paged_kv::attention::testing

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that other systems have had with quantised KV, kept from happening
// here: scales that were left behind, misplaced or stale. The names carry the
// numbers of the collection of cases.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "attention/append_kv.h"
#include "attention/copy_blocks.h"
#include "attention/paged_decode.h"
#include "attention/reference_attention.h"
#include "gtest/gtest.h"
#include "tests/support/attention_pages.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention::testing {
namespace {

constexpr DType kQuantized[] = {DType::kInt8, DType::kFp8E4M3};
constexpr uint32_t kBlock = 16;
constexpr uint32_t kHeads = 2;
constexpr uint32_t kDim = 32;

uint32_t PagesFor(uint32_t tokens) { return (tokens + kBlock - 1) / kBlock; }

// A small pool in our own layout; pages that nothing was written to are poison.
class Pool {
 public:
  explicit Pool(DType dtype)
      : memory_(Shape(dtype), 8, PageOrder::kOwn, Poison::kNan) {}

  const KvPages& pages() const { return memory_.pages(); }

  // All bytes of a page.
  std::vector<uint8_t> Save(int32_t page) const {
    const uint8_t* from = memory_.bytes().data() + page * PageSize();
    return {from, from + PageSize()};
  }
  void Load(const std::vector<uint8_t>& bytes, int32_t page) {
    std::copy(bytes.begin(), bytes.end(),
              memory_.mutable_data() + page * PageSize());
  }
  void Wipe(int32_t page) {
    Load(std::vector<uint8_t>(PageSize(), 0xFF), page);
  }

  // Writes tokens first .. last - 1 of a sequence of that seed, quantised.
  // Magnitudes, and so scales, differ widely from token to token.
  void Append(uint64_t seed, uint32_t first, uint32_t last,
              const std::vector<int32_t>& page_ids) {
    std::vector<float> k, v;
    std::vector<int64_t> slots;
    for (uint32_t t = first; t < last; ++t) {
      Random random(seed * 1000 + t);
      const float limit = std::ldexp(1.7f, static_cast<int>(t % 7) - 5);
      for (uint32_t i = 0; i < kHeads * kDim; ++i) {
        k.push_back(random.Uniform(limit));
        v.push_back(random.Uniform(limit));
      }
      slots.push_back(int64_t{page_ids[t / kBlock]} * kBlock + t % kBlock);
    }
    KvRows k_rows, v_rows;
    k_rows.data = k.data();
    v_rows.data = v.data();
    SerialFor serial;
    const absl::Status status =
        AppendKv(pages(), 0, k_rows, v_rows, slots, serial);
    EXPECT_TRUE(status.ok()) << status;
  }

  void Copy(const std::vector<PageCopy>& copies) {
    SerialFor serial;
    const absl::Status status = CopyBlocks(pages(), copies, serial);
    EXPECT_TRUE(status.ok()) << status;
  }

  // Attention of a sequence's last token.
  std::vector<float> Decode(uint32_t tokens,
                            const std::vector<int32_t>& page_ids) const {
    const auto num_pages = static_cast<int32_t>(PagesFor(tokens));
    const std::vector<int32_t> indptr = {0, num_pages}, first = {0};
    const std::vector<int32_t> last = {
        static_cast<int32_t>((tokens - 1) % kBlock) + 1};
    AttentionInputs inputs;
    inputs.pages = pages();
    inputs.table = {indptr, page_ids, last, first, kBlock, 0};
    inputs.query_heads = kHeads;
    std::vector<float> q(kHeads * kDim);
    Random random(3);
    for (float& x : q) x = random.Uniform(1.7f);
    inputs.q = q;
    std::vector<float> out(q.size(), std::nanf(""));
    SerialFor serial;
    const absl::Status status =
        PagedDecode(inputs, {}, {absl::MakeSpan(out), {}}, serial);
    EXPECT_TRUE(status.ok()) << status;
    for (const float x : out) EXPECT_TRUE(std::isfinite(x));
    return out;
  }

  // All K and V of a sequence, dequantised.
  std::vector<double> Stored(uint32_t tokens,
                             const std::vector<int32_t>& page_ids) const {
    std::vector<double> result;
    for (uint32_t t = 0; t < tokens; ++t) {
      const auto page = static_cast<uint32_t>(page_ids[t / kBlock]);
      for (uint32_t h = 0; h < kHeads; ++h) {
        for (uint32_t d = 0; d < kDim; ++d) {
          result.push_back(StoredKey(pages(), page, 0, h, t % kBlock, d));
          result.push_back(StoredValue(pages(), page, 0, h, t % kBlock, d));
        }
      }
    }
    return result;
  }

 private:
  static BlockShape Shape(DType dtype) {
    BlockShape shape;
    shape.kv_heads = kHeads;
    shape.head_dim = kDim;
    shape.block_tokens = kBlock;
    shape.dtype = dtype;
    return shape;
  }
  size_t PageSize() const { return PageBytes(pages().shape).value(); }

  PageMemory memory_;
};

// Copy-on-write of the tail at every length: the copy reads the same when the
// original is gone, and what is appended to it leaves the original alone.
TEST(QuantizedCasesTest, F3_ScalesMoveThroughCopyOnWrite) {
  for (const DType dtype : kQuantized) {
    for (uint32_t tokens = 1; tokens <= 48; ++tokens) {
      SCOPED_TRACE(tokens);
      Pool pool(dtype);
      const std::vector<int32_t> parent = {5, 2, 7};
      pool.Append(1, 0, tokens, parent);
      const std::vector<float> want = pool.Decode(tokens, parent);
      const std::vector<double> stored = pool.Stored(tokens, parent);

      const uint32_t last = PagesFor(tokens) - 1;
      std::vector<int32_t> child = parent;
      child[last] = 0;
      pool.Copy({{static_cast<uint32_t>(parent[last]), 0,
                  (tokens - 1) % kBlock + 1}});
      EXPECT_EQ(pool.Decode(tokens, child), want);
      if (tokens % kBlock != 0) pool.Append(2, tokens, tokens + 1, child);
      EXPECT_EQ(pool.Stored(tokens, parent), stored);
      EXPECT_EQ(pool.Decode(tokens, parent), want);
      pool.Wipe(parent[last]);
      EXPECT_EQ(pool.Stored(tokens, child), stored);
      EXPECT_EQ(pool.Decode(tokens, child), want);
    }
  }
}

// Out of the pool and into other pages of it, and into another pool: the bytes
// of a page are all that there is to a block.
TEST(QuantizedCasesTest, F3_ScalesMoveThroughSwapAndSave) {
  for (const DType dtype : kQuantized) {
    for (uint32_t tokens = 1; tokens <= 48; ++tokens) {
      SCOPED_TRACE(tokens);
      Pool pool(dtype), loaded(dtype);
      const std::vector<int32_t> before = {5, 2, 7}, after = {3, 5, 6};
      pool.Append(1, 0, tokens, before);
      const std::vector<float> want = pool.Decode(tokens, before);
      std::vector<std::vector<uint8_t>> saved;
      for (uint32_t i = 0; i < PagesFor(tokens); ++i) {
        saved.push_back(pool.Save(before[i]));
        pool.Wipe(before[i]);
      }
      // Another sequence has the pages in between.
      pool.Append(2, 0, 48, before);
      for (uint32_t i = 0; i < PagesFor(tokens); ++i) {
        pool.Load(saved[i], after[i]);
        loaded.Load(saved[i], before[i]);
      }
      EXPECT_EQ(pool.Decode(tokens, after), want);
      EXPECT_EQ(loaded.Decode(tokens, before), want);
    }
  }
}

// A page that is used anew keeps no scale of what it held.
TEST(QuantizedCasesTest, F3_NoStaleScales) {
  for (const DType dtype : kQuantized) {
    Pool used(dtype), fresh(dtype);
    const std::vector<int32_t> page_ids = {4, 1};
    used.Append(1, 0, 32, page_ids);
    for (uint32_t t = 0; t < 25; ++t) {
      used.Append(2, t, t + 1, page_ids);
      fresh.Append(2, t, t + 1, page_ids);
      EXPECT_EQ(used.Decode(t + 1, page_ids), fresh.Decode(t + 1, page_ids));
    }
  }
}

// The blocks of two sequences move to the front of the pool, some into places
// that others have just left.
TEST(QuantizedCasesTest, D6_CompactionKeepsBytesAndScales) {
  for (const DType dtype : kQuantized) {
    Pool pool(dtype);
    const std::vector<int32_t> a = {7, 4, 6}, b = {5, 2};
    const std::vector<int32_t> compact_a = {0, 1, 2}, compact_b = {3, 4};
    pool.Append(1, 0, 40, a);
    pool.Append(2, 0, 23, b);
    const std::vector<float> want_a = pool.Decode(40, a);
    const std::vector<float> want_b = pool.Decode(23, b);
    const std::vector<double> stored_a = pool.Stored(40, a);
    const std::vector<double> stored_b = pool.Stored(23, b);

    pool.Copy({{7, 0, 16}, {4, 1, 16}, {2, 4, 7}, {6, 2, 8}, {5, 3, 16}});
    for (const int32_t page : {5, 6, 7}) pool.Wipe(page);
    EXPECT_EQ(pool.Stored(40, compact_a), stored_a);
    EXPECT_EQ(pool.Stored(23, compact_b), stored_b);
    EXPECT_EQ(pool.Decode(40, compact_a), want_a);
    EXPECT_EQ(pool.Decode(23, compact_b), want_b);
  }
}

}  // namespace
}  // namespace paged_kv::attention::testing

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// kv_append, kv_copy and kv_scatter against loops over single elements, at
// random shapes, in both builds, all bytes compared.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "fpga_dma/kernels/stand_in/stage_threads.h"
#include "fpga_dma/kernels/stand_in/stream_faults.h"
#include "tests/fpga_dma/kernels/card_memory.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

// Of the threaded build each has a schedule of its own.
constexpr int kRounds = 200;

uint32_t Below(std::mt19937_64& random, uint32_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

void FillRandom(CardMemory* memory, std::mt19937_64& random) {
  for (size_t i = 0; i < memory->size() / 8; ++i) memory->Set(i, random());
}

struct Shape {
  Shape(KvElement e, std::mt19937_64& random) : element(e) {
    constexpr uint32_t kHeadDims[] = {8, 16, 32, 64, 128};
    constexpr uint32_t kBlocks[] = {16, 32, 48};
    head_dim = kHeadDims[Below(random, 5)];
    block_tokens = kBlocks[Below(random, 3)];
    slices = 1 + Below(random, 4);
    gap_beats = Below(random, 3);
    pages = 2 + Below(random, 6);
  }
  uint32_t slice_beats() const {
    return SliceBeats(block_tokens, head_dim, element);
  }
  uint32_t slice_stride() const { return slice_beats() + gap_beats; }
  uint32_t page_stride() const { return slices * slice_stride() + 1; }
  size_t pool_bytes() const {
    return size_t{pages} * page_stride() * kBeatBytes;
  }
  uint32_t element_bytes() const { return KvElementBytes(element); }
  uint32_t row_bytes() const { return head_dim * element_bytes(); }
  bool int8() const { return element == KvElement::kInt8; }
  // How many rows of V share a beat.
  uint32_t slots_per_beat() const {
    return std::max(1u, kBeatBytes / row_bytes());
  }
  // Bytes from the pool's start, and from the slice's; docs/layouts.md.
  size_t Slice(uint32_t page, uint32_t slice_beat) const {
    return (size_t{page} * page_stride() + slice_beat) * kBeatBytes;
  }
  size_t K(uint32_t slot, uint32_t dim) const {
    const uint32_t per_word = 4 / element_bytes();
    return size_t{slot / 16} * 16 * row_bytes() + dim / per_word * 64 +
           slot % 16 * 4 + dim % per_word * element_bytes();
  }
  size_t KScale(uint32_t slot) const {
    return size_t{block_tokens} * row_bytes() + size_t{slot} * 4;
  }
  size_t Half() const { return size_t{slice_beats()} / 2 * kBeatBytes; }
  size_t V(uint32_t slot, uint32_t dim) const {
    return Half() + size_t{slot} * row_bytes() + dim * element_bytes();
  }
  size_t VScale(uint32_t slot) const { return Half() + KScale(slot); }

  KvElement element;
  uint32_t head_dim;
  uint32_t block_tokens;
  uint32_t slices;
  uint32_t gap_beats;
  uint32_t pages;
};

void CopyBytes(const CardMemory& from, size_t from_byte, size_t bytes,
               CardMemory* to, size_t to_byte) {
  std::memcpy(to->data() + to_byte, from.data() + from_byte, bytes);
}

void ExpectOk(const CardMemory& status, size_t items) {
  const KernelStatus word = status.Get<KernelStatus>(0);
  EXPECT_EQ(word.code, KernelError::kOk) << word.detail;
  EXPECT_EQ(word.items_done, items);
}

class MoveKernelsTest : public KernelBuildsTest {
 protected:
  void SetUp() override {
    random_.seed(TestSeed(threaded() ? 1 : 2));
    status_.Set(0, KernelStatus{});
  }
  absl::Status Run(KernelId kernel, const std::vector<BoundArgument>& args) {
    SetStageSeed(random_());
    return RunKernel(build(), kernel, args);
  }

  // At the end of kRounds.
  void ExpectAllRead() {
    EXPECT_EQ(LeftoverStreams(), 0u);
    if (threaded()) RecordProperty("schedules", kRounds);
  }

  std::mt19937_64 random_;
  CardMemory status_{kBeatBytes};
};

// Tiles, of K and of scales, that begin with a new slot start from 0, and so do
// beats of V.
void ClearNewTiles(const Shape& shape, uint32_t first_slot, uint32_t num_tokens,
                   std::byte* slice) {
  for (uint32_t slot = first_slot; slot < first_slot + num_tokens; ++slot) {
    if (slot % 16 == 0) {
      std::memset(slice + shape.K(slot, 0), 0, size_t{16} * shape.row_bytes());
      if (shape.int8()) {
        std::memset(slice + shape.KScale(slot), 0, kBeatBytes);
        std::memset(slice + shape.VScale(slot), 0, kBeatBytes);
      }
    }
    if (slot % shape.slots_per_beat() == 0) {
      std::memset(slice + shape.V(slot, 0), 0,
                  size_t{shape.slots_per_beat()} * shape.row_bytes());
    }
  }
}

// What is naively true of one appended item.
void NaiveAppend(const Shape& shape, const AppendItem& item,
                 const CardMemory& rows, CardMemory* kv) {
  const size_t row_beats = RowBeats(shape.head_dim, shape.element);
  const size_t token_beats = 2 * row_beats + (shape.int8() ? 1 : 0);
  for (uint32_t s = 0; s < item.num_slices; ++s) {
    const size_t slice =
        shape.Slice(item.page, item.slice_beat + s * item.slice_stride_beats);
    ClearNewTiles(shape, item.first_slot, item.num_tokens, kv->data() + slice);
    for (uint32_t t = 0; t < item.num_tokens; ++t) {
      const uint32_t slot = item.first_slot + t;
      const size_t k_row = (size_t{item.source_beat} +
                            (size_t{s} * item.num_tokens + t) * token_beats) *
                           kBeatBytes;
      const size_t v_row = k_row + row_beats * kBeatBytes;
      const size_t scales = v_row + row_beats * kBeatBytes;
      const size_t bytes = shape.element_bytes();
      for (uint32_t d = 0; d < shape.head_dim; ++d) {
        CopyBytes(rows, k_row + d * bytes, bytes, kv, slice + shape.K(slot, d));
        CopyBytes(rows, v_row + d * bytes, bytes, kv, slice + shape.V(slot, d));
      }
      if (!shape.int8()) continue;
      CopyBytes(rows, scales, 4, kv, slice + shape.KScale(slot));
      CopyBytes(rows, scales + 4, 4, kv, slice + shape.VScale(slot));
    }
  }
}

// Random bytes, with scales that are good ones.
CardMemory RandomRows(const Shape& shape, uint32_t beats,
                      std::mt19937_64& random) {
  CardMemory rows(size_t{beats} * kBeatBytes);
  FillRandom(&rows, random);
  if (!shape.int8()) return rows;
  const uint32_t token_beats = AppendTokenBeats(shape.head_dim, shape.element);
  for (size_t beat = token_beats - 1; beat < beats; beat += token_beats) {
    for (size_t word = 0; word < 2; ++word) {
      // Above 0, below infinity.
      rows.Set(beat * 16 + word, 1 + Below(random, 0x7F7FFFFF));
    }
  }
  return rows;
}

TEST_P(MoveKernelsTest, AppendWritesItsSlotsAndNothingElse) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const Shape shape(element(), random_);
    CardMemory kv(shape.pool_bytes());
    FillRandom(&kv, random_);
    std::vector<AppendItem> items;
    uint32_t source_beats = 0;
    for (uint32_t page = 0; page < shape.pages; page += 1 + Below(random_, 2)) {
      AppendItem item = {};
      item.page = page;
      item.first_slot = Below(random_, shape.block_tokens);
      item.num_tokens =
          1 + Below(random_, shape.block_tokens - item.first_slot);
      const uint32_t first_slice = Below(random_, shape.slices);
      item.slice_beat = first_slice * shape.slice_stride();
      item.num_slices = 1 + Below(random_, shape.slices - first_slice);
      item.slice_stride_beats = item.num_slices > 1 ? shape.slice_stride() : 0;
      item.source_beat = source_beats;
      source_beats += item.num_slices * item.num_tokens *
                      AppendTokenBeats(shape.head_dim, shape.element);
      items.push_back(item);
    }
    CardMemory rows = RandomRows(shape, source_beats, random_);
    CardMemory want = kv;
    for (const AppendItem& item : items) NaiveAppend(shape, item, rows, &want);
    CardMemory work = WorkList(KernelId::kKvAppend, items);
    ASSERT_TRUE(
        Run(KernelId::kKvAppend,
            {kv.Bind(), kv.Bind(), work.Bind(), rows.Bind(), status_.Bind(),
             BindScalar(items.size()), BindScalar(source_beats),
             BindScalar(shape.pages), BindScalar(shape.page_stride()),
             BindScalar(static_cast<uint32_t>(element())),
             BindScalar(shape.head_dim), BindScalar(shape.block_tokens)})
            .ok());
    ExpectOk(status_, items.size());
    ASSERT_TRUE(kv == want) << "head_dim " << shape.head_dim;
  }
  ExpectAllRead();
}

void NaiveCopy(const Shape& from, const Shape& to, const CopyItem& item,
               const CardMemory& source, CardMemory* target) {
  const uint32_t tile_slots = (item.filled_tokens + 15) / 16 * 16;
  // V goes in whole beats.
  const uint32_t per_beat = from.slots_per_beat();
  const uint32_t v_slots =
      (item.filled_tokens + per_beat - 1) / per_beat * per_beat;
  for (uint32_t s = 0; s < item.num_slices; ++s) {
    const size_t in =
        from.Slice(item.source_page,
                   item.source_slice_beat + s * item.source_slice_stride_beats);
    const size_t out =
        to.Slice(item.target_page,
                 item.target_slice_beat + s * item.target_slice_stride_beats);
    const size_t bytes = from.element_bytes();
    for (uint32_t d = 0; d < from.head_dim; ++d) {
      for (uint32_t slot = 0; slot < tile_slots; ++slot) {
        CopyBytes(source, in + from.K(slot, d), bytes, target,
                  out + to.K(slot, d));
      }
      for (uint32_t slot = 0; slot < v_slots; ++slot) {
        CopyBytes(source, in + from.V(slot, d), bytes, target,
                  out + to.V(slot, d));
      }
    }
    for (uint32_t slot = 0; from.int8() && slot < tile_slots; ++slot) {
      CopyBytes(source, in + from.KScale(slot), 4, target,
                out + to.KScale(slot));
      CopyBytes(source, in + from.VScale(slot), 4, target,
                out + to.VScale(slot));
    }
  }
}

TEST_P(MoveKernelsTest, CopyTakesWholeTilesOfKAndFilledRowsOfV) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const Shape from(element(), random_);
    Shape to = from;
    const bool same_pool = round % 2 == 0;
    if (!same_pool) to.gap_beats = from.gap_beats + 2;
    CardMemory source(from.pool_bytes());
    CardMemory other(to.pool_bytes());
    FillRandom(&source, random_);
    FillRandom(&other, random_);
    CardMemory& target = same_pool ? source : other;
    std::vector<CopyItem> items;
    for (uint32_t i = 0; i + 1 < from.pages; i += 2) {
      CopyItem item = {};
      item.source_page = i;
      item.target_page = i + 1;
      const uint32_t first_slice = Below(random_, from.slices);
      item.source_slice_beat = first_slice * from.slice_stride();
      item.target_slice_beat = first_slice * to.slice_stride();
      item.num_slices = 1 + Below(random_, from.slices - first_slice);
      item.source_slice_stride_beats = from.slice_stride();
      item.target_slice_stride_beats = to.slice_stride();
      item.filled_tokens = 1 + Below(random_, from.block_tokens);
      items.push_back(item);
    }
    CardMemory want = target;
    const CardMemory before = source;
    for (const CopyItem& item : items) {
      NaiveCopy(from, to, item, before, &want);
    }
    CardMemory work = WorkList(KernelId::kKvCopy, items);
    ASSERT_TRUE(Run(KernelId::kKvCopy,
                    {source.Bind(), target.Bind(), work.Bind(), status_.Bind(),
                     BindScalar(items.size()), BindScalar(from.pages),
                     BindScalar(from.page_stride()), BindScalar(to.pages),
                     BindScalar(to.page_stride()),
                     BindScalar(static_cast<uint32_t>(element())),
                     BindScalar(from.head_dim), BindScalar(from.block_tokens)})
                    .ok());
    ExpectOk(status_, items.size());
    ASSERT_TRUE(target == want) << "head_dim " << from.head_dim;
  }
  ExpectAllRead();
}

TEST_P(MoveKernelsTest, ScatterPutsRunsInTheirPlaces) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const uint32_t pages = 1 + Below(random_, 8);
    const uint32_t stride = 1 + Below(random_, 300);
    CardMemory kv(size_t{pages} * stride * kBeatBytes);
    FillRandom(&kv, random_);
    CardMemory slab((1 + size_t{Below(random_, 700)}) * kBeatBytes);
    FillRandom(&slab, random_);
    const uint32_t slab_beats = static_cast<uint32_t>(slab.size() / kBeatBytes);
    CardMemory want = kv;
    std::vector<ScatterItem> items;
    // One item per page, so that their order says nothing.
    for (uint32_t page = 0; page < pages; ++page) {
      ScatterItem item = {};
      item.page = page;
      item.source_beat = Below(random_, slab_beats);
      item.page_beat = Below(random_, stride);
      item.num_beats =
          1 + Below(random_, std::min(stride - item.page_beat,
                                      slab_beats - item.source_beat));
      items.push_back(item);
      std::memcpy(
          want.data() + (size_t{page} * stride + item.page_beat) * kBeatBytes,
          slab.data() + size_t{item.source_beat} * kBeatBytes,
          size_t{item.num_beats} * kBeatBytes);
    }
    CardMemory work = WorkList(KernelId::kKvScatter, items);
    ASSERT_TRUE(Run(KernelId::kKvScatter,
                    {slab.Bind(), kv.Bind(), work.Bind(), status_.Bind(),
                     BindScalar(items.size()), BindScalar(slab_beats),
                     BindScalar(pages), BindScalar(stride)})
                    .ok());
    ExpectOk(status_, items.size());
    ASSERT_TRUE(kv == want);
  }
  ExpectAllRead();
}

PAGED_KV_ALL_KERNEL_BUILDS(MoveKernelsTest);

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// kv_append, kv_copy and kv_scatter on an emulated card through the unmodified
// XRT: every byte of every buffer afterwards, before and behind the pool, too.

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention/append_kv.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/kernels/kernel_geometry.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "tests/fpga_dma/xrt/emulated_card_fixture.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint32_t kLayers = 2;
constexpr uint32_t kHeads = 2;
constexpr uint32_t kHeadDim = 64;
constexpr uint32_t kBlockTokens = 32;
constexpr uint32_t kPages = 7;
constexpr uint32_t kSlices = kLayers * kHeads;
constexpr uint32_t kSliceBeats = SliceBeats(kBlockTokens, kHeadDim);
constexpr uint32_t kPageBeats = kSlices * kSliceBeats;
constexpr uint64_t kSliceBytes = uint64_t{kSliceBeats} * kBeatBytes;
constexpr uint64_t kPageBytes = uint64_t{kPageBeats} * kBeatBytes;
constexpr uint64_t kRowBytes = 2 * kHeadDim;
static_assert(kPageBytes % kKvAlignmentBytes == 0);

class XrtPageKernelsTest : public EmulatedCardTest,
                           public testing::WithParamInterface<const char*> {
 protected:
  struct Buffer {
    SlabId slab;
    Bytes content;  // as it should be
  };

  void SetUp() override {
    random_.seed(TestSeed(5));
    ASSERT_NO_FATAL_FAILURE(Open(GetParam()));
  }

  uint32_t Below(uint32_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }

  // The last unit of the kernel: its banks are not the first ones.
  void Choose(absl::string_view kernel) {
    const auto& units = device_->info().compute_units;
    bool found = false;
    for (uint32_t i = 0; i < units.size(); ++i) {
      if (units[i].kernel != kernel) continue;
      unit_ = i;
      found = true;
    }
    ASSERT_TRUE(found);
    kernel_ = std::string(kernel);
  }
  BankId Bank(size_t argument) const {
    return device_->info().compute_units[unit_].argument_banks[argument];
  }

  Buffer Make(BankId bank, Bytes content) {
    return {MakeSlab(bank, content.size(), SlabKind::kHostVisible),
            std::move(content)};
  }
  Bytes Random(uint64_t bytes) {
    Bytes content(bytes);
    FillRandom(random_(), absl::MakeSpan(content));
    return content;
  }
  // Pages with one more before and behind them, which no launch names.
  Bytes RandomPool() { return Random((kPages + 2) * kPageBytes); }
  static uint64_t At(uint32_t page, uint32_t slice) {
    return (page + 1) * kPageBytes + slice * kSliceBytes;
  }
  template <typename Item>
  static Bytes WorkOf(KernelId kernel, const std::vector<Item>& items) {
    Bytes work((1 + items.size()) * kBeatBytes);
    const WorkListHeader header = {
        kWorkListMagic, kernel, static_cast<uint32_t>(items.size()), 42, {}};
    std::memcpy(work.data(), &header, sizeof(header));
    std::memcpy(work.data() + kBeatBytes, items.data(),
                items.size() * kBeatBytes);
    return work;
  }

  // Sends what the buffers held before, runs the kernel, and compares what they
  // hold then with `content`.
  void Run(const std::vector<KernelArgument>& arguments,
           const std::vector<std::pair<const Buffer*, const Bytes*>>& buffers,
           const Buffer& status, uint32_t items) {
    for (const auto& [buffer, before] : buffers) {
      std::copy(before->begin(), before->end(), Image(buffer->slab).begin());
      Send(buffer->slab);
    }
    std::fill(Image(status.slab).begin(), Image(status.slab).end(),
              std::byte{0});
    Send(status.slab);
    const Completion run = Finish(device_->StartKernel(unit_, arguments));
    ASSERT_TRUE(run.status.ok()) << run.status;
    KernelStatus word;
    const Bytes read = Fetch(status.slab);
    std::memcpy(&word, read.data(), sizeof(word));
    EXPECT_TRUE(ToStatus(kernel_, word).ok()) << ToStatus(kernel_, word);
    EXPECT_EQ(word.items_done, items);
    EXPECT_EQ(word.tag, 42u);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Bytes after = Fetch(buffers[i].first->slab);
      const Bytes& want = buffers[i].first->content;
      ASSERT_EQ(after.size(), want.size());
      const auto differs =
          std::mismatch(after.begin(), after.end(), want.begin()).first;
      EXPECT_EQ(differs - after.begin(), static_cast<ptrdiff_t>(want.size()))
          << "first wrong byte of buffer " << i;
    }
  }

  std::mt19937_64 random_;
  uint32_t unit_ = 0;
  std::string kernel_;

 private:
  void Send(SlabId slab) {
    EXPECT_TRUE(Finish(device_->StartUpload({slab, 0, Image(slab).size()}, 0))
                    .status.ok());
  }
  // What the card has, not what the image of the slab had.
  Bytes Fetch(SlabId slab) {
    const absl::Span<std::byte> image = Image(slab);
    std::fill(image.begin(), image.end(), std::byte{0x5A});
    EXPECT_TRUE(
        Finish(device_->StartDownload({slab, 0, image.size()}, 0)).status.ok());
    return {image.begin(), image.end()};
  }
};

TEST_P(XrtPageKernelsTest, AppendWritesWhatTheHostWrites) {
  ASSERT_NO_FATAL_FAILURE(Choose("kv_append"));
  // Tokens in a layer of some pages, each page from a slot of its own on.
  std::vector<AppendItem> items;
  std::vector<int64_t> slots;
  uint32_t tokens = 0;
  const uint32_t layer = Below(kLayers);
  for (uint32_t page = 1; page < kPages; page += 2) {
    AppendItem item = {};
    item.page = page;
    item.first_slot = Below(kBlockTokens - 3);
    item.num_tokens = 1 + Below(kBlockTokens - item.first_slot);
    item.slice_beat = layer * kHeads * kSliceBeats;
    item.num_slices = kHeads;
    item.slice_stride_beats = kSliceBeats;
    item.source_beat =
        tokens * kHeads * AppendTokenBeats(kHeadDim, KvElement::kBf16);
    for (uint32_t i = 0; i < item.num_tokens; ++i) {
      slots.push_back(int64_t{page} * kBlockTokens + item.first_slot + i);
    }
    tokens += item.num_tokens;
    items.push_back(item);
  }
  // The host's rows are [tokens, heads, head_dim], the card's per page
  // [heads, tokens, K and V].
  const Bytes k = Random(tokens * kHeads * kRowBytes);
  const Bytes v = Random(tokens * kHeads * kRowBytes);
  Bytes packed(2 * tokens * kHeads * kRowBytes);
  std::byte* to = packed.data();
  uint32_t first = 0;
  for (const AppendItem& item : items) {
    for (uint32_t head = 0; head < kHeads; ++head) {
      for (uint32_t i = 0; i < item.num_tokens; ++i) {
        const uint64_t row = ((first + i) * kHeads + head) * kRowBytes;
        std::memcpy(to, k.data() + row, kRowBytes);
        std::memcpy(to + kRowBytes, v.data() + row, kRowBytes);
        to += 2 * kRowBytes;
      }
    }
    first += item.num_tokens;
  }

  const Bytes before = RandomPool();
  Buffer pool = Make(Bank(0), before);
  BlockShape shape;
  shape.layers = kLayers;
  shape.kv_heads = kHeads;
  shape.head_dim = kHeadDim;
  shape.block_tokens = kBlockTokens;
  shape.dtype = DType::kBF16;
  // The host's kernels want their pages aligned.
  std::vector<uint64_t> storage((kPages * kPageBytes + kKvAlignmentBytes) / 8);
  void* aligned = storage.data();
  size_t space = storage.size() * 8;
  ASSERT_NE(std::align(kKvAlignmentBytes, kPages * kPageBytes, aligned, space),
            nullptr);
  std::memcpy(aligned, before.data() + At(0, 0), kPages * kPageBytes);
  // The card begins a tile of K that it writes from its first slot on with
  // zeros; the host leaves what was there.
  constexpr uint64_t kTileBytes = kTileSlots * kRowBytes;
  for (const AppendItem& item : items) {
    for (uint32_t head = 0; head < kHeads; ++head) {
      std::byte* slice = static_cast<std::byte*>(aligned) +
                         At(item.page, layer * kHeads + head) - At(0, 0);
      for (uint32_t slot = 0; slot < kBlockTokens; slot += kTileSlots) {
        if (slot < item.first_slot ||
            slot >= item.first_slot + item.num_tokens) {
          continue;
        }
        std::memset(slice + slot / kTileSlots * kTileBytes, 0, kTileBytes);
      }
    }
  }
  const attention::KvPages pages = {shape, OwnPageLayout(shape, aligned),
                                    kPages};
  attention::KvRows rows[2];
  rows[0].data = k.data();
  rows[1].data = v.data();
  rows[0].dtype = rows[1].dtype = DType::kBF16;
  attention::SerialFor serial;
  const absl::Status appended =
      attention::AppendKv(pages, layer, rows[0], rows[1], slots, serial);
  ASSERT_TRUE(appended.ok()) << appended;
  std::memcpy(pool.content.data() + At(0, 0), aligned, kPages * kPageBytes);

  const Buffer work = Make(Bank(2), WorkOf(KernelId::kKvAppend, items));
  const Buffer source = Make(Bank(3), packed);
  const Buffer status = Make(Bank(4), Bytes(kBeatBytes));
  Run({AddressArgument(pool.slab, kPageBytes),
       AddressArgument(pool.slab, kPageBytes), AddressArgument(work.slab),
       AddressArgument(source.slab), AddressArgument(status.slab),
       ScalarArgument(items.size()), ScalarArgument(packed.size() / kBeatBytes),
       ScalarArgument(kPages), ScalarArgument(kPageBeats),
       ScalarArgument(static_cast<uint64_t>(KvElement::kBf16)),
       ScalarArgument(kHeadDim), ScalarArgument(kBlockTokens)},
      {{&pool, &before}, {&work, &work.content}, {&source, &source.content}},
      status, static_cast<uint32_t>(items.size()));
}

TEST_P(XrtPageKernelsTest, CopyTakesTheFilledPartOfPages) {
  ASSERT_NO_FATAL_FAILURE(Choose("kv_copy"));
  const Bytes before = RandomPool();
  Buffer pool = Make(Bank(0), before);
  std::vector<CopyItem> items;
  for (uint32_t page = 0; page + 1 < kPages; page += 2) {
    CopyItem item = {};
    item.source_page = page + 1;
    item.target_page = page;
    const uint32_t first = Below(kSlices);
    item.source_slice_beat = item.target_slice_beat = first * kSliceBeats;
    item.num_slices = 1 + Below(kSlices - first);
    item.source_slice_stride_beats = item.target_slice_stride_beats =
        kSliceBeats;
    item.filled_tokens = 1 + Below(kBlockTokens);
    items.push_back(item);
    // Whole tiles of K, rows of V.
    const uint64_t k_bytes = (item.filled_tokens + kTileSlots - 1) /
                             kTileSlots * kTileSlots * kRowBytes;
    const uint64_t v_bytes = item.filled_tokens * kRowBytes;
    for (uint32_t slice = first; slice < first + item.num_slices; ++slice) {
      const std::byte* from = before.data() + At(item.source_page, slice);
      std::byte* target = pool.content.data() + At(item.target_page, slice);
      std::memcpy(target, from, k_bytes);
      std::memcpy(target + kSliceBytes / 2, from + kSliceBytes / 2, v_bytes);
    }
  }
  const Buffer work = Make(Bank(2), WorkOf(KernelId::kKvCopy, items));
  const Buffer status = Make(Bank(3), Bytes(kBeatBytes));
  Run({AddressArgument(pool.slab, kPageBytes),
       AddressArgument(pool.slab, kPageBytes), AddressArgument(work.slab),
       AddressArgument(status.slab), ScalarArgument(items.size()),
       ScalarArgument(kPages), ScalarArgument(kPageBeats),
       ScalarArgument(kPages), ScalarArgument(kPageBeats),
       ScalarArgument(static_cast<uint64_t>(KvElement::kBf16)),
       ScalarArgument(kHeadDim), ScalarArgument(kBlockTokens)},
      {{&pool, &before}, {&work, &work.content}}, status,
      static_cast<uint32_t>(items.size()));
}

TEST_P(XrtPageKernelsTest, ScatterPutsRunsInTheirPlaces) {
  ASSERT_NO_FATAL_FAILURE(Choose("kv_scatter"));
  const Bytes before = RandomPool();
  Buffer pool = Make(Bank(1), before);
  constexpr uint32_t kSourceBeats = 700;
  const Buffer packed = Make(Bank(0), Random(kSourceBeats * kBeatBytes));
  std::vector<ScatterItem> items;
  for (uint32_t page = 0; page < kPages; ++page) {
    ScatterItem item = {};
    item.page = kPages - 1 - page;
    item.source_beat = Below(kSourceBeats);
    item.page_beat = Below(kPageBeats);
    item.num_beats = 1 + Below(std::min(kPageBeats - item.page_beat,
                                        kSourceBeats - item.source_beat));
    items.push_back(item);
    std::memcpy(pool.content.data() + At(item.page, 0) +
                    uint64_t{item.page_beat} * kBeatBytes,
                packed.content.data() + uint64_t{item.source_beat} * kBeatBytes,
                uint64_t{item.num_beats} * kBeatBytes);
  }
  const Buffer work = Make(Bank(2), WorkOf(KernelId::kKvScatter, items));
  const Buffer status = Make(Bank(3), Bytes(kBeatBytes));
  Run({AddressArgument(packed.slab), AddressArgument(pool.slab, kPageBytes),
       AddressArgument(work.slab), AddressArgument(status.slab),
       ScalarArgument(items.size()), ScalarArgument(kSourceBeats),
       ScalarArgument(kPages), ScalarArgument(kPageBeats)},
      {{&pool, &before}, {&packed, &packed.content}, {&work, &work.content}},
      status, static_cast<uint32_t>(items.size()));
}

INSTANTIATE_TEST_SUITE_P(Boards, XrtPageKernelsTest,
                         testing::Values("u250", "u280", "u55c"),
                         [](const auto& board) {
                           return std::string(board.param);
                         });

}  // namespace
}  // namespace paged_kv::fpga_dma

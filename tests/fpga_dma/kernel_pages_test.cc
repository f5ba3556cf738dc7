// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Host and card have the same pages: what kv_append writes is what AppendKv
// writes, byte for byte, and paged_decode attends to it as the reference does.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "attention/append_kv.h"
#include "attention/float_formats.h"
#include "attention/parallel_for.h"
#include "attention/reference_attention.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "tests/fpga_dma/kernels/card_memory.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kLayers = 2;
constexpr uint32_t kKvHeads = 2;
constexpr uint32_t kGroupHeads = 4;
constexpr uint32_t kPages = 5;
// In two steps; the second begins inside a tile.
constexpr uint32_t kTokens[] = {37, 24};
constexpr uint32_t kAllTokens = kTokens[0] + kTokens[1];

using Shape = std::tuple<KvElement, uint32_t, uint32_t>;

class KernelPagesTest : public testing::TestWithParam<Shape> {
 protected:
  KernelPagesTest() : random_(TestSeed(1)) {
    shape_.layers = kLayers;
    shape_.kv_heads = kKvHeads;
    shape_.head_dim = head_dim();
    shape_.block_tokens = block_tokens();
    shape_.dtype = int8() ? DType::kInt8 : DType::kBF16;
    std::memset(host_.data(), 0, host_.size());
    std::memset(card_.data(), 0, card_.size());
    host_pages_ = {shape_, OwnPageLayout(shape_, host_.data()), kPages};
  }

  static KvElement element() { return std::get<0>(GetParam()); }
  static bool int8() { return element() == KvElement::kInt8; }
  static uint32_t head_dim() { return std::get<1>(GetParam()); }
  static uint32_t block_tokens() { return std::get<2>(GetParam()); }
  static uint32_t slice_beats() {
    return SliceBeats(block_tokens(), head_dim(), element());
  }
  static uint32_t page_beats() { return kLayers * kKvHeads * slice_beats(); }
  static size_t row_bytes() { return head_dim() * KvElementBytes(element()); }
  // Blocks lie in the pages from behind.
  static uint32_t PageOf(uint32_t token) {
    return kPages - 1 - token / block_tokens();
  }

  // A row of codes that are never -128, which nobody writes, or of bf16.
  void RandomRow(std::byte* row) {
    std::normal_distribution<float> normal;
    for (uint32_t d = 0; d < head_dim(); ++d) {
      if (int8()) {
        const int code = static_cast<int>(random_() % 255) - 127;
        row[d] = static_cast<std::byte>(code);
      } else {
        const uint16_t bits = attention::F32ToBf16(normal(random_));
        std::memcpy(row + 2 * d, &bits, sizeof(bits));
      }
    }
  }

  // Appends a step's tokens in one layer: on the host, and on the card with an
  // item for each page.
  void AppendLayer(uint32_t layer, uint32_t first_token, uint32_t num_tokens);
  void RunAppend(const std::vector<AppendItem>& items, CardMemory* rows);

  std::mt19937_64 random_;
  BlockShape shape_;
  CardMemory host_{size_t{kPages} * page_beats() * kBeatBytes};
  CardMemory card_{size_t{kPages} * page_beats() * kBeatBytes};
  attention::KvPages host_pages_;
  attention::SerialFor serial_;
};

void KernelPagesTest::AppendLayer(uint32_t layer, uint32_t first_token,
                                  uint32_t num_tokens) {
  // The host's rows: [tokens, heads, head_dim], scales [tokens, heads].
  const size_t rows = size_t{num_tokens} * kKvHeads;
  std::vector<std::byte> data[2];
  std::vector<float> scales[2];
  std::uniform_real_distribution<float> scale(0.002f, 0.02f);
  for (int v = 0; v < 2; ++v) {
    data[v].resize(rows * row_bytes());
    for (size_t r = 0; r < rows; ++r) {
      RandomRow(data[v].data() + r * row_bytes());
      scales[v].push_back(scale(random_));
    }
  }
  std::vector<int64_t> slots;
  for (uint32_t t = first_token; t < first_token + num_tokens; ++t) {
    slots.push_back(int64_t{PageOf(t)} * block_tokens() + t % block_tokens());
  }
  attention::KvRows host_rows[2];
  for (int v = 0; v < 2; ++v) {
    host_rows[v].data = data[v].data();
    host_rows[v].dtype = shape_.dtype;
    if (int8()) host_rows[v].scales = scales[v].data();
  }
  ASSERT_TRUE(attention::AppendKv(host_pages_, layer, host_rows[0],
                                  host_rows[1], slots, serial_)
                  .ok());

  const uint32_t token_beats = AppendTokenBeats(head_dim(), element());
  const uint32_t row_beats = RowBeats(head_dim(), element());
  CardMemory packed(rows * token_beats * kBeatBytes);
  std::vector<AppendItem> items;
  uint32_t beat = 0;
  for (uint32_t t = first_token; t < first_token + num_tokens;) {
    AppendItem item = {};
    item.page = PageOf(t);
    item.first_slot = t % block_tokens();
    item.num_tokens = std::min(block_tokens() - item.first_slot,
                               first_token + num_tokens - t);
    item.slice_beat = layer * kKvHeads * slice_beats();
    item.num_slices = kKvHeads;
    item.slice_stride_beats = slice_beats();
    item.source_beat = beat;
    for (uint32_t head = 0; head < kKvHeads; ++head) {
      for (uint32_t i = 0; i < item.num_tokens; ++i) {
        const size_t row = size_t{t - first_token + i} * kKvHeads + head;
        std::byte* to = packed.data() + size_t{beat} * kBeatBytes;
        for (int v = 0; v < 2; ++v) {
          std::memcpy(to, data[v].data() + row * row_bytes(), row_bytes());
          to += row_beats * size_t{kBeatBytes};
        }
        if (int8()) {
          std::memcpy(to, &scales[0][row], sizeof(float));
          std::memcpy(to + 4, &scales[1][row], sizeof(float));
        }
        beat += token_beats;
      }
    }
    items.push_back(item);
    t += item.num_tokens;
  }
  RunAppend(items, &packed);
}

void KernelPagesTest::RunAppend(const std::vector<AppendItem>& items,
                                CardMemory* rows) {
  CardMemory work = WorkList(KernelId::kKvAppend, items);
  CardMemory status(kBeatBytes);
  status.Set(0, KernelStatus{});
  const absl::Status run =
      FindKernel("kv_append")
          ->run({card_.Bind(), card_.Bind(), work.Bind(), rows->Bind(),
                 status.Bind(), BindScalar(items.size()),
                 BindScalar(rows->size() / kBeatBytes), BindScalar(kPages),
                 BindScalar(page_beats()),
                 BindScalar(static_cast<uint32_t>(element())),
                 BindScalar(head_dim()), BindScalar(block_tokens())});
  ASSERT_TRUE(run.ok()) << run;
  const absl::Status done = ToStatus("kv_append", status.Get<KernelStatus>(0));
  ASSERT_TRUE(done.ok()) << done;
}

TEST_P(KernelPagesTest, PagesAreAsLargeAndSlicesWhereTheHostHasThem) {
  EXPECT_EQ(PageBytes(shape_).value(), uint64_t{page_beats()} * kBeatBytes);
  const PageLayout& layout = host_pages_.layout;
  EXPECT_EQ(layout.head_stride, int64_t{slice_beats()} * kBeatBytes);
  EXPECT_EQ(layout.kv_stride, int64_t{slice_beats()} * kBeatBytes / 2);
  EXPECT_EQ(layout.k_order, KOrder::kTiled16);
}

TEST_P(KernelPagesTest, TheCardWritesAndReadsWhatTheHostDoes) {
  uint32_t first_token = 0;
  for (const uint32_t tokens : kTokens) {
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      AppendLayer(layer, first_token, tokens);
    }
    first_token += tokens;
    ASSERT_TRUE(card_ == host_) << "after " << first_token << " tokens";
  }

  // One sequence, one query.
  const uint32_t heads = kKvHeads * kGroupHeads;
  CardMemory queries(size_t{heads} * RowBeats(head_dim()) * kBeatBytes);
  std::vector<float> q;
  std::normal_distribution<float> normal;
  for (uint32_t head = 0; head < heads; ++head) {
    for (uint32_t d = 0; d < head_dim(); ++d) {
      const uint16_t bits = attention::F32ToBf16(normal(random_));
      queries.Set(size_t{head} * RowBeats(head_dim()) * 32 + d, bits);
      q.push_back(attention::Bf16ToF32(bits));
    }
  }
  std::vector<int32_t> pages;
  CardMemory table(kPages * sizeof(uint32_t));
  for (uint32_t t = 0; t < kAllTokens; t += block_tokens()) {
    table.Set(pages.size(), PageOf(t));
    pages.push_back(static_cast<int32_t>(PageOf(t)));
  }
  const int32_t indptr[] = {0, static_cast<int32_t>(pages.size())};
  const int32_t last[] = {
      static_cast<int32_t>((kAllTokens - 1) % block_tokens() + 1)};
  const int32_t first[] = {0};
  const int32_t qo_indptr[] = {0, 1};

  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    attention::AttentionInputs inputs;
    inputs.pages = host_pages_;
    inputs.layer = layer;
    inputs.table.indptr = indptr;
    inputs.table.page_indices = pages;
    inputs.table.last_page_tokens = last;
    inputs.table.first_token = first;
    inputs.table.block_tokens = static_cast<int32_t>(block_tokens());
    inputs.query_heads = heads;
    inputs.q = q;
    attention::AttentionOptions options;
    options.scale = 0.125f;
    std::vector<double> want(q.size()), want_lse(heads);
    const absl::Status reference = attention::ReferenceAttention(
        inputs, qo_indptr, options,
        {absl::MakeSpan(want), absl::MakeSpan(want_lse)}, serial_);
    ASSERT_TRUE(reference.ok()) << reference;

    const uint32_t item_beats = kGroupHeads * OutRowBeats(head_dim());
    std::vector<DecodeItem> items;
    for (uint32_t head = 0; head < kKvHeads; ++head) {
      DecodeItem item = {};
      item.table_step = 1;
      item.num_tokens = kAllTokens;
      item.slice_beat = (layer * kKvHeads + head) * slice_beats();
      item.query_beat = head * kGroupHeads * RowBeats(head_dim());
      item.out_beat = head * item_beats;
      item.lse_beat = kKvHeads * item_beats + head;
      item.scale = options.scale;
      items.push_back(item);
    }
    CardMemory work = WorkList(KernelId::kPagedDecode, items);
    CardMemory out(size_t{kKvHeads} * (item_beats + 1) * kBeatBytes);
    CardMemory status(kBeatBytes);
    status.Set(0, KernelStatus{});
    const absl::Status run =
        FindKernel("paged_decode")
            ->run({card_.Bind(), work.Bind(), table.Bind(), queries.Bind(),
                   out.Bind(), status.Bind(), BindScalar(items.size()),
                   BindScalar(kPages), BindScalar(queries.size() / kBeatBytes),
                   BindScalar(out.size() / kBeatBytes), BindScalar(kPages),
                   BindScalar(page_beats()),
                   BindScalar(static_cast<uint32_t>(element())),
                   BindScalar(head_dim()), BindScalar(kGroupHeads),
                   BindScalar(block_tokens())});
    ASSERT_TRUE(run.ok()) << run;
    const absl::Status done =
        ToStatus("paged_decode", status.Get<KernelStatus>(0));
    ASSERT_TRUE(done.ok()) << done;
    for (uint32_t head = 0; head < heads; ++head) {
      for (uint32_t d = 0; d < head_dim(); ++d) {
        const float got =
            out.Get<float>(size_t{head} * OutRowBeats(head_dim()) * 16 + d);
        ASSERT_NEAR(got, want[size_t{head} * head_dim() + d], 1e-5)
            << "layer " << layer << " head " << head << " dim " << d;
      }
      const float lse = out.Get<float>(
          size_t{kKvHeads * item_beats + head / kGroupHeads} * 16 +
          head % kGroupHeads);
      ASSERT_NEAR(lse, want_lse[head], 1e-5) << head;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, KernelPagesTest,
    testing::Combine(testing::Values(KvElement::kBf16, KvElement::kInt8),
                     testing::Values(8u, 16u, 32u, 64u, 128u),
                     testing::Values(16u, 48u)),
    [](const auto& param) {
      const bool int8 = std::get<0>(param.param) == KvElement::kInt8;
      return std::string(int8 ? "Int8" : "Bf16") + "Dim" +
             std::to_string(std::get<1>(param.param)) + "Block" +
             std::to_string(std::get<2>(param.param));
    });

}  // namespace
}  // namespace paged_kv::fpga_dma

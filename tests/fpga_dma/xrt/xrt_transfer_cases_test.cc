// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The failure cases of transfers and page tables through the unmodified XRT, on
// the emulated card. transfer_queue_test.cc, transfer_faults_test.cc and
// card_decode_test.cc have them on the simulated device.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attention/float_formats.h"
#include "attention/paged_decode.h"
#include "fpga_dma/decode/card_decode.h"
#include "fpga_dma/transfers/transfer_queue.h"
#include "tests/fpga_dma/xrt/emulated_card_fixture.h"

namespace paged_kv::fpga_dma {
namespace {

using absl::StatusCode;

constexpr uint32_t kPages = 48;
constexpr uint32_t kLayers = 2, kHeads = 4, kHeadDim = 64, kTokens = 16;

class XrtTransferCasesTest : public EmulatedCardTest {
 protected:
  void TearDown() override {
    decode_.reset();
    queue_.reset();
    pool_.reset();
    tracker_.reset();
  }

  void Start(const std::string& faults, SlabKind kind,
             const TransferQueueOptions& options = {}) {
    TearDown();
    ASSERT_NO_FATAL_FAILURE(Open("u250", {{"PAGEDKV_CARD_FAULTS", faults}}));
    tracker_ =
        std::make_unique<OperationTracker>(device_.get(), OperationLimits());
    DevicePoolOptions pool;
    pool.shape.layers = kLayers;
    pool.shape.kv_heads = kHeads;
    pool.shape.head_dim = kHeadDim;
    pool.shape.block_tokens = kTokens;
    pool.num_pages = kPages;
    pool.stripes = 2;
    pool.kind = kind;
    pool_ = DevicePool::Create(device_.get(), pool).value();
    page_bytes_ = PageBytes(pool.shape).value();
    memory_.resize(kPages * page_bytes_ / 2);
    for (uint16_t& element : memory_) {
      element = attention::F32ToBf16(
          static_cast<float>(random_() % 2001) / 1000.0f - 1.0f);
    }
    host_.shape = pool.shape;
    host_.num_pages = kPages;
    host_.layout = OwnPageLayout(pool.shape, memory_.data());
    queue_ = TransferQueue::Create(tracker_.get(), pool_.get(), host_, options)
                 .value();
  }

  std::vector<uint16_t> HostPage(uint32_t page) const {
    const auto n = static_cast<int64_t>(page_bytes_ / 2);
    return {memory_.begin() + page * n, memory_.begin() + (page + 1) * n};
  }
  static PageTransfer Up(uint32_t host, uint32_t device) {
    return {TransferDirection::kUpload, host, device, {0, kLayers}};
  }
  static PageTransfer Down(uint32_t device, uint32_t host) {
    return {TransferDirection::kDownload, host, device, {0, kLayers}};
  }
  TransferListId Submit(const std::vector<PageTransfer>& pages) {
    return queue_->Submit(pages, TransferPriority::kDecode).value();
  }
  TransferResult Take(TransferListId id) {
    EXPECT_TRUE(queue_->Wait(id, absl::InfiniteFuture()).ok());
    while (auto result = queue_->TakeResult()) {
      if (result->id == id) return *std::move(result);
    }
    ADD_FAILURE() << "no result";
    return {};
  }
  TransferResult Move(const std::vector<PageTransfer>& pages) {
    return Take(Submit(pages));
  }

  std::mt19937_64 random_{7};
  uint64_t page_bytes_ = 0;
  std::vector<uint16_t> memory_;
  attention::KvPages host_;
  std::unique_ptr<OperationTracker> tracker_;
  std::unique_ptr<DevicePool> pool_;
  std::unique_ptr<TransferQueue> queue_;
  std::unique_ptr<CardDecode> decode_;
};

// The next owner of an aborted page gets it behind the fence, and keeps it.
TEST_F(XrtTransferCasesTest, CasesE1E2PagesAreBusyUntilTheFence) {
  for (const std::string faults : {"", "upload:delay=100ms@1"}) {
    ASSERT_NO_FATAL_FAILURE(Start(faults, SlabKind::kHostVisible));
    const TransferListId aborted = Submit({Up(1, 4), Up(2, 9)});
    queue_->Advance(absl::InfinitePast());      // dma_begin(b)
    ASSERT_TRUE(queue_->Cancel(aborted).ok());  // abort(s)
    EXPECT_TRUE(queue_->DevicePageBusy(4));
    const TransferListId next = Submit({Up(3, 4)});  // new(t)
    const TransferResult result = Take(next);
    ASSERT_TRUE(queue_->CheckInvariants().ok());
    EXPECT_FALSE(queue_->DevicePageBusy(4));
    const TransferResult down = Move({Down(4, 20)});
    EXPECT_EQ(down.status.ok(), result.status.ok());
    if (result.status.ok()) {
      EXPECT_EQ(HostPage(20), HostPage(3));
    }
    if (faults.empty()) {
      EXPECT_TRUE(result.status.ok()) << result.status;
    }
  }
}

TEST_F(XrtTransferCasesTest, CaseE4TransfersOfOnePageKeepTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(Start("", SlabKind::kHostVisible));
  ASSERT_TRUE(Move({Up(1, 1), Up(2, 2)}).status.ok());
  const std::vector<uint16_t> before = HostPage(7);
  const TransferResult result = Move({
      Up(7, 5),    // reads host page 7 before it changes
      Down(1, 7),  // out(b1 -> h0)
      Down(2, 7),  // out(b2 -> h0)
      Up(7, 3),    // in(h0 -> b3)
      Down(3, 8),  // copy(b3 -> b4) through host page 8
      Up(8, 4),
  });
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(HostPage(7), HostPage(2));
  ASSERT_TRUE(Move({Down(5, 20), Down(4, 21), Down(3, 22)}).status.ok());
  EXPECT_EQ(HostPage(20), before);
  EXPECT_EQ(HostPage(21), HostPage(2));
  EXPECT_EQ(HostPage(22), HostPage(2));
}

TEST_F(XrtTransferCasesTest, CaseE8PaddingIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Start("", SlabKind::kHostVisible));
  const auto padding = static_cast<uint32_t>(-1);
  for (const PageTransfer& page :
       {Up(padding, 0), Up(0, padding), Down(padding, 0), Down(0, padding)}) {
    EXPECT_EQ(queue_->Submit({{Up(1, 1), page}}, TransferPriority::kDecode)
                  .status()
                  .code(),
              StatusCode::kOutOfRange);
  }
  EXPECT_EQ(queue_->unfinished(), 0u);
}

// Two loads of 8 pages through 2 staging slabs, the second while the first is
// under way.
TEST_F(XrtTransferCasesTest, CaseE9StagingSlabsAreTrackedAcrossCalls) {
  TransferQueueOptions options;
  options.staging_slabs = 2;
  options.staging_bytes = 64 << 10;
  ASSERT_NO_FATAL_FAILURE(Start("", SlabKind::kDeviceOnly, options));
  std::vector<TransferListId> ids;
  for (uint32_t list = 0; list < 2; ++list) {
    std::vector<PageTransfer> pages;
    for (uint32_t i = 8 * list; i < 8 * list + 8; ++i) {
      pages.push_back(Up(i, 5 * i % kPages));
    }
    ids.push_back(Submit(pages));
    queue_->Advance(absl::InfinitePast());
    ASSERT_TRUE(queue_->CheckInvariants().ok());
  }
  for (TransferListId id : ids) EXPECT_TRUE(Take(id).status.ok());
  std::vector<PageTransfer> back;
  for (uint32_t i = 0; i < 16; ++i)
    back.push_back(Down(5 * i % kPages, 20 + i));
  ASSERT_TRUE(Move(back).status.ok());
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(HostPage(20 + i), HostPage(i));
  EXPECT_GE(queue_->Stats().packed_slabs, 4u);
}

// A restore of which every copy has a flipped bit, or is cut short, is refused.
TEST_F(XrtTransferCasesTest, CaseE10WhatArrivesWrongIsNeverVisible) {
  for (const SlabKind kind : {SlabKind::kHostVisible, SlabKind::kDeviceOnly}) {
    for (const std::string faults : {"download:flip%1", "download:fail%1"}) {
      SCOPED_TRACE(faults);
      ASSERT_NO_FATAL_FAILURE(Start(faults, kind));
      const std::vector<uint16_t> before = HostPage(2);
      const TransferResult up = Move({Up(1, 4)});
      EXPECT_FALSE(up.status.ok()) << "it cannot be verified";
      const TransferResult down = Move({Down(4, 2)});
      EXPECT_EQ(down.status.code(), StatusCode::kDataLoss) << down.status;
      EXPECT_EQ(HostPage(2), before);
    }
  }
}

// Case E6, and paged_decode through XRT against the host's kernel: a step keeps
// the page tables that it began with.
TEST_F(XrtTransferCasesTest, CaseE6AStepKeepsItsPageTable) {
  ASSERT_NO_FATAL_FAILURE(Start("", SlabKind::kHostVisible));
  DecodeBlocks blocks;
  blocks.indptr = {0, 5, 6};  // 70 and 5 tokens
  blocks.last_page_tokens = {6, 5};
  std::vector<PageTransfer> up;
  std::vector<int32_t> host_table;
  for (uint32_t i = 0; i < 6; ++i) {
    const bool resident = i != 2;
    blocks.device_pages.push_back(resident ? 7 * i + 3 : kNoDevicePage);
    blocks.host_pages.push_back(i);
    host_table.push_back(static_cast<int32_t>(i));
    if (resident) up.push_back(Up(i, 7 * i + 3));
  }
  ASSERT_TRUE(Move(up).status.ok());
  CardDecodeOptions options;
  options.query_heads = 4 * kHeads;
  decode_ =
      CardDecode::Create(tracker_.get(), pool_.get(), host_, options).value();
  std::vector<float> q;
  for (uint32_t i = 0; i < 2 * options.query_heads * kHeadDim; ++i) {
    q.push_back(attention::Bf16ToF32(attention::F32ToBf16(
        static_cast<float>(random_() % 2001) / 1000.0f - 1.0f)));
  }
  ASSERT_TRUE(decode_->BeginStep(blocks).ok());
  const DecodeBlocks v1 = blocks;
  std::fill(blocks.device_pages.begin(), blocks.device_pages.end(), 0u);
  std::fill(blocks.host_pages.begin(), blocks.host_pages.end(), 40u);
  attention::SerialFor serial;
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    std::vector<float> got(q.size(), NAN), want(q.size());
    const absl::Status status =
        decode_->Attend(layer, q, {absl::MakeSpan(got), {}}, serial);
    ASSERT_TRUE(status.ok()) << status;
    std::vector<int32_t> first(2);
    PageTable table;
    table.indptr = v1.indptr;
    table.page_indices = host_table;
    table.last_page_tokens = v1.last_page_tokens;
    table.first_token = first;
    table.block_tokens = kTokens;
    ASSERT_TRUE(
        attention::PagedDecode({host_, layer, table, options.query_heads, q},
                               {}, {absl::MakeSpan(want), {}}, serial)
            .ok());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_LE(std::fabs(got[i] - want[i]), 1e-3) << "layer " << layer;
    }
  }
  // And a padded table is refused.
  DecodeBlocks padded = v1;
  padded.device_pages[5] = kPages;
  EXPECT_EQ(decode_->BeginStep(padded).code(), StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

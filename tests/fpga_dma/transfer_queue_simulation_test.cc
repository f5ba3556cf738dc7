// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random traffic over a card on which everything goes wrong. Whatever arrives
// is right to the byte, whatever does not is reported, and it always ends.
// PAGED_KV_FAULT_SEEDS sets how many seeds are run.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fpga_dma/transfer_rig.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kHostPages = 12;
constexpr uint32_t kDevicePages = 12;

// Faults of all kinds, each in some seeds alone and in others together.
std::vector<FaultRule> Faults(uint64_t seed) {
  std::vector<FaultRule> rules;
  const auto add = [&](CardOperation operation, FaultKind kind,
                       double probability) {
    FaultRule rule;
    rule.operation = operation;
    rule.kind = kind;
    rule.probability = probability;
    rule.delay = absl::Milliseconds(kind == FaultKind::kDelay ? 40 : 0);
    rules.push_back(rule);
  };
  const uint64_t which = seed % 8;
  for (CardOperation operation :
       {CardOperation::kUpload, CardOperation::kDownload,
        CardOperation::kKernel}) {
    const bool kernel = operation == CardOperation::kKernel;
    if (which == 0 || which == 7) add(operation, FaultKind::kFail, 0.03);
    if ((which == 1 || which == 7) && !kernel) {
      add(operation, FaultKind::kFlipBit, 0.05);
    }
    if (which == 2 || which == 7) add(operation, FaultKind::kHang, 0.004);
    if (which == 3 || which == 7) add(operation, FaultKind::kDelay, 0.01);
    if (which == 4 || which == 7) {
      add(operation, FaultKind::kLoseCompletion, 0.01);
    }
    if (which == 5 || which == 7) {
      add(operation, FaultKind::kLoseDevice, 0.002);
    }
  }
  if (which == 2 || which == 6) {
    add(CardOperation::kReset, FaultKind::kFail, 0.2);
    add(CardOperation::kUpload, FaultKind::kHang, 0.004);
  }
  return rules;
}

RigOptions Options(uint64_t seed) {
  RigOptions options;
  options.shape.layers = 3;
  options.shape.kv_heads = 3;
  options.shape.head_dim = 16;
  options.shape.block_tokens = 16;
  options.host_pages = kHostPages;
  options.device_pages = kDevicePages;
  const auto n = static_cast<uint32_t>(seed);
  options.stripes = 1 + n % 3;
  options.splits = 1 + n / 3 % 2;
  options.kind =
      seed / 6 % 3 == 0 ? SlabKind::kDeviceOnly : SlabKind::kHostVisible;
  options.host_gaps = seed / 18 % 2 == 0;
  options.channels = 1 + n / 36 % 2;
  options.max_slowdown = 2;
  options.seed = seed;
  options.faults.seed = seed;
  options.faults.rules = Faults(seed);
  // Shorter than the delays, longer than anything healthy.
  options.limits.base = absl::Milliseconds(5);
  options.limits.kernel = absl::Milliseconds(10);
  options.queue.staging_bytes = 16 << 10;
  options.queue.staging_slabs = 1 + n % 4;
  options.queue.min_extent_bytes = 8 << 10;
  options.queue.max_extent_bytes = 32 << 10;
  options.queue.max_lone_pieces = seed % 3;
  options.queue.verify_scattered = seed / 2 % 2 == 0;
  return options;
}

// What must hold for pages: bytes, or nothing after a failure or a reset.
struct Expected {
  TransferRig::Page bytes;
  bool known = true;
};

class FaultRun {
 public:
  explicit FaultRun(uint64_t seed) : rig_(Options(seed)) {
    for (uint32_t p = 0; p < kHostPages; ++p) {
      host_.push_back({rig_.HostPage(p), true});
    }
    for (uint32_t p = 0; p < kDevicePages; ++p) {
      rig_.FillDevice(p, rig_.AllLayers());
      card_.push_back({rig_.DevicePage(p), true});
    }
  }

  void Run(uint32_t lists) {
    for (uint32_t i = 0; i < lists && !testing::Test::HasFatalFailure(); ++i) {
      OneRound();
    }
    total_ = rig_.queue().Stats();
  }

  const TransferQueueStats& stats() const { return total_; }
  uint64_t faults() { return rig_.device().faults().faults(); }

 private:
  // A few lists at once that share no page, one of them cancelled perhaps;
  // then everything is compared.
  void OneRound() {
    std::map<TransferListId, std::vector<PageTransfer>> lists;
    std::vector<uint32_t> hosts(kHostPages), cards(kDevicePages);
    for (uint32_t i = 0; i < kHostPages; ++i) hosts[i] = i;
    for (uint32_t i = 0; i < kDevicePages; ++i) cards[i] = i;
    const uint64_t generation = rig_.tracker().generation();
    while (hosts.size() > 4) {
      std::vector<PageTransfer> list;
      const uint32_t n = 1 + rig_.Below(4);
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t h = Draw(&hosts), d = Draw(&cards);
        LayerRange layers = rig_.AllLayers();
        if (rig_.Below(3) == 0) layers = {rig_.Below(3), 1};
        list.push_back(rig_.Below(2) == 0 ? Up(h, d, layers)
                                          : Down(d, h, layers));
      }
      const auto priority = static_cast<TransferPriority>(rig_.Below(3));
      const auto id = rig_.queue().Submit(list, priority);
      ASSERT_TRUE(id.ok()) << id.status();
      lists[*id] = list;
      if (rig_.Below(4) == 0) rig_.queue().Advance(absl::InfinitePast());
      if (rig_.Below(8) == 0) {
        (void)rig_.queue().Cancel(*id);  // it may have ended
      }
    }
    const absl::Time begin = rig_.device().Now();
    while (rig_.queue().unfinished() > 0) {
      rig_.queue().Advance(absl::InfiniteFuture());
      ASSERT_TRUE(rig_.queue().CheckInvariants().ok())
          << rig_.queue().CheckInvariants();
      ASSERT_LT(rig_.device().Now() - begin, absl::Seconds(20)) << "hangs";
    }
    const bool reset = rig_.tracker().generation() != generation;
    while (auto result = rig_.queue().TakeResult()) {
      Note(*result, lists.at(result->id), reset);
      lists.erase(result->id);
    }
    ASSERT_TRUE(lists.empty()) << lists.size() << " lists without a result";
    if (reset) LoseCard();
    Compare();
    // The engine makes new contents, as steps do.
    for (uint32_t p = 0; p < kDevicePages; ++p) {
      if (card_[p].known && rig_.Below(3) != 0) continue;
      rig_.FillDevice(p, rig_.AllLayers());
      card_[p] = {rig_.DevicePage(p), true};
      ASSERT_TRUE(rig_.queue().NoteDeviceWrite(p, rig_.AllLayers()).ok());
    }
    for (uint32_t p = 0; p < kHostPages; ++p) {
      if (!host_[p].known) {
        rig_.FillHost(p);
        host_[p] = {rig_.HostPage(p), true};
      }
    }
  }

  uint32_t Draw(std::vector<uint32_t>* pages) {
    const uint32_t i = rig_.Below(static_cast<uint32_t>(pages->size()));
    const uint32_t page = (*pages)[i];
    pages->erase(pages->begin() + i);
    return page;
  }

  void Note(const TransferResult& result, const std::vector<PageTransfer>& list,
            bool reset) {
    size_t next_failed = 0;
    ASSERT_EQ(result.status.ok(), result.failed.empty());
    for (uint32_t i = 0; i < list.size(); ++i) {
      const PageTransfer& page = list[i];
      const bool up = page.direction == TransferDirection::kUpload;
      Expected& target = up ? card_[page.device_page] : host_[page.host_page];
      const Expected& source =
          up ? host_[page.host_page] : card_[page.device_page];
      if (next_failed < result.failed.size() &&
          result.failed[next_failed] == i) {
        ++next_failed;
        target.known = false;
        continue;
      }
      ASSERT_TRUE(source.known);
      rig_.CopyLayers(source.bytes, page.layers, &target.bytes);
    }
    ASSERT_EQ(next_failed, result.failed.size());
    if (!reset && !absl::IsCancelled(result.status)) {
      // Without a reset nothing fails but what failed over and over.
      EXPECT_TRUE(result.status.ok() || absl::IsInternal(result.status) ||
                  absl::IsDataLoss(result.status) ||
                  absl::IsDeadlineExceeded(result.status) ||
                  IsOfGivenUpDevice(result.status))
          << result.status;
    }
  }

  // A device none of whose resets ends, five of 10,000 seeds, is given up; what
  // is asked of it then says so.
  bool IsOfGivenUpDevice(const absl::Status& status) {
    return absl::IsUnavailable(status) && !rig_.tracker().health().ok();
  }

  // What a reset loses is lost for good: the bytes are not compared, and the
  // queue must not give them out.
  void LoseCard() {
    for (uint32_t p = 0; p < kDevicePages; ++p) {
      card_[p].known = false;
      const TransferListId id =
          rig_.queue()
              .Submit({{Down(p, 0, {0, 1})}}, TransferPriority::kDecode)
              .value();
      ASSERT_TRUE(rig_.queue().Wait(id, absl::InfiniteFuture()).ok());
      const auto result = rig_.queue().TakeResult();
      ASSERT_TRUE(result.has_value());
      // It arrives where the page, or a stripe of it, was uploaded after the
      // reset.
      EXPECT_TRUE(result->status.ok() || absl::IsDataLoss(result->status) ||
                  IsOfGivenUpDevice(result->status))
          << result->status;
    }
    host_[0].known = false;
  }

  void Compare() {
    for (uint32_t p = 0; p < kHostPages; ++p) {
      if (!host_[p].known) continue;
      ASSERT_EQ(rig_.HostPage(p), host_[p].bytes) << "host page " << p;
    }
    for (uint32_t p = 0; p < kDevicePages; ++p) {
      if (!card_[p].known) continue;
      ASSERT_EQ(rig_.DevicePage(p), card_[p].bytes) << "device page " << p;
    }
  }

  TransferRig rig_;
  std::vector<Expected> host_, card_;
  TransferQueueStats total_;
};

TEST(TransferQueueSimulationTest, FaultsOfEveryKindLoseNothingSilently) {
  const uint64_t first = TestSeed(1);
  const char* text = std::getenv("PAGED_KV_FAULT_SEEDS");
  const uint64_t seeds =
      text != nullptr ? std::strtoull(text, nullptr, 0) : 120;
  uint64_t faults = 0, corruptions = 0, retries = 0, timeouts = 0, resets = 0;
  uint64_t arrived = 0, failed = 0, cancelled = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("PAGED_KV_TEST_SEED=", seed));
    FaultRun run(seed);
    run.Run(8);
    if (HasFatalFailure()) return;
    const TransferQueueStats& stats = run.stats();
    faults += run.faults();
    corruptions += stats.corruptions;
    retries += stats.retries;
    timeouts += stats.timeouts;
    resets += stats.resets;
    arrived += stats.pages_up + stats.pages_down;
    failed += stats.pages_failed;
    cancelled += stats.pages_cancelled;
  }
  std::printf(
      "%d seeds, %d faults: %d corruptions found, %d retries, %d timeouts, "
      "%d resets; %d pages arrived, %d failed, %d cancelled\n",
      static_cast<int>(seeds), static_cast<int>(faults),
      static_cast<int>(corruptions), static_cast<int>(retries),
      static_cast<int>(timeouts), static_cast<int>(resets),
      static_cast<int>(arrived), static_cast<int>(failed),
      static_cast<int>(cancelled));
  if (seeds >= 100) {
    EXPECT_GT(corruptions, seeds / 10);
    EXPECT_GT(timeouts, seeds / 20);
    EXPECT_GT(resets, seeds / 20);
    EXPECT_GT(cancelled, seeds / 2);
    EXPECT_GT(arrived, 2 * failed);  // most that fail were on a lost card
  }
}

// A seed repeats: same figures, same clock.
TEST(TransferQueueSimulationTest, ASeedRepeats) {
  for (uint64_t seed : {7u, 15u, 23u}) {
    FaultRun a(seed), b(seed);
    a.Run(6);
    b.Run(6);
    EXPECT_EQ(a.stats().retries, b.stats().retries);
    EXPECT_EQ(a.stats().corruptions, b.stats().corruptions);
    EXPECT_EQ(a.stats().wait_total[0], b.stats().wait_total[0]);
    EXPECT_EQ(a.stats().bytes_up, b.stats().bytes_up);
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The scheduler, the manager, the transfer queue and a simulated card serve
// requests of which the card holds a third. A token's K/V is a function of the
// token, and the next token one of all bytes of K/V that a decode reads through
// its pages, on the card; so requests must generate what they generate where
// everything fits, and their pages must be equal to the byte. Descriptors fail,
// deliver wrong bits and come late, and some transfers are given up. Some hang
// until the card is reset, which loses all that it holds.
// PAGED_KV_TEST_SEED=n runs only seed n, PAGED_KV_TEST_SEEDS=n the first n.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/fpga_dma/transfer_rig.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kBlockTokens =
    8;  // plain order: a token's row is in one run
constexpr uint32_t kHeadDim = 16;
constexpr uint32_t kRowBytes = kHeadDim * 2;
constexpr uint32_t kRowWords = kRowBytes / sizeof(uint64_t);
constexpr uint32_t kRequests = 12;
constexpr uint32_t kHostBlocks = 160;
// kRequests of 24 + 24 tokens take 6 blocks each, all at once 72.
constexpr uint32_t kDemand = 72;

BlockShape Shape() {
  BlockShape shape;
  shape.layers = 2;
  shape.kv_heads = 3;
  shape.head_dim = kHeadDim;
  shape.block_tokens = kBlockTokens;
  return shape;
}

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// What a run did, to be compared with another.
struct Outcome {
  std::map<uint64_t, std::vector<TokenId>>
      outputs;                                     // of those that did not fail
  std::map<uint64_t, std::vector<uint8_t>> pages;  // as the last decode saw it
  uint64_t failed = 0;
  uint64_t lost_sequences = 0;  // by resets
  BatchSchedulerStats stats;
  TransferQueueStats queue;
};

enum class Trouble { kNone, kFaults, kResets };

class Server {
 public:
  Server(uint64_t seed, uint32_t device_pages, Trouble trouble)
      : rig_(Options(seed, device_pages, trouble)) {
    KvCacheOptions options;
    LayerGroup group;
    group.shape = Shape();
    options.groups = {group};
    options.host_blocks = BlockCount(kHostBlocks);
    options.device.pages = BlockCount(device_pages);
    options.device.splits = 2;
    options.max_sequences = 32;
    options.max_tokens_per_sequence = 128;
    options.hash_seed = seed;
    cache_ = KvCacheManager::Create(options).value();
    BatchSchedulerOptions scheduling;
    scheduling.decode_tier = Tier::kDevice;
    scheduling.max_batch_sequences = 32;
    scheduling.max_chunk_tokens = 20;
    scheduling.growth_reserve_tokens = 0;
    scheduling.recompute_token_bytes = 0;
    scheduling.max_transfer_failures = 20;
    scheduler_ =
        BatchScheduler::Create(cache_.get(), &clock_, scheduling).value();
  }

  Outcome Run(uint64_t seed) {
    for (uint64_t id = 0; id < kRequests; ++id) Submit(id, seed);
    for (int i = 0; !::testing::Test::HasFatalFailure(); ++i) {
      if (i == 100000) ADD_FAILURE() << "goes on for ever";
      if (i == 100000 || !Step()) break;
    }
    outcome_.stats = scheduler_->Stats();
    outcome_.queue = rig_.queue().Stats();
    EXPECT_EQ(outcome_.stats.finished, kRequests);
    EXPECT_TRUE(cache_->Reset().ok());
    rig_.ExpectNoMisuse();
    return std::move(outcome_);
  }

 private:
  static RigOptions Options(uint64_t seed, uint32_t device_pages,
                            Trouble trouble) {
    RigOptions options;
    options.shape = Shape();
    options.host_pages = kHostBlocks;
    options.device_pages = device_pages;
    options.stripes = 1 + static_cast<uint32_t>(seed % 3);
    options.splits = 2;
    options.channels = 1 + static_cast<uint32_t>(seed / 3 % 2);
    options.max_slowdown = 2;
    options.seed = seed;
    options.faults.seed = seed;
    options.queue.max_attempts = 2;
    if (trouble == Trouble::kNone) return options;
    if (trouble == Trouble::kResets) {
      for (CardOperation operation :
           {CardOperation::kUpload, CardOperation::kDownload,
            CardOperation::kKernel}) {
        AddFault(operation, FaultKind::kHang, 0.02, &options.faults);
        AddFault(operation, FaultKind::kLoseDevice, 0.02, &options.faults);
      }
      return options;
    }
    for (CardOperation operation :
         {CardOperation::kUpload, CardOperation::kDownload}) {
      AddFault(operation, FaultKind::kFail, 0.06, &options.faults);
      AddFault(operation, FaultKind::kFlipBit, 0.05, &options.faults);
      AddFault(operation, FaultKind::kDelay, 0.05, &options.faults);
    }
    AddFault(CardOperation::kKernel, FaultKind::kFail, 0.05, &options.faults);
    return options;
  }
  static void AddFault(CardOperation operation, FaultKind kind,
                       double probability, FaultPlanOptions* plan) {
    FaultRule rule;
    rule.operation = operation;
    rule.kind = kind;
    rule.probability = probability;
    // Less than the tracker's patience: a reset would lose the device's pages.
    if (kind == FaultKind::kDelay) rule.delay = absl::Milliseconds(5);
    plan->rules.push_back(rule);
  }

  void Submit(uint64_t id, uint64_t seed) {
    std::vector<TokenId> prompt;
    for (uint32_t i = 0; i < 24; ++i) {
      // Some share their beginning.
      const uint64_t text = i < 12 ? id / 3 : id;
      prompt.push_back(static_cast<TokenId>(Mix(Mix(seed, text), i) % 1000));
    }
    GenerationRequest request;
    request.id = RequestId(id);
    request.prompt = prompt;
    request.max_output_tokens = 25;
    ASSERT_TRUE(scheduler_->Submit(request).ok());
  }

  // False if there is nothing left to do.
  bool Step() {
    const auto step = scheduler_->Schedule();
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) return false;
    SendTransfers();
    if (step->empty()) {
      TakeFinished();
      if (rig_.queue().unfinished() == 0) return false;
      Advance();
    } else {
      RunStep(*step);
    }
    Check();
    TakeFinished();
    return true;
  }

  void SendTransfers() {
    for (const TierTransfer& transfer : scheduler_->TakeTransfers()) {
      const bool up = transfer.source_tier == Tier::kHost;
      const PageTransfer page =
          up ? Up(transfer.source_page, transfer.target_page, rig_.AllLayers())
             : Down(transfer.source_page, transfer.target_page,
                    rig_.AllLayers());
      std::vector<PageTransfer>& list = up ? up_ : down_;
      (up ? up_ids_ : down_ids_).push_back(transfer.id);
      list.push_back(page);
    }
    Send(&up_, &up_ids_, TransferPriority::kDecode);
    Send(&down_, &down_ids_, TransferPriority::kWriteBack);
  }
  void Send(std::vector<PageTransfer>* pages, std::vector<TransferId>* ids,
            TransferPriority priority) {
    if (pages->empty()) return;
    const auto list = rig_.queue().Submit(*pages, priority);
    ASSERT_TRUE(list.ok()) << list.status();
    lists_[*list] = std::exchange(*ids, {});
    pages->clear();
  }

  // Until something ends; reports it. False if the card was reset: the step in
  // flight, if there was one, is none any more.
  bool Advance() {
    rig_.queue().Advance(absl::InfiniteFuture());
    Report();
    if (rig_.tracker().generation() == generation_) {
      SendTransfers();
      return true;
    }
    LoseDevice();
    return false;
  }

  void LoseDevice() {
    while (rig_.tracker().generation() != generation_ ||
           rig_.queue().unfinished() > 0) {
      generation_ = rig_.tracker().generation();
      rig_.queue().Advance(absl::InfiniteFuture());
      Report();
      if (::testing::Test::HasFatalFailure()) return;
    }
    Report();
    ASSERT_TRUE(scheduler_->AbandonStepsInFlight().ok());
    const auto loss = scheduler_->LoseDevice();
    ASSERT_TRUE(loss.ok()) << loss.status();
    outcome_.lost_sequences += loss->sequences.size();
  }

  void Report() {
    while (const auto result = rig_.queue().TakeResult()) {
      const std::vector<TransferId> ids = lists_.at(result->id);
      lists_.erase(result->id);
      for (uint32_t i = 0; i < ids.size(); ++i) {
        const bool failed =
            std::binary_search(result->failed.begin(), result->failed.end(), i);
        const absl::Status status = scheduler_->FinishTransfer(ids[i], !failed);
        ASSERT_TRUE(status.ok()) << status;
      }
    }
  }

  void RunStep(const ScheduledStep& step) {
    while (!*scheduler_->ReadyToRun(step.id)) {
      ASSERT_GT(rig_.queue().unfinished(), 0u);
      if (!Advance() || ::testing::Test::HasFatalFailure()) return;
    }
    const StepView view = cache_->View(step.id).value();
    for (const BlockCopy& copy : view.copies) Copy(copy);
    std::vector<TokenId> sampled;
    for (const WorkItem& item : step.items) {
      const std::vector<int32_t> pages = Pages(item);
      for (uint32_t i = 0; i < item.new_tokens.value(); ++i) {
        WriteToken(item.tier, pages, item.first_new.value() + i,
                   item.tokens[i]);
      }
      const uint32_t end = item.first_new.value() + item.new_tokens.value();
      if (item.outputs > 0) sampled.push_back(Read(item, pages, end));
    }
    const absl::Status status = scheduler_->Complete(step.id, sampled);
    ASSERT_TRUE(status.ok()) << status;
  }

  std::vector<int32_t> Pages(const WorkItem& item) {
    const std::vector<SequenceId> ids = {item.sequence};
    std::vector<int32_t> indptr(2), pages(32), last(1), first(1);
    const auto table =
        cache_->ExportPageTable(ids, GroupId(0),
                                {absl::MakeSpan(indptr), absl::MakeSpan(pages),
                                 absl::MakeSpan(last), absl::MakeSpan(first)},
                                item.tier);
    EXPECT_TRUE(table.ok()) << table.status();
    return pages;
  }

  // Calls f(row of K or V, number) for the rows of a token; [layer][head][K|V].
  template <typename F>
  void ForEachRow(Tier tier, uint32_t page, uint32_t slot, F f) {
    const BlockShape shape = Shape();
    auto* base = static_cast<uint8_t*>(rig_.host().layout.base);
    const PageLayout& layout = rig_.host().layout;
    uint32_t number = 0;
    for (uint32_t layer = 0; layer < shape.layers; ++layer) {
      for (uint32_t head = 0; head < shape.kv_heads; ++head) {
        for (const bool value : {false, true}) {
          uint8_t* slice;
          if (tier == Tier::kHost) {
            slice = base + (value ? VSliceOffset(layout, page, layer, head)
                                  : KSliceOffset(layout, page, layer, head));
          } else {
            const absl::Span<std::byte> bytes =
                rig_.DeviceHead(page, layer, head);
            slice = reinterpret_cast<uint8_t*>(bytes.data()) +
                    (value ? KDataBytes(shape).value() : 0);
          }
          f(slice + slot * kRowBytes, number++);
        }
      }
    }
  }

  void NoteWrite(Tier tier, uint32_t page) {
    if (tier == Tier::kHost) return;
    ASSERT_TRUE(rig_.queue().NoteDeviceWrite(page, rig_.AllLayers()).ok());
  }

  void WriteToken(Tier tier, const std::vector<int32_t>& pages, uint32_t at,
                  TokenId token) {
    const auto page = static_cast<uint32_t>(pages[at / kBlockTokens]);
    ForEachRow(tier, page, at % kBlockTokens, [&](uint8_t* row, uint32_t n) {
      for (uint32_t i = 0; i < kRowWords; ++i) {
        const uint64_t word =
            Mix(Mix(static_cast<uint64_t>(token), at), n * kRowWords + i);
        std::memcpy(row + i * sizeof(word), &word, sizeof(word));
      }
    });
    NoteWrite(tier, page);
  }

  // All K/V up to `end`, remembered; returns the token that follows.
  TokenId Read(const WorkItem& item, const std::vector<int32_t>& pages,
               uint32_t end) {
    std::vector<uint8_t>& seen = outcome_.pages[item.request.value()];
    seen.clear();
    uint64_t hash = 0;
    for (uint32_t at = 0; at < end; ++at) {
      ForEachRow(item.tier, static_cast<uint32_t>(pages[at / kBlockTokens]),
                 at % kBlockTokens, [&](const uint8_t* row, uint32_t) {
                   seen.insert(seen.end(), row, row + kRowBytes);
                   for (uint32_t i = 0; i < kRowWords; ++i) {
                     uint64_t word;
                     std::memcpy(&word, row + i * sizeof(word), sizeof(word));
                     hash = Mix(hash, word);
                   }
                 });
    }
    return static_cast<TokenId>(hash % 1000);
  }

  void Copy(const BlockCopy& copy) {
    const uint32_t source =
        copy.tier == Tier::kHost ? copy.source.value() : copy.source_page;
    const uint32_t target =
        copy.tier == Tier::kHost ? copy.target.value() : copy.target_page;
    for (uint32_t slot = 0; slot < copy.filled_tokens; ++slot) {
      std::vector<std::vector<uint8_t>> rows;
      ForEachRow(copy.tier, source, slot, [&](const uint8_t* row, uint32_t) {
        rows.emplace_back(row, row + kRowBytes);
      });
      ForEachRow(copy.tier, target, slot, [&](uint8_t* row, uint32_t n) {
        std::copy(rows[n].begin(), rows[n].end(), row);
      });
    }
    NoteWrite(copy.tier, target);
  }

  void Check() {
    absl::Status status = cache_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
    status = scheduler_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
    status = rig_.queue().CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
  }

  void TakeFinished() {
    while (std::optional<FinishedRequest> done = scheduler_->TakeFinished()) {
      if (!done->status.ok()) {
        ASSERT_TRUE(absl::IsUnavailable(done->status)) << done->status;
        ++outcome_.failed;
        outcome_.pages.erase(done->id.value());
        continue;
      }
      const absl::Span<const TokenId> output = done->Output(0);
      outcome_.outputs[done->id.value()].assign(output.begin(), output.end());
    }
  }

  TransferRig rig_;
  ManualClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<BatchScheduler> scheduler_;
  uint64_t generation_ = rig_.tracker().generation();
  std::map<TransferListId, std::vector<TransferId>> lists_;
  std::vector<PageTransfer> up_, down_;
  std::vector<TransferId> up_ids_, down_ids_;
  Outcome outcome_;
};

void Compare(const Outcome& expected, const Outcome& found) {
  for (const auto& [id, output] : found.outputs) {
    EXPECT_EQ(output, expected.outputs.at(id)) << "request " << id;
    EXPECT_TRUE(found.pages.at(id) == expected.pages.at(id))
        << "pages of request " << id;
  }
  EXPECT_EQ(found.outputs.size() + found.failed, kRequests);
}

TEST(SwapServingSimulationTest, AThirdOfTheDemandGeneratesTheSame) {
  uint64_t first = 1, last = 12;
  if (const char* text = std::getenv("PAGED_KV_TEST_SEED")) {
    first = last = std::strtoull(text, nullptr, 0);
  } else if (const char* many = std::getenv("PAGED_KV_TEST_SEEDS")) {
    last = std::strtoull(many, nullptr, 0);
  }
  uint64_t swaps = 0, failed_transfers = 0, corruptions = 0, failed = 0;
  uint64_t losses = 0, lost_sequences = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(absl::StrCat("PAGED_KV_TEST_SEED=", seed));
    const Outcome all = Server(seed, 2 * kDemand, Trouble::kNone).Run(seed);
    ASSERT_EQ(all.stats.preemptions, 0u);
    ASSERT_EQ(all.outputs.size(), kRequests);
    const Outcome third = Server(seed, kDemand / 3, Trouble::kNone).Run(seed);
    ASSERT_GT(third.stats.swap_outs, 0u);
    ASSERT_EQ(third.failed, 0u);
    Compare(all, third);
    const Outcome faulty =
        Server(seed, kDemand / 3, Trouble::kFaults).Run(seed);
    Compare(all, faulty);
    const Outcome reset = Server(seed, kDemand / 3, Trouble::kResets).Run(seed);
    Compare(all, reset);
    EXPECT_EQ(reset.failed, 0u);
    if (HasFailure()) return;
    losses += reset.stats.device_losses;
    lost_sequences += reset.lost_sequences;
    swaps += third.stats.swap_outs + faulty.stats.swap_outs;
    failed_transfers += faulty.stats.failed_transfers;
    corruptions += faulty.queue.corruptions;
    failed += faulty.failed;
  }
  std::printf(
      "seeds %llu to %llu: %llu swaps out, %llu transfers failed, %llu "
      "corruptions found, %llu requests failed; %llu resets lost %llu "
      "sequences\n",
      static_cast<unsigned long long>(first),
      static_cast<unsigned long long>(last),
      static_cast<unsigned long long>(swaps),
      static_cast<unsigned long long>(failed_transfers),
      static_cast<unsigned long long>(corruptions),
      static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(losses),
      static_cast<unsigned long long>(lost_sequences));
  EXPECT_GT(failed_transfers, 0u);
  EXPECT_GT(corruptions, 0u);
  if (first == last) return;
  EXPECT_GT(losses, 0u);
  EXPECT_GT(lost_sequences, 0u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

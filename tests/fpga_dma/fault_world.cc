// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fpga_dma/fault_world.h"

namespace paged_kv::fpga_dma {
namespace {

// Nothing that is not given up may take longer.
constexpr absl::Duration kPatience = absl::Seconds(20);

bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ||
         absl::IsFailedPrecondition(status) || absl::IsOutOfRange(status);
}

PageTransfer ToPageTransfer(const TierTransfer& transfer) {
  const LayerRange layers = {0, 2};
  if (transfer.target_tier == Tier::kDevice) {
    return {TransferDirection::kUpload, transfer.source_page,
            transfer.target_page, layers};
  }
  return {TransferDirection::kDownload, transfer.target_page,
          transfer.source_page, layers};
}

}  // namespace

void FaultWorld::Counts::Add(const Counts& other) {
  for (uint64_t Counts::*count :
       {&Counts::steps, &Counts::device_steps, &Counts::bytes_compared,
        &Counts::uploads, &Counts::downloads, &Counts::failed_transfers,
        &Counts::cancels, &Counts::failed_requests, &Counts::lost_requests,
        &Counts::losses, &Counts::full_banks, &Counts::corruptions,
        &Counts::timeouts, &Counts::resets, &Counts::dead_cards}) {
    this->*count += other.*count;
  }
}

std::string FaultWorld::Counts::ToString() const {
  return absl::StrCat(
      steps, " steps (", device_steps, " on the card), ", bytes_compared >> 20,
      " MiB compared; ", uploads, " pages up, ", downloads, " down, ",
      failed_transfers, " failed, ", cancels, " lists cancelled; ", corruptions,
      " corruptions found, ", timeouts, " timeouts, ", resets, " resets, ",
      dead_cards, " cards given up; ", losses,
      " times the card's memory went, ", lost_requests, " requests with it; ",
      failed_requests, " requests failed otherwise; ", full_banks,
      " times a bank was full");
}

FaultWorld::FaultWorld(Device* device, uint64_t seed, bool images,
                       const MakePages& make_pages)
    : random_(seed * 0x9E3779B97F4A7C15u + 1) {
  memory_.assign(kHostBlocks * PageBytes(Shape()).value(), 0xEE);
  KvCacheOptions options;
  LayerGroup group;
  group.shape = Shape();
  options.groups = {group};
  options.host_blocks = BlockCount(kHostBlocks);
  options.device.pages = BlockCount(kDevicePages);
  options.device.splits = 1 + static_cast<uint32_t>(seed / 3 % 2);
  options.max_sequences = 8;
  options.max_tokens_per_sequence = 64;
  options.hash_seed = seed;
  cache_ = KvCacheManager::Create(options).value();
  OperationLimits limits;
  // Shorter than the delays, longer than anything healthy.
  limits.base = absl::Milliseconds(5);
  limits.kernel = absl::Milliseconds(10);
  tracker_ = std::make_unique<OperationTracker>(device, limits);
  MakeQueue(device, seed, images);
  pages_ = make_pages(tracker_.get(), pool_.get());
}

// A full bank is a status, and leaves nothing behind.
template <typename T, typename Make>
void FaultWorld::MakeOnFullBanks(T* made, Make make) {
  for (int i = 0; i < 1000; ++i) {
    auto result = make();
    if (result.ok()) {
      *made = *std::move(result);
      return;
    }
    ++counts_.full_banks;
    ASSERT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
  }
  FAIL() << "no room";
}

void FaultWorld::MakeQueue(Device* device, uint64_t seed, bool images) {
  DevicePoolOptions pool;
  pool.shape = Shape();
  pool.num_pages = kDevicePages;
  pool.stripes = 1 + static_cast<uint32_t>(seed % 3);
  pool.splits = cache_->options().device.splits;
  pool.kind = images || seed / 6 % 3 != 0 ? SlabKind::kHostVisible
                                          : SlabKind::kDeviceOnly;
  MakeOnFullBanks(&pool_, [&] { return DevicePool::Create(device, pool); });
  attention::KvPages host;
  host.shape = Shape();
  host.num_pages = kHostBlocks;
  host.layout = OwnPageLayout(Shape(), memory_.data());
  TransferQueueOptions options;
  options.max_pages = 4096;  // an audit looks at all of them
  options.max_attempts = 3;
  options.staging_bytes = 4 << 10;
  options.staging_slabs = 1 + static_cast<uint32_t>(seed % 4);
  options.min_extent_bytes = 1 << 10;
  options.max_extent_bytes = 4 << 10;
  options.max_lone_pieces = seed % 3;
  options.verify_scattered = seed / 2 % 2 == 0;
  MakeOnFullBanks(&queue_, [&] {
    return TransferQueue::Create(tracker_.get(), pool_.get(), host, options);
  });
}

void FaultWorld::Run(int ticks) {
  for (int i = 0; i < ticks && !testing::Test::HasFatalFailure(); ++i) Tick();
  if (testing::Test::HasFatalFailure()) return;
  Drain();
  NoticeLoss();
  while (!sequences_.empty() && !testing::Test::HasFatalFailure()) {
    Compare(sequences_.begin()->first);
    NoticeLoss();
    if (!sequences_.empty()) Free(sequences_.begin()->first, false);
  }
  if (testing::Test::HasFatalFailure()) return;
  EXPECT_TRUE(cache_->Reset().ok()) << cache_->Reset();
  for (const DevicePoolStats& pool : cache_->Stats().device_pools) {
    EXPECT_EQ(pool.free, pool.capacity) << "a device page is lost";
  }
  EXPECT_EQ(cache_->AvailableBlocks(GroupId(0)), BlockCount(kHostBlocks));
  const TransferQueueStats stats = queue_->Stats();
  counts_.uploads = stats.pages_up;
  counts_.downloads = stats.pages_down;
  counts_.corruptions = stats.corruptions;
  counts_.timeouts = stats.timeouts;
  counts_.resets = stats.resets;
  counts_.dead_cards = tracker_->health().ok() ? 0 : 1;
}

void FaultWorld::Tick() {
  if (NoticeLoss()) return Check();
  const uint32_t kind = Below(100);
  if (kind < 14) {
    Admit();
  } else if (kind < 40) {
    Append();
  } else if (kind < 46) {
    Fork();
  } else if (kind < 50) {
    if (const SequenceId id = Any(); id != SequenceId(0)) {
      Compare(id);
      if (!NoticeLoss()) Free(id, false);
    }
  } else if (kind < 62) {
    Swap(/*in=*/true);
  } else if (kind < 70) {
    Swap(/*in=*/false);
  } else if (kind < 73) {
    const auto transfers = cache_->WriteBack(BlockCount(1 + Below(3)));
    ASSERT_TRUE(transfers.ok()) << transfers.status();
    Send(*transfers, TransferPriority::kWriteBack);
  } else if (kind < 76) {
    if (!lists_.empty()) {
      ++counts_.cancels;
      (void)queue_->Cancel(lists_.begin()->first);  // it may have ended
    }
  } else if (kind < 82) {
    if (const SequenceId id = Any(); id != SequenceId(0)) Compare(id);
  } else {
    Advance();
  }
  Check();
}

std::vector<SequenceId> FaultWorld::Some(uint32_t most) {
  std::vector<SequenceId> ids;
  for (uint32_t i = 0; i < most && !sequences_.empty(); ++i) {
    auto it = sequences_.begin();
    std::advance(it, Below(static_cast<uint32_t>(sequences_.size())));
    if (std::count(ids.begin(), ids.end(), it->first) == 0) {
      ids.push_back(it->first);
    }
  }
  return ids;
}

// ---- Sequences ----

void FaultWorld::Admit() {
  // A few texts with common beginnings.
  std::vector<TokenId> prompt;
  const uint32_t text = Below(3), length = 1 + Below(14);
  const uint32_t shared = OneIn(3) ? Below(length) : length;
  for (uint32_t i = 0; i < length; ++i) {
    prompt.push_back(
        static_cast<TokenId>(i < shared ? 100 * text + i : 1000 + Below(1000)));
  }
  const auto step = cache_->Allocate(prompt);
  if (!step.ok()) {
    ASSERT_TRUE(IsRefusal(step.status())) << step.status();
    return;
  }
  sequences_[step->id] = prompt;
  RunStep(*step, prompt);
}

void FaultWorld::Append() {
  SequenceId id = Any();
  if (id == SequenceId(0)) return;
  // Rather one on the card, and often one that is on its way.
  for (SequenceId other : Some(4)) {
    if (cache_->Residency(other)->home == Tier::kDevice) id = other;
  }
  for (int i = 0; i < 8 && !OneIn(4); ++i) {
    if (cache_->Residency(id)->moving == BlockCount(0)) break;
    Advance();
  }
  if (tracker_->generation() != generation_) return;
  std::vector<TokenId> tokens = sequences_[id];
  std::vector<TokenId> added(1 + Below(3));
  for (TokenId& token : added) token = static_cast<TokenId>(Below(5));
  const auto step = cache_->Append(id, added);
  if (absl::IsFailedPrecondition(step.status())) {
    // A swap did not arrive: again, but not for ever.
    if (OneIn(6)) return Free(id, /*failed=*/true);
    const auto transfers = cache_->SwapOut({&id, 1});
    ASSERT_TRUE(transfers.ok()) << transfers.status();
    return Send(*transfers, TransferPriority::kDecode);
  }
  if (!step.ok()) {
    ASSERT_TRUE(IsRefusal(step.status())) << step.status();
    return;
  }
  tokens.insert(tokens.end(), added.begin(), added.end());
  sequences_[id] = tokens;
  RunStep(*step, tokens);
}

void FaultWorld::Fork() {
  const SequenceId id = Any();
  if (id == SequenceId(0)) return;
  const auto child = cache_->Fork(id);
  if (!child.ok()) {
    ASSERT_TRUE(IsRefusal(child.status())) << child.status();
    return;
  }
  sequences_[*child] = sequences_[id];
}

void FaultWorld::Free(SequenceId id, bool failed) {
  const absl::Status status = cache_->Free(id);
  ASSERT_TRUE(status.ok()) << status;
  sequences_.erase(id);
  counts_.failed_requests += failed ? 1 : 0;
}

void FaultWorld::Swap(bool in) {
  const std::vector<SequenceId> ids = Some(2);
  if (ids.empty()) return;
  const bool prefix = in && OneIn(4);
  const auto transfers = !in ? cache_->SwapOut(ids)
                         : prefix
                             ? cache_->SwapInPrefix(ids, TokenCount(Below(16)))
                             : cache_->SwapIn(ids);
  if (!transfers.ok()) {
    ASSERT_TRUE(IsRefusal(transfers.status())) << transfers.status();
    return;
  }
  Send(*transfers,
       in ? TransferPriority::kPrefetch : TransferPriority::kWriteBack);
}

// ---- Steps ----

// Either the step is executed, or its sequence is reported as failed and
// nothing of the step is shared.
void FaultWorld::RunStep(const Admission& step,
                         const std::vector<TokenId>& tokens) {
  ++counts_.steps;
  const StepView view = cache_->View(step.step).value();
  for (const NewBlock& block : view.new_blocks) {
    ASSERT_FALSE(queue_->HostPageBusy(block.block.value()));
    ASSERT_TRUE(block.device_page == kNoPage ||
                !queue_->DevicePageBusy(block.device_page));
  }
  Send(view.transfers, TransferPriority::kDecode);
  if (!Execute(view, step.id, tokens)) Free(step.id, /*failed=*/true);
  const absl::Status status = cache_->Retire(step.step);
  ASSERT_TRUE(status.ok()) << status;
}

bool FaultWorld::Execute(const StepView& view, SequenceId id,
                         const std::vector<TokenId>& tokens) {
  const absl::Time begin = queue_->Now();
  while (cache_->Residency(id)->moving > BlockCount(0)) {
    Advance();
    if (queue_->Now() - begin > kPatience) ADD_FAILURE() << "hangs";
    if (testing::Test::HasFailure()) return false;
  }
  const SequenceResidency residency = cache_->Residency(id).value();
  if (residency.missing > BlockCount(0)) return false;
  if (tracker_->generation() != generation_) return false;
  for (const BlockCopy& copy : view.copies) {
    const uint64_t rows = PageBytes(Shape()).value();
    if (copy.tier == Tier::kHost) {
      std::memcpy(HostPage(copy.target.value()), HostPage(copy.source.value()),
                  rows);
      continue;
    }
    PageContent content(rows);
    if (!ReadCard(copy.source_page, &content)) return false;
    if (!WriteCard(copy.target_page, content)) return false;
  }
  counts_.device_steps += residency.home == Tier::kDevice ? 1 : 0;
  return WriteTokens(view.sequences[0], residency.home, tokens);
}

bool FaultWorld::WriteTokens(const PlannedSequence& planned, Tier tier,
                             const std::vector<TokenId>& tokens) {
  const std::vector<int32_t> table = Table(planned.id, tier);
  const uint32_t first = planned.first_new.value();
  const auto end = static_cast<uint32_t>(tokens.size());
  PageContent content(PageBytes(Shape()).value());
  for (uint32_t block = first / kBlockTokens; block * kBlockTokens < end;
       ++block) {
    const auto page = static_cast<uint32_t>(table[block]);
    uint8_t* to = content.data();
    if (tier == Tier::kHost) {
      EXPECT_FALSE(queue_->HostPageBusy(page));
      to = HostPage(page);
    } else if (!ReadCard(page, &content)) {
      return false;
    }
    for (uint32_t i = std::max(first, block * kBlockTokens);
         i < std::min(end, (block + 1) * kBlockTokens); ++i) {
      ForEachRow(tokens, i, [&](uint32_t at, const uint64_t* bytes) {
        std::memcpy(to + at, bytes, kRowBytes);
      });
    }
    if (tier == Tier::kDevice && !WriteCard(page, content)) return false;
  }
  return true;
}

std::vector<int32_t> FaultWorld::Table(SequenceId id, Tier tier) {
  std::vector<int32_t> pages(32), indptr(2), last(1), first(1);
  const std::vector<SequenceId> ids = {id};
  const auto table =
      cache_->ExportPageTable(ids, GroupId(0),
                              {absl::MakeSpan(indptr), absl::MakeSpan(pages),
                               absl::MakeSpan(last), absl::MakeSpan(first)},
                              tier);
  return table.ok() ? pages : std::vector<int32_t>();
}

// Transfers of the page may only read it, and end first.
bool FaultWorld::ReadCard(uint32_t page, PageContent* content) {
  const absl::Time begin = queue_->Now();
  while (queue_->DevicePageBusy(page)) {
    queue_->Advance(absl::InfiniteFuture());
    EXPECT_LT(queue_->Now() - begin, kPatience) << "hangs";
    if (testing::Test::HasFailure()) return false;
  }
  return tracker_->generation() == generation_ && pages_->Read(page, content);
}

bool FaultWorld::WriteCard(uint32_t page, const PageContent& content) {
  EXPECT_FALSE(queue_->DevicePageBusy(page)) << "handed out while in flight";
  const bool good =
      tracker_->generation() == generation_ && pages_->Write(page, content);
  const absl::Status status = queue_->NoteDeviceWrite(page, {0, 2});
  EXPECT_TRUE(status.ok()) << status;
  return good;
}

// All K/V of a sequence, where it is at home.
void FaultWorld::Compare(SequenceId id) {
  const Tier tier = cache_->Residency(id)->home;
  const std::vector<int32_t> table = Table(id, tier);
  if (table.empty()) return;  // on its way
  const std::vector<TokenId>& tokens = sequences_.at(id);
  PageContent content(PageBytes(Shape()).value());
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    const auto page = static_cast<uint32_t>(table[i / kBlockTokens]);
    if (i % kBlockTokens == 0 && tier == Tier::kDevice &&
        !ReadCard(page, &content)) {
      return;
    }
    const uint8_t* from = tier == Tier::kHost ? HostPage(page) : content.data();
    ForEachRow(tokens, i, [&](uint32_t at, const uint64_t* bytes) {
      counts_.bytes_compared += kRowBytes;
      ASSERT_EQ(std::memcmp(from + at, bytes, kRowBytes), 0)
          << "token " << i << " of " << tokens.size() << ", "
          << (tier == Tier::kHost ? "host" : "device") << " page " << page;
    });
    if (testing::Test::HasFatalFailure()) return;
  }
}

// ---- Transfers ----

void FaultWorld::Send(absl::Span<const TierTransfer> transfers,
                      TransferPriority priority) {
  if (transfers.empty()) return;
  std::vector<PageTransfer> pages;
  for (const TierTransfer& transfer : transfers) {
    pages.push_back(ToPageTransfer(transfer));
    // The manager's transfers touch different pages.
    ASSERT_FALSE(queue_->HostPageBusy(pages.back().host_page));
    ASSERT_FALSE(queue_->DevicePageBusy(pages.back().device_page));
  }
  const auto list = queue_->Submit(pages, priority);
  ASSERT_TRUE(list.ok()) << list.status();
  lists_[*list].assign(transfers.begin(), transfers.end());
}

void FaultWorld::Advance() {
  queue_->Advance(OneIn(3) ? absl::InfinitePast() : absl::InfiniteFuture());
  Report();
}

void FaultWorld::Report() {
  while (const auto result = queue_->TakeResult()) {
    const std::vector<TierTransfer> list = lists_.at(result->id);
    lists_.erase(result->id);
    for (uint32_t i = 0; i < list.size(); ++i) {
      const bool moved =
          !std::binary_search(result->failed.begin(), result->failed.end(), i);
      counts_.failed_transfers += moved ? 0 : 1;
      const absl::Status status = cache_->FinishTransfer(list[i].id, moved);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
}

void FaultWorld::Drain() {
  const absl::Time begin = queue_->Now();
  while (queue_->unfinished() > 0) {
    queue_->Advance(absl::InfiniteFuture());
    ASSERT_LT(queue_->Now() - begin, kPatience) << "hangs";
  }
  Report();
  ASSERT_TRUE(lists_.empty()) << lists_.size() << " lists without a result";
}

bool FaultWorld::NoticeLoss() {
  if (tracker_->generation() == generation_) return false;
  while (tracker_->generation() != generation_) {
    generation_ = tracker_->generation();
    Drain();
    if (testing::Test::HasFatalFailure()) return true;
  }
  const auto loss = cache_->LoseDevice();
  EXPECT_TRUE(loss.ok()) << loss.status();
  ++counts_.losses;
  for (SequenceId id : loss->sequences) {
    counts_.lost_requests += sequences_.erase(id);
  }
  return true;
}

void FaultWorld::Check() {
  absl::Status status = queue_->CheckInvariants();
  ASSERT_TRUE(status.ok()) << status;
  status = cache_->CheckInvariants();
  ASSERT_TRUE(status.ok()) << status;
}

}  // namespace paged_kv::fpga_dma

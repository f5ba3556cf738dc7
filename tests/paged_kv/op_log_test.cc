// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/op_log.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "paged_kv/op_log_format.h"
#include "paged_kv/op_log_framing.h"
#include "tests/paged_kv/cache_script.h"
#include "tests/paged_kv/test_seed.h"
#include "tests/support/lockstep_cache.h"
#include "tests/support/lockstep_replay.h"
#include "tests/support/random_operations.h"
#include "tests/support/random_options.h"

namespace paged_kv {
namespace {

using testing::LockstepCache;

struct Recording {
  std::string log;
  uint64_t fingerprint = 0;
};

// The log of `operations` random operations.
Recording Record(uint32_t kind, uint64_t seed, int operations) {
  StringOpLog log;
  testing::RandomCache cache = testing::MakeRandomCache(kind, seed, 0);
  cache.options.op_log = &log;
  auto lockstep = LockstepCache::Create(cache.options);
  EXPECT_TRUE(lockstep.ok()) << lockstep.status();
  testing::OperationRunner runner(lockstep->get(), cache.workload);
  testing::RandomOperations random(seed);
  for (int i = 0; i < operations && (*lockstep)->ok(); ++i) {
    runner.Run(random.Next((*lockstep)->model()));
  }
  EXPECT_EQ((*lockstep)->violation(), "");
  return {log.contents(), (*lockstep)->manager().Fingerprint()};
}

// A short log with every kind of record.
Recording RecordEveryKind() {
  StringOpLog log;
  KvCacheOptions options = PoolOptions(8, 4);
  options.event_capacity = 4;
  options.digest_domain = "model \0 v1";
  options.op_log = &log;
  auto cache = *KvCacheManager::Create(options);
  const std::vector<TokenId> prompt = Text(1, 9);
  const std::vector<KeyExtra> extras = {Salt("s"), Content(TokenPos(5), "i")};
  StepRequest admit = StepRequest::Admit(prompt, extras);
  admit.lookahead = TokenCount(2);
  admit.reserve_tokens = TokenCount(14);
  admit.priority = 5;
  const std::vector<TokenId> too_long = Text(2, 400);
  const std::vector<StepRequest> requests = {admit,
                                             StepRequest::Admit(too_long)};
  std::vector<absl::Status> outcomes(2);
  const StepId step =
      *cache->Commit(*cache->PlanFitting(requests, absl::MakeSpan(outcomes)));
  const SequenceId id = cache->Sequences()[0];
  EXPECT_TRUE(cache->MarkWritten(step, 0).ok());
  EXPECT_TRUE(cache->Retire(step).ok());
  EXPECT_TRUE(cache->Accept(id, Text(3, 1)).ok());
  const StepRequest extend = StepRequest::Extend(id, TokenCount(1));
  const StepId second = *cache->Commit(*cache->Plan({&extend, 1}));
  EXPECT_TRUE(cache->SetTokens(id, TokenPos(10), Text(-4, 1)).ok());
  EXPECT_TRUE(cache->Retire(second).ok());
  EXPECT_TRUE(cache->Fork(id).ok());
  EXPECT_TRUE(cache->Truncate(id, TokenCount(9)).ok());
  const PinId pin = *cache->Pin(prompt, extras);
  EXPECT_TRUE(cache->Unpin(pin).ok());
  EXPECT_FALSE(cache->Reset().ok());
  EXPECT_TRUE(cache->Free(id).ok());
  EXPECT_FALSE(cache->Free(id).ok());
  std::vector<CacheEvent> events(3);
  EXPECT_GT(cache->DrainEvents(absl::MakeSpan(events)), 0u);
  std::vector<CacheEvent> far_too_many(100000);
  EXPECT_LT(cache->DrainEvents(absl::MakeSpan(far_too_many)), 4u);
  cache->FreeAll();
  EXPECT_TRUE(cache->Reset().ok());
  EXPECT_TRUE(cache->Allocate(Text(5, 6)).ok());
  return {log.contents(), cache->Fingerprint()};
}

// The payloads of a log's records.
std::vector<std::string> Payloads(absl::string_view log) {
  std::vector<std::string> payloads;
  while (!log.empty()) {
    absl::string_view payload;
    EXPECT_TRUE(internal::UnframeRecord(payloads.size(), &log, &payload));
    payloads.emplace_back(payload);
  }
  return payloads;
}

std::string Frame(const std::vector<std::string>& payloads) {
  std::string log;
  for (size_t i = 0; i < payloads.size(); ++i) {
    log += internal::FrameRecord(i, payloads[i]);
  }
  return log;
}

TEST(OpLogTest, ReplayReproducesTheStateExactly) {
  const uint64_t seed = TestSeed(3);
  for (uint32_t kind = 0; kind < testing::kRandomCacheKinds; ++kind) {
    for (uint64_t i = 0; i < 4; ++i) {
      SCOPED_TRACE(absl::StrCat("kind ", kind, " seed ", seed + i));
      const Recording recording = Record(kind, seed + i, 1500);
      StringOpLog again;
      ReplayOptions options;
      options.op_log = &again;
      const auto twin = ReplayOpLog(recording.log, options);
      ASSERT_TRUE(twin.ok()) << twin.status();
      EXPECT_EQ((*twin)->Fingerprint(), recording.fingerprint);
      EXPECT_TRUE((*twin)->CheckInvariants().ok());
      // What the twin records is the same log.
      EXPECT_TRUE(again.contents() == recording.log);
    }
  }
}

TEST(OpLogTest, ReplayInLockstepAgreesToo) {
  const Recording recording = Record(4, TestSeed(4), 3000);
  const auto replay = testing::ReplayInLockstep(recording.log);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->violation, "");
  EXPECT_EQ(replay->fingerprint, recording.fingerprint);
  EXPECT_GT(replay->operations, 1000u);
}

// A log may hold refused calls of any kind; the model refuses them alike.
TEST(OpLogTest, LockstepRefusesDeviceCallsWithoutADeviceTier) {
  StringOpLog log;
  KvCacheOptions options = PoolOptions(8, 2);
  options.op_log = &log;
  auto manager = KvCacheManager::Create(options);
  ASSERT_TRUE(manager.ok()) << manager.status();
  const std::vector<SequenceId> ids = {SequenceId(7)};
  EXPECT_FALSE((*manager)->SwapIn({}).ok());
  EXPECT_FALSE((*manager)->SwapIn(ids).ok());
  EXPECT_FALSE((*manager)->SwapInPrefix(ids, TokenCount(3)).ok());
  EXPECT_FALSE((*manager)->SwapOut({}).ok());
  EXPECT_FALSE((*manager)->SwapOut(ids).ok());
  EXPECT_FALSE((*manager)->WriteBack(BlockCount(0)).ok());
  EXPECT_FALSE((*manager)->WriteBack(BlockCount(9)).ok());
  for (const bool moved : {false, true}) {
    EXPECT_FALSE((*manager)->FinishTransfer(TransferId(0), moved).ok());
  }
  const auto replay = testing::ReplayInLockstep(log.contents());
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->violation, "");
  EXPECT_EQ(replay->operations, 9u);
  EXPECT_EQ(replay->granted, 0u);
  EXPECT_EQ(replay->fingerprint, (*manager)->Fingerprint());
}

TEST(OpLogTest, LockstepSaysThatItKnowsNoDeviceTier) {
  StringOpLog log;
  KvCacheOptions options = PoolOptions(8, 2);
  options.device.pages = BlockCount(4);
  options.op_log = &log;
  ASSERT_TRUE(KvCacheManager::Create(options).ok());
  const auto replay = testing::ReplayInLockstep(log.contents());
  EXPECT_EQ(replay.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(
      absl::StrContains(replay.status().message(), "4 pages on a device"))
      << replay.status();
}

TEST(OpLogTest, EveryKindOfRecordIsReplayed) {
  const Recording recording = RecordEveryKind();
  std::set<internal::OpKind> kinds;
  internal::OpLogReader reader(recording.log);
  ASSERT_TRUE(reader.ReadOptions().ok());
  while (!reader.AtEnd()) {
    const auto record = reader.Next();
    ASSERT_TRUE(record.ok()) << record.status();
    kinds.insert(record->kind);
    EXPECT_STRNE(internal::OpKindName(record->kind), "");
  }
  EXPECT_EQ(kinds.size(), 13u);
  const auto twin = ReplayOpLog(recording.log);
  ASSERT_TRUE(twin.ok()) << twin.status();
  EXPECT_EQ((*twin)->Fingerprint(), recording.fingerprint);
}

TEST(OpLogTest, OptionsComeBackAsTheyWere) {
  KvCacheOptions options = PoolOptions(77, 12, /*window=*/30, /*sinks=*/5);
  options.groups.push_back(options.groups[0]);
  options.groups[1].shape = {3, 5, 96, 64, 8, DType::kInt8};
  options.max_sequences = 9;
  options.max_tokens_per_sequence = 1234;
  options.max_steps_in_flight = 7;
  options.prefix_caching = false;
  options.watermark_blocks = BlockCount(3);
  options.eviction = &MakeSegmentedLruPolicy;
  options.max_extra_bytes_per_sequence = 99;
  options.index_extra_bytes = 640;
  options.max_pins = 2;
  options.event_capacity = 11;
  options.digest_domain = std::string("a\0b", 3);
  options.hash_seed = ~uint64_t{0};
  const std::string log =
      internal::FrameRecord(0, internal::EncodeOptions(options));
  internal::OpLogReader reader(log);
  const auto logged = reader.ReadOptions();
  ASSERT_TRUE(logged.ok()) << logged.status();
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_EQ(logged->eviction, internal::LoggedEviction::kSegmentedLru);
  // Equal encodings: every field that is recorded is read into its place.
  EXPECT_EQ(internal::EncodeOptions(logged->options),
            internal::EncodeOptions(options));
  EXPECT_EQ(logged->options.groups[1].shape, options.groups[1].shape);
  EXPECT_EQ(logged->options.groups[0].sink_tokens, 5u);
  EXPECT_EQ(logged->options.digest_domain, options.digest_domain);
  EXPECT_EQ(logged->options.hash_seed, options.hash_seed);
  EXPECT_FALSE(logged->options.prefix_caching);
}

TEST(OpLogTest, ALogCutAnywhereIsDataLossExceptBetweenRecords) {
  const std::string log = RecordEveryKind().log;
  std::set<size_t> boundaries;
  size_t end = 0;
  const std::vector<std::string> payloads = Payloads(log);
  for (size_t i = 0; i < payloads.size(); ++i) {
    end += internal::FrameRecord(i, payloads[i]).size();
    boundaries.insert(end);
  }
  ASSERT_EQ(end, log.size());
  size_t record = 0;
  for (size_t cut = 0; cut <= log.size(); ++cut) {
    const auto twin = ReplayOpLog(absl::string_view(log).substr(0, cut));
    if (boundaries.count(cut) != 0) {
      EXPECT_TRUE(twin.ok()) << cut << ": " << twin.status();
      ++record;
      continue;
    }
    ASSERT_EQ(twin.status().code(), absl::StatusCode::kDataLoss) << cut;
    EXPECT_NE(twin.status().message().find(absl::StrCat("record ", record)),
              absl::string_view::npos)
        << twin.status();
  }
}

TEST(OpLogTest, EveryChangedByteIsDataLoss) {
  const std::string log = RecordEveryKind().log;
  for (size_t at = 0; at < log.size(); ++at) {
    for (int change : {0x01, 0x80, 0xFF, 0x10}) {
      std::string changed = log;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto twin = ReplayOpLog(changed);
      EXPECT_EQ(twin.status().code(), absl::StatusCode::kDataLoss)
          << "byte " << at << " ^ " << change << ": " << twin.status();
    }
  }
}

TEST(OpLogTest, LostDoubledAndSwappedRecordsAreDataLoss) {
  const std::string log = RecordEveryKind().log;
  const std::vector<std::string> payloads = Payloads(log);
  std::vector<std::string> records;
  for (size_t i = 0; i < payloads.size(); ++i) {
    records.push_back(internal::FrameRecord(i, payloads[i]));
  }
  const auto joined = [](const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) all += part;
    return all;
  };
  for (size_t i = 0; i + 1 < records.size(); ++i) {
    std::vector<std::string> lost = records, doubled = records,
                             swapped = records;
    lost.erase(lost.begin() + static_cast<ptrdiff_t>(i));
    doubled.insert(doubled.begin() + static_cast<ptrdiff_t>(i), records[i]);
    std::swap(swapped[i], swapped[i + 1]);
    for (const auto& parts : {lost, doubled, swapped}) {
      EXPECT_EQ(ReplayOpLog(joined(parts)).status().code(),
                absl::StatusCode::kDataLoss)
          << i;
    }
  }
}

// Records that are well-formed and say another result.
TEST(OpLogTest, AResultThatDoesNotComeAgainIsDataLossWithItsRecord) {
  const std::vector<std::string> payloads = Payloads(RecordEveryKind().log);
  for (size_t i = 1; i < payloads.size(); ++i) {
    std::vector<std::string> changed = payloads;
    changed[i][1] = static_cast<char>(changed[i][1] == 0 ? 9 : 0);  // code
    const auto twin = ReplayOpLog(Frame(changed));
    EXPECT_EQ(twin.status().code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_NE(twin.status().message().find(absl::StrCat("record ", i)),
              absl::string_view::npos)
        << twin.status();
  }
}

TEST(OpLogTest, PayloadsThatAreNoOperationAreDataLoss) {
  const std::vector<std::string> good = Payloads(RecordEveryKind().log);
  std::string huge_list;
  for (uint64_t field : {uint64_t{1}, uint64_t{0}, uint64_t{1}, uint64_t{0},
                         uint64_t{1} << 60}) {
    internal::PutVarint(field, &huge_list);
  }
  const std::string kEndless(11, '\x80');
  for (const std::string& payload :
       {std::string(), std::string("\x00\x00", 2), std::string("\x0E\x00", 2),
        std::string("\x09\x11", 2), std::string("\x09\x00\x00", 3),
        std::string("\x08\x00", 2), huge_list, kEndless,
        std::string(300, 'x')}) {
    EXPECT_EQ(ReplayOpLog(Frame({good[0], payload})).status().code(),
              absl::StatusCode::kDataLoss);
    EXPECT_EQ(ReplayOpLog(Frame({payload})).status().code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(ReplayOpLog("").status().code(), absl::StatusCode::kDataLoss);
  // A token beyond 32 bits.
  std::string accept;
  for (uint64_t field : {uint64_t{5}, uint64_t{0}, uint64_t{0}, uint64_t{1},
                         uint64_t{1} << 33}) {
    internal::PutVarint(field, &accept);
  }
  EXPECT_EQ(ReplayOpLog(Frame({good[0], accept})).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(OpLogTest, OptionsThatNoManagerCanHaveAreRefused) {
  const auto replay = [](const KvCacheOptions& options,
                         const ReplayOptions& limits = {}) {
    return ReplayOpLog(
               internal::FrameRecord(0, internal::EncodeOptions(options)),
               limits)
        .status()
        .code();
  };
  EXPECT_EQ(replay(PoolOptions(8, 4)), absl::StatusCode::kOk);
  EXPECT_EQ(replay(PoolOptions(0, 4)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(replay(PoolOptions(8, 0)), absl::StatusCode::kDataLoss);
  KvCacheOptions huge = PoolOptions(8, 4);
  huge.max_sequences = 1u << 24;
  huge.max_tokens_per_sequence = 1u << 30;
  EXPECT_EQ(replay(huge), absl::StatusCode::kResourceExhausted);
  ReplayOptions little;
  little.max_metadata_bytes = 1000;
  EXPECT_EQ(replay(PoolOptions(8, 4), little),
            absl::StatusCode::kResourceExhausted);
}

// Not one that the log could know by name.
std::unique_ptr<EvictionPolicy> MakeOwnPolicy(BlockLinks links) {
  return MakeLruPolicy(links);
}

TEST(OpLogTest, AnEvictionPolicyOfOnesOwnHasToBeGivenAgain) {
  StringOpLog log;
  KvCacheOptions options = PoolOptions(4, 4);
  options.eviction = &MakeOwnPolicy;
  options.op_log = &log;
  CacheScript cache(options);
  cache.Free(cache.New(Text(1, 8)));
  cache.New(Text(2, 12));
  EXPECT_EQ(ReplayOpLog(log.contents()).status().code(),
            absl::StatusCode::kInvalidArgument);
  ReplayOptions own;
  own.eviction = &MakeOwnPolicy;
  const auto twin = ReplayOpLog(log.contents(), own);
  ASSERT_TRUE(twin.ok()) << twin.status();
  EXPECT_EQ((*twin)->Fingerprint(), cache->Fingerprint());
}

uint64_t ConstantHash(uint64_t, const void*, size_t) { return 3; }

TEST(OpLogTest, AnyHashLeadsToTheSameState) {
  StringOpLog log;
  KvCacheOptions options = PoolOptions(6, 4);
  options.hash = &ConstantHash;
  options.op_log = &log;
  CacheScript cache(options);
  for (int32_t text = 0; text < 9; ++text) {
    cache.Free(cache.New(Text(text % 4, 9)));
  }
  const auto twin = ReplayOpLog(log.contents());
  ASSERT_TRUE(twin.ok()) << twin.status();
  EXPECT_EQ((*twin)->Fingerprint(), cache->Fingerprint());
}

TEST(OpLogTest, PlansAndRefusedCommitsLeaveNoRecord) {
  StringOpLog log;
  KvCacheOptions options = PoolOptions(6, 4);
  options.op_log = &log;
  CacheScript cache(options);
  const SequenceId id = cache.New(Text(1, 5));
  const std::string before = log.contents();
  const StepRequest extend = StepRequest::Extend(id, TokenCount(1));
  { auto dropped = cache->Plan({&extend, 1}); }
  EXPECT_FALSE(cache->Allocate(Text(2, 100)).ok());
  EXPECT_EQ(cache.Hit(Text(1, 5)), 4u);
  EXPECT_EQ(log.contents(), before);
  auto stale = cache->Plan({&extend, 1});
  ASSERT_TRUE(cache->Truncate(id, TokenCount(5)).ok());
  const std::string with_truncate = log.contents();
  EXPECT_GT(with_truncate.size(), before.size());
  EXPECT_FALSE(cache->Commit(*std::move(stale)).ok());
  EXPECT_EQ(log.contents(), with_truncate);
}

TEST(OpLogFramingTest, VarintsOfEveryLengthComeBack) {
  for (int bits = 0; bits <= 64; ++bits) {
    for (int64_t near : {-1, 0, 1}) {
      const uint64_t value =
          (bits == 64 ? 0 : uint64_t{1} << bits) + static_cast<uint64_t>(near);
      std::string bytes;
      internal::PutVarint(value, &bytes);
      internal::PutZigzag(static_cast<int64_t>(value), &bytes);
      absl::string_view in = bytes;
      uint64_t back = 0;
      int64_t signed_back = 0;
      ASSERT_TRUE(internal::GetVarint(&in, &back));
      ASSERT_TRUE(internal::GetZigzag(&in, &signed_back));
      EXPECT_EQ(back, value);
      EXPECT_EQ(signed_back, static_cast<int64_t>(value));
      EXPECT_TRUE(in.empty());
    }
  }
  std::string one_byte;
  internal::PutZigzag(-64, &one_byte);
  EXPECT_EQ(one_byte.size(), 1u) << "small numbers of either sign are short";
  // More than 64 bits.
  absl::string_view too_long("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02", 10);
  uint64_t value = 0;
  EXPECT_FALSE(internal::GetVarint(&too_long, &value));
}

}  // namespace
}  // namespace paged_kv

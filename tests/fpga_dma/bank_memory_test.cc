// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/bank_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint64_t kGranule = BankMemory::kGranuleBytes;

BoardBank Bank(const std::string& name, uint64_t base, uint64_t bytes) {
  BoardBank bank;
  bank.name = name;
  bank.base_address = base;
  bank.bytes = bytes;
  bank.bytes_per_second = 1e9;
  return bank;
}

std::unique_ptr<BankMemory> Memory(const std::vector<BoardBank>& banks) {
  auto memory = BankMemory::Create(banks);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return std::move(memory).value();
}

// Two banks with a gap between them.
std::unique_ptr<BankMemory> SmallMemory() {
  return Memory(
      {Bank("A", 0, 16 * kGranule), Bank("B", 0x100000, 8 * kGranule)});
}

TEST(BankMemoryTest, AWholeCardCostsWhatIsTouched) {
  const Board board = BuiltinBoard("u250").value();
  auto memory = Memory(board.banks);
  EXPECT_EQ(memory->resident_bytes(), 0u);
  for (uint32_t bank = 0; bank < 4; ++bank) {
    const uint64_t address =
        memory->Allocate(BankId(bank), board.banks[bank].bytes).value();
    const auto bytes =
        memory->Translate(address, board.banks[bank].bytes).value();
    bytes.front() = std::byte{1};
    bytes[bytes.size() / 2] = std::byte{2};
    bytes.back() = std::byte{3};
    EXPECT_EQ(bytes[bytes.size() / 2], std::byte{2});
  }
  EXPECT_EQ(memory->resident_bytes(), 4 * 3 * kGranule);
  EXPECT_TRUE(memory->CheckInvariants().ok());
}

TEST(BankMemoryTest, TranslatesInsideOneBankOnly) {
  auto memory = SmallMemory();
  EXPECT_EQ(memory->Translate(0, 16 * kGranule)->size(), 16 * kGranule);
  EXPECT_TRUE(memory->Translate(0x100000 + 8 * kGranule - 1, 1).ok());
  const std::byte* start = memory->Translate(0x100000, 1)->data();
  EXPECT_EQ(memory->Translate(0x100000 + 100, 1)->data(), start + 100);
  struct {
    uint64_t address;
    uint64_t bytes;
  } const wild[] = {
      {16 * kGranule - 1, 2},        // over the end
      {16 * kGranule, 1},            // between the banks
      {16 * kGranule, 0},            //
      {0xFFFFF, 2},                  // into a bank from below
      {0x100000 + 8 * kGranule, 1},  // behind all
      {0x100000, 8 * kGranule + 1},  //
      {0, ~uint64_t{0}},             // wraps around
      {0x100000 + 1, ~uint64_t{0}},  //
      {~uint64_t{0}, 1},             //
      {~uint64_t{0}, ~uint64_t{0}},  //
  };
  for (const auto& range : wild) {
    EXPECT_EQ(memory->Translate(range.address, range.bytes).status().code(),
              absl::StatusCode::kOutOfRange)
        << range.address << " " << range.bytes;
  }
  EXPECT_EQ(memory->BankOf(0x100000), BankId(1));
  EXPECT_EQ(memory->BankOf(0xFFFFF), kNoBank);
  EXPECT_EQ(memory->BytesToEnd(0x100000 + 1), 8 * kGranule - 1);
  EXPECT_EQ(memory->BytesToEnd(0xFFFFF), 0u);
}

TEST(BankMemoryTest, RejectsBanksThatDoNotFit) {
  const auto code = [](const std::vector<BoardBank>& banks) {
    return BankMemory::Create(banks).status().code();
  };
  using absl::StatusCode;
  EXPECT_EQ(code({Bank("A", 0, 100)}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({Bank("A", 0, 0)}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({Bank("A", 64, kGranule)}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({Bank("A", ~uint64_t{0} - kGranule + 1, kGranule)}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code({Bank("A", 0, 2 * kGranule), Bank("B", kGranule, kGranule)}),
            StatusCode::kInvalidArgument);
  // More than any processor's address space.
  EXPECT_EQ(code({Bank("A", 0, uint64_t{1} << 62)}),
            StatusCode::kResourceExhausted);
}

TEST(BankMemoryTest, AFullBankSaysHowFull) {
  auto memory = SmallMemory();
  ASSERT_TRUE(memory->Allocate(BankId(1), 5 * kGranule).ok());
  const auto full = memory->Allocate(BankId(1), 3 * kGranule + 1);
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted);
  for (const char* part :
       {"bank B", "need 12289 bytes", "12288 of 32768 free"}) {
    EXPECT_TRUE(absl::StrContains(full.status().message(), part))
        << full.status();
  }
  EXPECT_EQ(memory->used_bytes(BankId(1)), 5 * kGranule);
  EXPECT_TRUE(memory->Allocate(BankId(1), 3 * kGranule).ok());
  EXPECT_EQ(memory->Allocate(BankId(1), 1).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(memory->Allocate(BankId(0), ~uint64_t{0}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(memory->Allocate(BankId(2), 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(memory->Allocate(BankId(0), 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(BankMemoryTest, TakesTheSmallestRangeThatIsLargeEnough) {
  auto memory = Memory({Bank("A", 0, 16 * kGranule)});
  std::vector<uint64_t> at;
  for (uint64_t granules : {3, 1, 2, 1, 9}) {
    at.push_back(memory->Allocate(BankId(0), granules * kGranule).value());
  }
  ASSERT_TRUE(memory->Free(at[0]).ok());  // 3 granules free
  ASSERT_TRUE(memory->Free(at[2]).ok());  // 2 granules free
  EXPECT_EQ(memory->largest_free_bytes(BankId(0)), 3 * kGranule);
  EXPECT_EQ(memory->Allocate(BankId(0), kGranule + 1).value(), at[2]);
  EXPECT_EQ(memory->Allocate(BankId(0), 3 * kGranule).value(), at[0]);
}

TEST(BankMemoryTest, FreesOnlyWhatItGave) {
  auto memory = SmallMemory();
  const uint64_t address = memory->Allocate(BankId(0), kGranule).value();
  EXPECT_EQ(memory->Free(address + 64).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(memory->Free(0x50000).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(memory->Free(address).ok());
  EXPECT_EQ(memory->Free(address).code(), absl::StatusCode::kNotFound);
}

TEST(BankMemoryTest, FreedAndResetMemoryIsPoisoned) {
  auto memory = SmallMemory();
  const uint64_t a = memory->Allocate(BankId(0), 2 * kGranule).value();
  const uint64_t b = memory->Allocate(BankId(0), 2 * kGranule).value();
  const auto bytes_a = memory->Translate(a, 2 * kGranule).value();
  const auto bytes_b = memory->Translate(b, 2 * kGranule).value();
  std::fill(bytes_a.begin(), bytes_a.end(), std::byte{7});
  std::fill(bytes_b.begin(), bytes_b.end(), std::byte{8});
  const auto all = [](absl::Span<const std::byte> bytes, std::byte value) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [&](std::byte each) { return each == value; });
  };
  ASSERT_TRUE(memory->Free(a).ok());
  EXPECT_TRUE(all(bytes_a, BankMemory::kPoison));
  EXPECT_TRUE(all(bytes_b, std::byte{8}));
  memory->Poison();
  EXPECT_TRUE(all(bytes_b, BankMemory::kPoison));
  EXPECT_EQ(memory->used_bytes(BankId(0)), 2 * kGranule);
  EXPECT_EQ(memory->resident_bytes(), 4 * kGranule);
}

TEST(BankMemoryDeathTest, AKernelThatRunsOverItsBankStops) {
  auto memory = SmallMemory();
  std::byte* end = memory->Translate(0, 16 * kGranule)->end();
  EXPECT_DEATH(*static_cast<volatile std::byte*>(end) = std::byte{1}, "");
}

// Random allocations against a map of who owns which granule.
TEST(BankMemoryTest, RandomAllocationsNeverOverlap) {
  const uint64_t seed = TestSeed(1);
  std::mt19937_64 random(seed);
  constexpr uint64_t kGranules = 257;
  auto memory = Memory({Bank("A", 0x10000, kGranules * kGranule)});
  std::map<uint64_t, uint64_t> owned;  // address -> granules
  std::vector<bool> taken(kGranules, false);
  size_t refused = 0;
  for (int step = 0; step < 20000; ++step) {
    if (owned.empty() || random() % 100 < 55) {
      const uint64_t bytes = 1 + random() % (40 * kGranule);
      const uint64_t granules = (bytes + kGranule - 1) / kGranule;
      uint64_t longest = 0;
      uint64_t run = 0;
      for (bool each : taken) {
        run = each ? 0 : run + 1;
        longest = std::max(longest, run);
      }
      ASSERT_EQ(memory->largest_free_bytes(BankId(0)), longest * kGranule);
      const auto address = memory->Allocate(BankId(0), bytes);
      ASSERT_EQ(address.ok(), granules <= longest);
      if (!address.ok()) {
        ++refused;
        continue;
      }
      const uint64_t first = (*address - 0x10000) / kGranule;
      for (uint64_t i = first; i < first + granules; ++i) {
        ASSERT_FALSE(taken.at(i));
        taken[i] = true;
      }
      owned[*address] = granules;
    } else {
      auto victim = owned.begin();
      std::advance(victim, random() % owned.size());
      ASSERT_TRUE(memory->Free(victim->first).ok());
      const uint64_t first = (victim->first - 0x10000) / kGranule;
      for (uint64_t i = 0; i < victim->second; ++i) taken[first + i] = false;
      owned.erase(victim);
    }
    const auto used =
        static_cast<uint64_t>(std::count(taken.begin(), taken.end(), true));
    ASSERT_EQ(memory->used_bytes(BankId(0)), used * kGranule);
    if (step % 100 == 0) {
      const absl::Status status = memory->CheckInvariants();
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/bank_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::fpga_dma {
namespace {

// Banks are scanned in pieces, so that the map of a piece stays small.
constexpr uint64_t kScanBytes = uint64_t{256} << 20;

std::string Range(uint64_t address, uint64_t bytes) {
  return absl::StrCat("[0x", absl::Hex(address), ", 0x",
                      absl::Hex(address + bytes), ")");
}

// Calls found(offset, bytes, resident) for the runs of resident and of absent
// granules of memory[0, bytes).
template <typename Found>
void ForEachRun(std::byte* memory, uint64_t bytes, Found found) {
  constexpr uint64_t kGranule = BankMemory::kGranuleBytes;
  std::vector<unsigned char> in_core(kScanBytes / kGranule);
  for (uint64_t start = 0; start < bytes; start += kScanBytes) {
    const uint64_t scan = std::min(kScanBytes, bytes - start);
    PAGED_KV_CHECK(mincore(memory + start, scan, in_core.data()) == 0);
    const uint64_t granules = scan / kGranule;
    for (uint64_t i = 0; i < granules;) {
      uint64_t end = i + 1;
      while (end < granules && (in_core[end] & 1) == (in_core[i] & 1)) ++end;
      found(start + i * kGranule, (end - i) * kGranule, (in_core[i] & 1) != 0);
      i = end;
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BankMemory>> BankMemory::Create(
    absl::Span<const BoardBank> banks) {
  auto memory = std::unique_ptr<BankMemory>(new BankMemory());
  for (const BoardBank& given : banks) {
    if (given.bytes == 0 || given.bytes % kGranuleBytes != 0 ||
        given.base_address % kGranuleBytes != 0 ||
        given.base_address > ~given.bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "bank ", given.name, " has ", given.bytes, " bytes at 0x",
          absl::Hex(given.base_address), "; both must be multiples of ",
          kGranuleBytes, ", and the end an address"));
    }
    for (const Bank& other : memory->banks_) {
      if (given.base_address < other.base + other.bytes &&
          other.base < given.base_address + given.bytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            "banks ", other.name, " ", Range(other.base, other.bytes), " and ",
            given.name, " ", Range(given.base_address, given.bytes),
            " overlap"));
      }
    }
    void* mapping =
        mmap(nullptr, given.bytes + kGranuleBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot reserve an address range of ", given.bytes,
          " bytes for bank ", given.name, ": ", std::strerror(errno)));
    }
    Bank bank;
    bank.name = given.name;
    bank.base = given.base_address;
    bank.bytes = given.bytes;
    bank.memory = static_cast<std::byte*>(mapping);
    bank.free[bank.base] = bank.bytes;
    // A kernel that runs over the end of its bank stops here.
    PAGED_KV_CHECK(
        mprotect(bank.memory + bank.bytes, kGranuleBytes, PROT_NONE) == 0);
    // Huge pages would make a sparse bank cost 2 MiB per touched slot.
    madvise(bank.memory, bank.bytes, MADV_NOHUGEPAGE);
    memory->banks_.push_back(std::move(bank));
  }
  return memory;
}

BankMemory::~BankMemory() {
  for (Bank& bank : banks_) munmap(bank.memory, bank.bytes + kGranuleBytes);
}

absl::StatusOr<uint64_t> BankMemory::Allocate(BankId bank_id, uint64_t bytes) {
  if (bank_id.value() >= banks_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no bank ", bank_id.value(), "; there are ", banks_.size()));
  }
  if (bytes == 0) return absl::InvalidArgumentError("a range of 0 bytes");
  Bank& bank = banks_[bank_id.value()];
  const uint64_t rounded =
      bytes > bank.bytes
          ? bytes
          : (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  auto best = bank.free.end();
  for (auto it = bank.free.begin(); it != bank.free.end(); ++it) {
    if (it->second < rounded) continue;
    if (best == bank.free.end() || it->second < best->second) best = it;
  }
  if (best == bank.free.end()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("bank ", bank.name, " is full: need ", bytes, " bytes, ",
                     bank.bytes - bank.used, " of ", bank.bytes,
                     " free, the largest range ", largest_free_bytes(bank_id)));
  }
  const auto [address, size] = *best;
  bank.free.erase(best);
  if (size > rounded) bank.free[address + rounded] = size - rounded;
  bank.regions[address] = rounded;
  bank.used += rounded;
  return address;
}

absl::Status BankMemory::Free(uint64_t address) {
  const BankId id = BankOf(address);
  if (id == kNoBank || banks_[id.value()].regions.count(address) == 0) {
    return absl::NotFoundError(absl::StrCat(
        "no allocated range starts at device address 0x", absl::Hex(address)));
  }
  Bank& bank = banks_[id.value()];
  const auto region = bank.regions.find(address);
  const uint64_t bytes = region->second;
  bank.regions.erase(region);
  bank.used -= bytes;
  PoisonRange(bank, address - bank.base, bytes);
  auto range = bank.free.emplace(address, bytes).first;
  const auto next = std::next(range);
  if (next != bank.free.end() && address + bytes == next->first) {
    range->second += next->second;
    bank.free.erase(next);
  }
  if (range != bank.free.begin()) {
    const auto previous = std::prev(range);
    if (previous->first + previous->second == address) {
      previous->second += range->second;
      bank.free.erase(range);
    }
  }
  return absl::OkStatus();
}

const BankMemory::Bank* BankMemory::Find(uint64_t address) const {
  for (const Bank& bank : banks_) {
    if (address >= bank.base && address - bank.base < bank.bytes) return &bank;
  }
  return nullptr;
}

absl::StatusOr<absl::Span<std::byte>> BankMemory::Translate(
    uint64_t address, uint64_t bytes) const {
  const Bank* bank = Find(address);
  if (bank == nullptr || bytes > bank->bytes - (address - bank->base)) {
    return absl::OutOfRangeError(absl::StrCat(
        "device addresses [0x", absl::Hex(address), " + ", bytes, " bytes) ",
        bank == nullptr ? "start in no bank"
                        : absl::StrCat("leave bank ", bank->name, " ",
                                       Range(bank->base, bank->bytes))));
  }
  return absl::MakeSpan(bank->memory + (address - bank->base),
                        static_cast<size_t>(bytes));
}

BankId BankMemory::BankOf(uint64_t address) const {
  const Bank* bank = Find(address);
  if (bank == nullptr) return kNoBank;
  return BankId(static_cast<uint32_t>(bank - banks_.data()));
}

uint64_t BankMemory::BytesToEnd(uint64_t address) const {
  const Bank* bank = Find(address);
  return bank == nullptr ? 0 : bank->bytes - (address - bank->base);
}

uint64_t BankMemory::bank_bytes(BankId bank) const {
  return banks_.at(bank.value()).bytes;
}

uint64_t BankMemory::used_bytes(BankId bank) const {
  return banks_.at(bank.value()).used;
}

uint64_t BankMemory::largest_free_bytes(BankId bank) const {
  uint64_t largest = 0;
  for (const auto& [address, bytes] : banks_.at(bank.value()).free) {
    largest = std::max(largest, bytes);
  }
  return largest;
}

uint64_t BankMemory::resident_bytes() const {
  uint64_t resident = 0;
  for (const Bank& bank : banks_) {
    ForEachRun(bank.memory, bank.bytes,
               [&](uint64_t, uint64_t bytes, bool in_core) {
                 if (in_core) resident += bytes;
               });
  }
  return resident;
}

void BankMemory::Poison() {
  for (const Bank& bank : banks_) {
    for (const auto& [address, bytes] : bank.regions) {
      PoisonRange(bank, address - bank.base, bytes);
    }
  }
}

void BankMemory::PoisonRange(const Bank& bank, uint64_t offset,
                             uint64_t bytes) {
  std::byte* start = bank.memory + offset;
  ForEachRun(start, bytes, [&](uint64_t at, uint64_t run, bool in_core) {
    if (in_core) {
      std::memset(start + at, std::to_integer<int>(kPoison), run);
    } else {
      madvise(start + at, run, MADV_DONTNEED);
    }
  });
}

absl::Status BankMemory::CheckInvariants() const {
  for (const Bank& bank : banks_) {
    uint64_t used = 0;
    uint64_t at = bank.base;
    bool after_free = false;
    auto free = bank.free.begin();
    auto region = bank.regions.begin();
    while (at < bank.base + bank.bytes) {
      const bool is_free = free != bank.free.end() && free->first == at;
      const bool is_used = region != bank.regions.end() && region->first == at;
      if (is_free == is_used || (is_free && after_free)) {
        return absl::InternalError(
            absl::StrCat("bank ", bank.name, ": at 0x", absl::Hex(at),
                         is_free == is_used ? " starts no or two ranges"
                                            : " two free ranges touch"));
      }
      after_free = is_free;
      const uint64_t bytes = is_free ? (free++)->second : (region++)->second;
      if (bytes == 0 || bytes % kGranuleBytes != 0) {
        return absl::InternalError(
            absl::StrCat("bank ", bank.name, ": a range of ", bytes, " bytes"));
      }
      if (is_used) used += bytes;
      at += bytes;
    }
    if (free != bank.free.end() || region != bank.regions.end() ||
        at != bank.base + bank.bytes || used != bank.used) {
      return absl::InternalError(
          absl::StrCat("bank ", bank.name, ": ranges do not tile it, or ", used,
                       " bytes are used and ", bank.used, " counted"));
    }
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::fpga_dma

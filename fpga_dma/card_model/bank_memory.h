// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory of a whole card in this process, apart from host memory. Address
// ranges are reserved, not committed, so that a 64 GiB card costs what is
// touched.

#ifndef PAGED_KV_FPGA_DMA_CARD_MODEL_BANK_MEMORY_H_
#define PAGED_KV_FPGA_DMA_CARD_MODEL_BANK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/device_types.h"

namespace paged_kv::fpga_dma {

// Banks, their allocators, and the way from a device address to a pointer.
//
// Thread safety: thread-compatible; Translate() may run in many threads beside
// each other, and nobody orders the accesses to the bytes themselves.
// Invariants: per bank, free and allocated ranges tile it; neighbouring free
// ranges are merged; ranges are multiples of kGranuleBytes.
class BankMemory {
 public:
  static constexpr uint64_t kGranuleBytes = 4096;
  // What memory holds that was freed or lost in a reset, if it had ever been
  // written; as a bf16 or a float it is a NaN.
  static constexpr std::byte kPoison{0xFF};

  // InvalidArgument: banks that overlap or are no multiple of a granule.
  // ResourceExhausted: the process gets no such address range.
  static absl::StatusOr<std::unique_ptr<BankMemory>> Create(
      absl::Span<const BoardBank> banks);
  ~BankMemory();
  BankMemory(const BankMemory&) = delete;
  BankMemory& operator=(const BankMemory&) = delete;

  // Device address of a free range of at least `bytes` in `bank`: the smallest
  // one that is large enough, the lowest of these. Contents are undefined.
  // InvalidArgument (no such bank, no bytes), ResourceExhausted.
  absl::StatusOr<uint64_t> Allocate(BankId bank, uint64_t bytes);
  // Frees what Allocate() returned and poisons it. NotFound: it is not the
  // start of an allocated range.
  absl::Status Free(uint64_t address);

  // Where [address, address + bytes) is. It lies in one bank; an address
  // beyond, between or across banks is OutOfRange. Not confined to allocated
  // ranges, as a card does not confine its kernels.
  absl::StatusOr<absl::Span<std::byte>> Translate(uint64_t address,
                                                  uint64_t bytes) const;
  // The bank that holds `address`, kNoBank if none does.
  BankId BankOf(uint64_t address) const;
  // From `address` to the end of its bank; 0 if it is in none.
  uint64_t BytesToEnd(uint64_t address) const;

  uint64_t bank_bytes(BankId bank) const;
  uint64_t used_bytes(BankId bank) const;  // allocated
  uint64_t largest_free_bytes(BankId bank) const;
  // Host memory that all banks take at present.
  uint64_t resident_bytes() const;

  // Overwrites what was ever written of the allocated ranges, as a reset of a
  // card loses its memory (free ranges were poisoned when they became free).
  // Allocations stay.
  void Poison();

  absl::Status CheckInvariants() const;

 private:
  struct Bank {
    std::string name;
    uint64_t base = 0;
    uint64_t bytes = 0;
    uint64_t used = 0;
    std::byte* memory = nullptr;           // [bytes], then a guard granule
    std::map<uint64_t, uint64_t> free;     // address -> bytes
    std::map<uint64_t, uint64_t> regions;  // allocated: address -> bytes
  };

  BankMemory() = default;
  const Bank* Find(uint64_t address) const;
  // Poisons what is resident of `bytes` at offset `offset` of the bank, and
  // gives up what was swapped out.
  static void PoisonRange(const Bank& bank, uint64_t offset, uint64_t bytes);

  std::vector<Bank> banks_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_CARD_MODEL_BANK_MEMORY_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A naive engine and a naive card for tests of the device tier: memory of both
// tiers is an array of numbers, one per slot, and every number says which
// tokens led to it. Steps run as late as they may, transfers move slot by slot
// at any time between their start and their report, pages that nobody should
// read are overwritten. A page that was lost, given away or read too early, or
// a write that went to the wrong tier, shows as a wrong number.

#ifndef PAGED_KV_TESTS_SUPPORT_DEVICE_WORLD_H_
#define PAGED_KV_TESTS_SUPPORT_DEVICE_WORLD_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/op_log.h"

namespace paged_kv::testing {

class DeviceWorld {
 public:
  DeviceWorld(const KvCacheOptions& options, uint64_t seed);

  // One random operation, and a check of everything. False once something is
  // wrong; violation() says what.
  bool Step();
  // Ends everything in flight and compares a replay of the log.
  bool Finish();
  const std::string& violation() const { return violation_; }

  struct Counts {
    uint64_t steps_on_host = 0, steps_on_device = 0;
    uint64_t uploads = 0, downloads = 0, failed = 0;
    uint64_t copies_on_device = 0, refused = 0, handed_off = 0;
    uint64_t fetched_for_admissions = 0;
    uint64_t resets = 0, lost_sequences = 0, kept_sequences = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Sequence {
    std::vector<TokenId> tokens;
    uint32_t run = 0;  // tokens whose K/V has been computed
    bool on_device = false;
  };
  struct Part {
    SequenceId id;
    uint32_t first = 0;
    uint32_t tokens = 0;          // new ones
    std::vector<TokenId> values;  // all, up to the step's end
    bool freed = false;
    bool gone = false;  // ran, or was to run, on a device that was lost
  };
  struct Flight {
    StepId id;
    std::vector<Part> parts;
    std::vector<BlockCopy> copies;
    std::vector<SequenceId> device;  // of these, those at home on the device
    bool exported = false;
    bool run = false;
    // [group][part]
    std::vector<std::vector<std::vector<int32_t>>> pages;
    std::vector<std::vector<int32_t>> first_token;
    std::vector<std::vector<std::vector<int64_t>>> slots;
  };
  struct Move {
    TierTransfer transfer;
    uint32_t moved_slots = 0;
  };
  using Memory = std::vector<std::vector<uint64_t>>;  // [pool][slot]

  uint32_t Random(uint32_t below) {
    return static_cast<uint32_t>(random_() % below);
  }
  // Remembers an operation, for Fail() to tell of the latest.
  void Note(const std::string& operation);
  void Fail(const std::string& what);
  SequenceId AnySequence();
  std::vector<SequenceId> SomeSequences(uint32_t most);
  bool InFlight(SequenceId id) const;
  uint32_t PoolOf(uint32_t group) const { return pool_of_[group]; }
  uint32_t BlockTokens(uint32_t group) const;
  // What a slot of `group` holds for token `position` of this sequence.
  static uint64_t Content(uint32_t group, const std::vector<TokenId>& tokens,
                          uint32_t position);
  Memory& MemoryOf(Tier tier) { return tier == Tier::kHost ? host_ : device_; }

  void Admit();
  void Extend();
  void Commit(const std::vector<StepRequest>& requests,
              const std::vector<std::vector<TokenId>>& texts);
  bool TryExport(Flight* flight);
  void ForceExport(Flight* flight);
  void RunStep(Flight* flight);
  void ReadBack(const Flight& flight, uint32_t group, size_t part,
                uint32_t end);
  uint32_t Settled(SequenceId id, uint32_t group, uint32_t run) const;
  void RetireOldest();
  void Free();
  void Fork();
  void Truncate();
  void SwapIn();
  void SwapOut();
  void WriteBack();
  // The device is reset: its memory holds nothing of use.
  void LoseDevice();
  bool IsLost(SequenceId id) const;
  void Take(absl::Span<const TierTransfer> transfers);
  void MoveSome(Move* move);
  bool MayMove(const TierTransfer& transfer) const;
  void FinishSome();
  void FinishMove(size_t index, bool moved);
  void Accepted(const absl::Status& status);
  void CheckAll();
  void CheckSequence(SequenceId id, const Sequence& sequence);

  StringOpLog log_;
  std::unique_ptr<KvCacheManager> cache_;
  std::mt19937_64 random_;
  std::vector<uint32_t> pool_of_;
  Memory host_, device_;
  std::map<uint64_t, Sequence> sequences_;  // by id
  std::vector<std::vector<TokenId>> finished_;
  std::deque<Flight> flights_;
  std::vector<Move> moves_;
  std::deque<std::string> notes_;
  std::string violation_;
  Counts counts_;
};

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_DEVICE_WORLD_H_

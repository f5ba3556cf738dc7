// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/device_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace paged_kv::testing {
namespace {

constexpr uint64_t kPoison = ~uint64_t{0};

}  // namespace

DeviceWorld::DeviceWorld(const KvCacheOptions& options, uint64_t seed)
    : random_(seed) {
  KvCacheOptions logged = options;
  logged.op_log = &log_;
  auto cache = KvCacheManager::Create(logged);
  if (!cache.ok()) {
    Fail(cache.status().ToString());
    return;
  }
  cache_ = *std::move(cache);
  for (uint32_t g = 0; g < options.groups.size(); ++g) {
    uint32_t pool = g;
    for (uint32_t other = 0; other < g; ++other) {
      if (options.groups[other].shape == options.groups[g].shape) {
        pool = other;
        break;
      }
    }
    pool_of_.push_back(pool);
    const uint32_t blocks = cache_->PoolBlocks(GroupId(g)).value();
    host_.emplace_back(size_t{blocks} * BlockTokens(g), kPoison);
    device_.emplace_back(size_t{blocks} * BlockTokens(g), kPoison);
  }
}

uint32_t DeviceWorld::BlockTokens(uint32_t group) const {
  return cache_->options().groups[group].shape.block_tokens;
}

void DeviceWorld::Note(const std::string& operation) {
  notes_.push_back(operation);
  if (notes_.size() > 200) notes_.pop_front();
}

void DeviceWorld::Fail(const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = absl::StrCat(what, "\nlatest operations:");
  for (const std::string& note : notes_) {
    absl::StrAppend(&violation_, "\n  ", note);
  }
}

uint64_t DeviceWorld::Content(uint32_t group,
                              const std::vector<TokenId>& tokens,
                              uint32_t position) {
  // All tokens up to the position decide: FNV-1a.
  uint64_t hash = 1469598103934665603u + group;
  for (uint32_t i = 0; i <= position; ++i) {
    hash = (hash ^ static_cast<uint64_t>(tokens[i])) * 1099511628211u;
  }
  return hash >> 1;
}

bool DeviceWorld::InFlight(SequenceId id) const {
  for (const Flight& flight : flights_) {
    for (const Part& part : flight.parts) {
      if (part.id == id && !part.freed) return true;
    }
  }
  return false;
}

SequenceId DeviceWorld::AnySequence() {
  if (sequences_.empty()) return SequenceId(0);
  auto it = sequences_.begin();
  std::advance(it, Random(static_cast<uint32_t>(sequences_.size())));
  return SequenceId(it->first);
}

std::vector<SequenceId> DeviceWorld::SomeSequences(uint32_t most) {
  std::vector<SequenceId> ids;
  for (uint32_t i = 0; i <= Random(most); ++i) {
    const SequenceId id = AnySequence();
    if (id == SequenceId(0)) break;
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

void DeviceWorld::Accepted(const absl::Status& status) {
  if (status.ok()) return;
  ++counts_.refused;
  // What random traffic may run into; anything else is a defect.
  if (absl::IsResourceExhausted(status) || absl::IsOutOfRange(status) ||
      absl::IsFailedPrecondition(status)) {
    return;
  }
  Fail(absl::StrCat("refused: ", status.ToString()));
}

// ---- Steps ----

void DeviceWorld::Admit() {
  // A few texts with common beginnings, so that blocks are shared.
  std::vector<TokenId> prompt;
  const auto text = static_cast<TokenId>(Random(4));
  uint32_t length = 1 + Random(20);
  const uint32_t branch = Random(3) == 0 ? Random(length) : length;
  for (uint32_t i = 0; i < length; ++i) {
    prompt.push_back(text * 1000 + static_cast<TokenId>(i) +
                     (i < branch ? 0 : 1 + static_cast<TokenId>(Random(900))));
  }
  // Or the next turn of a conversation.
  if (Random(2) == 0 && !finished_.empty()) {
    prompt = finished_[Random(static_cast<uint32_t>(finished_.size()))];
    prompt.push_back(7);
  }
  length = static_cast<uint32_t>(prompt.size());
  StepRequest request = StepRequest::Admit(prompt);
  if (Random(4) == 0) {
    request.reserve_tokens = TokenCount(length + Random(12));
  }
  if (Random(8) == 0) request.share = false;
  Commit({request}, {prompt});
}

void DeviceWorld::Extend() {
  std::vector<StepRequest> requests;
  std::vector<std::vector<TokenId>> texts;
  const std::vector<SequenceId> ids = SomeSequences(3);
  texts.reserve(ids.size());
  for (SequenceId id : ids) {
    std::vector<TokenId> tokens(1 + Random(Random(4) == 0 ? 9 : 2));
    for (TokenId& token : tokens) token = static_cast<TokenId>(Random(5));
    texts.push_back(std::move(tokens));
    requests.push_back(StepRequest::Extend(id, texts.back()));
  }
  if (!requests.empty()) Commit(requests, texts);
}

void DeviceWorld::Commit(const std::vector<StepRequest>& requests,
                         const std::vector<std::vector<TokenId>>& texts) {
  // Tables are exported before the next step changes them.
  for (Flight& flight : flights_) ForceExport(&flight);
  if (!violation_.empty()) return;
  const uint64_t before = cache_->Fingerprint();
  auto plan = cache_->Plan(requests);
  if (cache_->Fingerprint() != before) Fail("a plan left a trace");
  if (!plan.ok()) return Accepted(plan.status());
  const auto step = cache_->Commit(*std::move(plan));
  if (!step.ok()) return Fail(step.status().ToString());
  const StepView view = *cache_->View(*step);
  Flight flight;
  flight.id = *step;
  for (size_t i = 0; i < view.sequences.size(); ++i) {
    const PlannedSequence& planned = view.sequences[i];
    Part part;
    part.id = planned.id;
    part.first = planned.first_new.value();
    part.tokens = planned.new_tokens.value();
    Sequence& sequence = sequences_[planned.id.value()];
    if (planned.kind == StepRequest::Kind::kAdmit) {
      sequence.tokens = texts[i];
      sequence.run = part.first;
    } else {
      sequence.tokens.insert(sequence.tokens.end(), texts[i].begin(),
                             texts[i].end());
    }
    part.values = sequence.tokens;
    if (sequence.on_device) flight.device.push_back(planned.id);
    ++(sequence.on_device ? counts_.steps_on_device : counts_.steps_on_host);
    flight.parts.push_back(std::move(part));
  }
  for (const Part& part : flight.parts) {
    Note(absl::StrCat("commit ", step->value(), ": sequence ",
                      part.id.value() & 0xFFFFFFFF, " from ", part.first, ", ",
                      part.tokens, " tokens"));
  }
  flight.copies.assign(view.copies.begin(), view.copies.end());
  for (const NewBlock& block : view.new_blocks) {
    const SequenceId id = view.sequences[block.sequence].id;
    if ((block.device_page != kNoPage) != sequences_[id.value()].on_device) {
      Fail(absl::StrCat("new block ", block.block.value(), " of sequence ",
                        id.value(), " got device page ", block.device_page));
    }
  }
  counts_.fetched_for_admissions += view.transfers.size();
  Take(view.transfers);
  flights_.push_back(std::move(flight));
}

bool DeviceWorld::TryExport(Flight* flight) {
  if (flight->exported) return true;
  const auto groups = static_cast<uint32_t>(cache_->options().groups.size());
  flight->pages.assign(groups, {});
  flight->first_token.assign(groups, {});
  flight->slots.assign(groups, {});
  for (uint32_t g = 0; g < groups; ++g) {
    for (const Part& part : flight->parts) {
      const Tier tier =
          std::count(flight->device.begin(), flight->device.end(), part.id) > 0
              ? Tier::kDevice
              : Tier::kHost;
      const std::vector<SequenceId> ids = {part.id};
      const auto size = cache_->TableSize(ids, GroupId(g));
      if (!size.ok()) {
        Fail(size.status().ToString());
        return false;
      }
      std::vector<int32_t> pages(size->pages), indptr(2), last(1), first(1);
      const PageTableBuffers buffers{
          absl::MakeSpan(indptr), absl::MakeSpan(pages), absl::MakeSpan(last),
          absl::MakeSpan(first)};
      const auto table =
          cache_->ExportPageTable(ids, GroupId(g), buffers, tier);
      if (!table.ok()) {
        if (!absl::IsFailedPrecondition(table.status())) {
          Fail(table.status().ToString());
        }
        if (tier == Tier::kDevice) {
          Fail(absl::StrCat("a step on the device cannot run: ",
                            table.status().ToString()));
        }
        return false;
      }
      const uint32_t bt = BlockTokens(g);
      // Where the new tokens go, from the same table.
      std::vector<int64_t> slots;
      const uint32_t sinks = static_cast<uint32_t>(table->sink_pages);
      for (uint32_t p = part.first; p < part.first + part.tokens; ++p) {
        uint32_t place = p / bt;
        if (first[0] > 0) {
          place = place - static_cast<uint32_t>(first[0]) / bt + sinks;
        }
        slots.push_back(int64_t{pages[place]} * bt + p % bt);
      }
      flight->pages[g].push_back(std::move(pages));
      flight->first_token[g].push_back(first[0]);
      flight->slots[g].push_back(std::move(slots));
    }
  }
  flight->exported = true;
  return true;
}

void DeviceWorld::ForceExport(Flight* flight) {
  for (int round = 0; !TryExport(flight) && violation_.empty(); ++round) {
    if (round > 50) return Fail("a step's K/V never arrives");
    while (!moves_.empty()) FinishMove(0, MayMove(moves_[0].transfer));
    if (TryExport(flight)) return;
    // Downloads had failed: ask again for them.
    for (const Part& part : flight->parts) {
      const std::vector<SequenceId> ids = {part.id};
      const auto transfers = cache_->SwapOut(ids);
      if (!transfers.ok()) return Fail(transfers.status().ToString());
      sequences_[part.id.value()].on_device = false;
      Take(*transfers);
    }
  }
}

void DeviceWorld::RunStep(Flight* flight) {
  if (flight->run) return;
  ForceExport(flight);
  if (!violation_.empty()) return;
  for (const BlockCopy& copy : flight->copies) {
    const uint32_t g = copy.group.value();
    std::vector<uint64_t>& memory = MemoryOf(copy.tier)[PoolOf(g)];
    const uint32_t bt = BlockTokens(g);
    counts_.copies_on_device += copy.tier == Tier::kDevice ? 1 : 0;
    std::copy_n(memory.begin() + int64_t{copy.source_page} * bt,
                copy.filled_tokens,
                memory.begin() + int64_t{copy.target_page} * bt);
  }
  for (uint32_t g = 0; g < flight->pages.size(); ++g) {
    for (size_t i = 0; i < flight->parts.size(); ++i) {
      const Part& part = flight->parts[i];
      if (part.gone) continue;
      const bool on_device =
          std::count(flight->device.begin(), flight->device.end(), part.id) > 0;
      std::vector<uint64_t>& memory =
          MemoryOf(on_device ? Tier::kDevice : Tier::kHost)[PoolOf(g)];
      for (uint32_t k = 0; k < part.tokens; ++k) {
        memory[static_cast<size_t>(flight->slots[g][i][k])] =
            Content(g, part.values, part.first + k);
      }
      ReadBack(*flight, g, i, part.first + part.tokens);
    }
  }
  for (const Part& part : flight->parts) {
    if (part.freed) continue;
    Sequence& sequence = sequences_[part.id.value()];
    sequence.run = std::min(static_cast<uint32_t>(sequence.tokens.size()),
                            std::max(sequence.run, part.first + part.tokens));
  }
  flight->run = true;
  Note(absl::StrCat("run ", flight->id.value()));
}

// Reads all that the last token of a part attends to, up to position `end`.
void DeviceWorld::ReadBack(const Flight& flight, uint32_t g, size_t i,
                           uint32_t end) {
  const LayerGroup& group = cache_->options().groups[g];
  const Part& part = flight.parts[i];
  const uint32_t bt = BlockTokens(g);
  const uint32_t sinks = (group.sink_tokens + bt - 1) / bt;
  const bool on_device =
      std::count(flight.device.begin(), flight.device.end(), part.id) > 0;
  const std::vector<uint64_t>& memory =
      MemoryOf(on_device ? Tier::kDevice : Tier::kHost)[PoolOf(g)];
  const auto first = static_cast<uint32_t>(flight.first_token[g][i]);
  const uint32_t length = part.first + part.tokens;
  const uint32_t window =
      group.window == 0 || length < group.window ? 0 : length - group.window;
  for (size_t page = 0; page < flight.pages[g][i].size(); ++page) {
    uint32_t begin = static_cast<uint32_t>(page) * bt;
    if (first > 0 && page >= sinks) begin += first - sinks * bt;
    for (uint32_t p = begin; p < std::min(begin + bt, end); ++p) {
      if (p >= sinks * bt && p < window) continue;
      const size_t slot =
          static_cast<size_t>(flight.pages[g][i][page]) * bt + p % bt;
      if (memory[slot] == Content(g, part.values, p)) continue;
      return Fail(absl::StrCat(
          "step ", flight.id.value(), " reads a wrong number: sequence ",
          part.id.value() & 0xFFFFFFFF, " at ", p, " of ", length, ", group ",
          g, ", ", on_device ? "device" : "host", " page ",
          flight.pages[g][i][page]));
    }
  }
}

void DeviceWorld::RetireOldest() {
  if (flights_.empty()) return;
  RunStep(&flights_.front());
  if (!violation_.empty()) return;
  const absl::Status status = cache_->Retire(flights_.front().id);
  if (!status.ok()) Fail(status.ToString());
  Note(absl::StrCat("retire ", flights_.front().id.value()));
  flights_.pop_front();
}

// ---- Sequences ----

void DeviceWorld::Free() {
  const SequenceId id = AnySequence();
  if (id == SequenceId(0)) return;
  for (Flight& flight : flights_) {
    for (Part& part : flight.parts) {
      if (part.id != id || part.freed) continue;
      ForceExport(&flight);
      part.freed = true;
    }
  }
  Note(absl::StrCat("free ", id.value() & 0xFFFFFFFF));
  const absl::Status status = cache_->Free(id);
  if (!status.ok()) Fail(status.ToString());
  if (!InFlight(id)) finished_.push_back(sequences_[id.value()].tokens);
  if (finished_.size() > 4) finished_.erase(finished_.begin());
  sequences_.erase(id.value());
}

void DeviceWorld::Fork() {
  const SequenceId id = AnySequence();
  if (id == SequenceId(0)) return;
  const auto child = cache_->Fork(id);
  if (!child.ok()) return Accepted(child.status());
  sequences_[child->value()] = sequences_[id.value()];
  Note(absl::StrCat("fork ", id.value() & 0xFFFFFFFF, " to ",
                    child->value() & 0xFFFFFFFF));
}

void DeviceWorld::Truncate() {
  const SequenceId id = AnySequence();
  if (id == SequenceId(0) || InFlight(id)) return;
  Sequence& sequence = sequences_[id.value()];
  const auto length = static_cast<uint32_t>(sequence.tokens.size());
  const uint32_t keep = length - std::min(length, Random(8));
  const absl::Status status = cache_->Truncate(id, TokenCount(keep));
  if (!status.ok()) return Accepted(status);
  Note(absl::StrCat("truncate ", id.value() & 0xFFFFFFFF, " to ", keep));
  sequence.tokens.resize(keep);
  sequence.run = std::min(sequence.run, keep);
}

// ---- Swaps and transfers ----

void DeviceWorld::Take(absl::Span<const TierTransfer> transfers) {
  for (const TierTransfer& transfer : transfers) {
    for (const Move& move : moves_) {
      if (move.transfer.group != transfer.group) continue;
      const bool up = move.transfer.target_tier == Tier::kDevice;
      const bool now_up = transfer.target_tier == Tier::kDevice;
      const uint32_t page =
          up ? move.transfer.target_page : move.transfer.source_page;
      if (page == (now_up ? transfer.target_page : transfer.source_page)) {
        Fail(absl::StrCat("device page ", page, " has two transfers"));
      }
    }
    ++(transfer.target_tier == Tier::kDevice ? counts_.uploads
                                             : counts_.downloads);
    counts_.handed_off += transfer.after_step == StepId(0) ? 0 : 1;
    if (transfer.filled_tokens > BlockTokens(transfer.group.value())) {
      Fail("a transfer of more slots than a page has");
    }
    moves_.push_back({transfer, 0});
    Note(absl::StrCat("transfer ", transfer.id.value(), " of ",
                      transfer.filled_tokens, " slots, ",
                      transfer.target_tier == Tier::kDevice ? "host " : "page ",
                      transfer.source_page, " to ", transfer.target_page,
                      " after ", transfer.after_step.value()));
    // Whatever was there is nobody's.
    const uint32_t bt = BlockTokens(transfer.group.value());
    auto target =
        MemoryOf(transfer.target_tier)[PoolOf(transfer.group.value())].begin() +
        int64_t{transfer.target_page} * bt;
    std::fill_n(target, bt, kPoison);
  }
}

bool DeviceWorld::MayMove(const TierTransfer& transfer) const {
  for (const Flight& flight : flights_) {
    if (flight.id == transfer.after_step && !flight.run) return false;
  }
  return true;
}

void DeviceWorld::MoveSome(Move* move) {
  const TierTransfer& transfer = move->transfer;
  if (move->moved_slots == transfer.filled_tokens || !MayMove(transfer)) return;
  const uint32_t pool = PoolOf(transfer.group.value());
  const uint32_t bt = BlockTokens(transfer.group.value());
  MemoryOf(transfer.target_tier)[pool][size_t{transfer.target_page} * bt +
                                       move->moved_slots] =
      MemoryOf(transfer.source_tier)[pool][size_t{transfer.source_page} * bt +
                                           move->moved_slots];
  ++move->moved_slots;
}

void DeviceWorld::FinishMove(size_t index, bool moved) {
  Move move = moves_[index];
  if (moved) {
    while (move.moved_slots < move.transfer.filled_tokens) MoveSome(&move);
  } else {
    ++counts_.failed;
    const uint32_t pool = PoolOf(move.transfer.group.value());
    const uint32_t bt = BlockTokens(move.transfer.group.value());
    std::fill_n(MemoryOf(move.transfer.target_tier)[pool].begin() +
                    int64_t{move.transfer.target_page} * bt,
                bt, kPoison);
  }
  moves_.erase(moves_.begin() + static_cast<int64_t>(index));
  Note(absl::StrCat("transfer ", move.transfer.id.value(),
                    moved ? " done" : " failed"));
  const absl::Status status = cache_->FinishTransfer(move.transfer.id, moved);
  if (!status.ok()) return Fail(status.ToString());
  if (cache_->FinishTransfer(move.transfer.id, moved).code() !=
      absl::StatusCode::kNotFound) {
    Fail("a transfer finished twice");
  }
  if (moved || move.transfer.target_tier == Tier::kHost) return;
  // Whoever was on the device with it is not any more.
  for (auto& [value, sequence] : sequences_) {
    if (!sequence.on_device) continue;
    const std::vector<SequenceId> ids = {SequenceId(value)};
    const auto table =
        *cache_->BlockTable(SequenceId(value), move.transfer.group);
    const BlockId block(move.transfer.source_page);
    if (std::find(table.begin(), table.end(), block) != table.end()) {
      sequence.on_device = false;
    }
  }
}

void DeviceWorld::FinishSome() {
  for (uint32_t i = Random(20); i > 0 && !moves_.empty(); --i) {
    const uint32_t index = Random(static_cast<uint32_t>(moves_.size()));
    if (Random(2) > 0) {
      MoveSome(&moves_[index]);
    } else if (Random(25) == 0) {
      FinishMove(index, false);
    } else if (MayMove(moves_[index].transfer)) {
      FinishMove(index, true);
    }
  }
}

void DeviceWorld::SwapIn() {
  const std::vector<SequenceId> ids = SomeSequences(3);
  const bool prefix = Random(3) == 0;
  const uint64_t before = cache_->Fingerprint();
  const auto transfers = prefix
                             ? cache_->SwapInPrefix(ids, TokenCount(Random(30)))
                             : cache_->SwapIn(ids);
  if (!transfers.ok()) {
    if (cache_->Fingerprint() != before) Fail("a refused swap left a trace");
    return Accepted(transfers.status());
  }
  for (SequenceId id : ids) {
    Note(absl::StrCat("swap in ", id.value() & 0xFFFFFFFF,
                      prefix ? " (prefix)" : ""));
  }
  // Steps in flight go on where they began: their tables are exported.
  if (!prefix) {
    for (SequenceId id : ids) sequences_[id.value()].on_device = true;
  }
  Take(*transfers);
}

void DeviceWorld::SwapOut() {
  const std::vector<SequenceId> ids = SomeSequences(3);
  const uint64_t before = cache_->Fingerprint();
  const auto transfers = cache_->SwapOut(ids);
  if (!transfers.ok()) {
    if (cache_->Fingerprint() != before) Fail("a refused swap left a trace");
    return Accepted(transfers.status());
  }
  for (SequenceId id : ids) {
    sequences_[id.value()].on_device = false;
    Note(absl::StrCat("swap out ", id.value() & 0xFFFFFFFF));
  }
  Take(*transfers);
}

void DeviceWorld::WriteBack() {
  const auto transfers = cache_->WriteBack(BlockCount(Random(4)));
  if (!transfers.ok()) return Fail(transfers.status().ToString());
  Take(*transfers);
}

// Whether some K/V of the sequence is on the device alone.
bool DeviceWorld::IsLost(SequenceId id) const {
  const auto groups = static_cast<uint32_t>(cache_->options().groups.size());
  for (uint32_t g = 0; g < groups; ++g) {
    const auto table = *cache_->BlockTable(id, GroupId(g));
    std::vector<BlockResidency> residency(table.size());
    cache_->ExportResidency(id, GroupId(g), absl::MakeSpan(residency))
        .status()
        .IgnoreError();
    // Blocks behind the last token, drafts and reserve, hold nothing to lose.
    const auto tokens =
        static_cast<uint32_t>(sequences_.at(id.value()).tokens.size());
    for (uint32_t i = 0; i < table.size(); ++i) {
      if (table[i] == kNoBlock || i * BlockTokens(g) >= tokens) continue;
      if (!residency[i].host_valid) return true;
    }
  }
  return false;
}

void DeviceWorld::LoseDevice() {
  if (moves_.empty() == false && cache_->LoseDevice().status().code() !=
                                     absl::StatusCode::kFailedPrecondition) {
    return Fail("the device was lost under a transfer");
  }
  // Steps that have run wrote what is lost now; the others never will.
  for (Flight& flight : flights_) ForceExport(&flight);
  while (violation_.empty() && !moves_.empty()) {
    const bool good = Random(2) > 0 && MayMove(moves_[0].transfer);
    FinishMove(0, good);
  }
  if (!violation_.empty()) return;
  std::vector<SequenceId> expected;
  for (const auto& [id, sequence] : sequences_) {
    if (IsLost(SequenceId(id))) expected.push_back(SequenceId(id));
  }
  auto loss = cache_->LoseDevice();
  if (!loss.ok()) return Fail(loss.status().ToString());
  Note(absl::StrCat("lose the device: ", loss->sequences.size(), " sequences, ",
                    loss->blocks.value(), " blocks"));
  ++counts_.resets;
  counts_.lost_sequences += expected.size();
  std::sort(loss->sequences.begin(), loss->sequences.end());
  if (loss->sequences != expected) {
    return Fail(absl::StrCat(loss->sequences.size(),
                             " sequences are named as lost, ", expected.size(),
                             " have lost K/V"));
  }
  for (Memory::value_type& pool : device_) {
    std::fill(pool.begin(), pool.end(), kPoison);
  }
  for (Flight& flight : flights_) {
    for (Part& part : flight.parts) {
      part.freed |=
          std::binary_search(expected.begin(), expected.end(), part.id);
      part.gone |=
          std::count(flight.device.begin(), flight.device.end(), part.id) > 0;
      if (part.gone && !part.freed) {
        return Fail("a step on the device outlives it");
      }
    }
  }
  for (SequenceId id : expected) sequences_.erase(id.value());
  counts_.kept_sequences += sequences_.size();
  for (auto& [id, sequence] : sequences_) sequence.on_device = false;
  for (const DevicePoolStats& pool : cache_->Stats().device_pools) {
    if (pool.free + pool.quarantined != pool.capacity) {
      return Fail("pages are left on a device that was lost");
    }
  }
}

// ---- Driving and checking ----

bool DeviceWorld::Step() {
  if (!violation_.empty()) return false;
  const uint32_t kind = Random(100);
  if (kind < 9) {
    Admit();
  } else if (kind < 35) {
    Extend();
  } else if (kind < 55) {
    RetireOldest();
  } else if (kind < 57) {
    if (!flights_.empty()) RunStep(&flights_.front());
  } else if (kind < 62) {
    Free();
  } else if (kind < 66) {
    Fork();
  } else if (kind < 69) {
    Truncate();
  } else if (kind < 78) {
    SwapIn();
  } else if (kind < 82) {
    SwapOut();
  } else if (kind < 84) {
    WriteBack();
  } else if (kind < 85 && Random(4) == 0) {
    LoseDevice();
  } else {
    FinishSome();
  }
  CheckAll();
  return violation_.empty();
}

void DeviceWorld::CheckAll() {
  if (!violation_.empty()) return;
  const absl::Status status = cache_->CheckInvariants();
  if (!status.ok()) return Fail(status.ToString());
  for (const DevicePoolStats& pool : cache_->Stats().device_pools) {
    if (pool.free + pool.seated + pool.moving + pool.quarantined + pool.clean +
            pool.dirty !=
        pool.capacity) {
      return Fail("device pages do not add up to the capacity");
    }
  }
  // What steps in flight are going to read is right all the time.
  for (const Flight& flight : flights_) {
    for (size_t i = 0; flight.exported && i < flight.parts.size(); ++i) {
      const Part& part = flight.parts[i];
      if (part.gone) continue;
      for (uint32_t g = 0; g < flight.pages.size(); ++g) {
        ReadBack(flight, g, i, Settled(part.id, g, part.first + part.tokens));
      }
    }
  }
  for (const auto& [id, sequence] : sequences_) {
    CheckSequence(SequenceId(id), sequence);
  }
}

// Of the first `run` tokens of a sequence those that no step is going to write,
// nor to copy, before it writes.
uint32_t DeviceWorld::Settled(SequenceId id, uint32_t group,
                              uint32_t run) const {
  const uint32_t bt = BlockTokens(group);
  for (const Flight& flight : flights_) {
    for (const Part& part : flight.parts) {
      if (part.id != id || flight.run) continue;
      return std::min(run, part.first / bt * bt);
    }
  }
  return run;
}

// Every number that the manager calls valid is right, in both tiers.
void DeviceWorld::CheckSequence(SequenceId id, const Sequence& sequence) {
  const auto groups = static_cast<uint32_t>(cache_->options().groups.size());
  for (uint32_t g = 0; g < groups; ++g) {
    const auto table = *cache_->BlockTable(id, GroupId(g));
    std::vector<BlockResidency> residency(table.size());
    const auto blocks =
        cache_->ExportResidency(id, GroupId(g), absl::MakeSpan(residency));
    if (!blocks.ok()) return Fail(blocks.status().ToString());
    const uint32_t bt = BlockTokens(g);
    const uint32_t settled = Settled(id, g, sequence.run);
    for (uint32_t i = 0; i < table.size(); ++i) {
      if (table[i] == kNoBlock) continue;
      const uint32_t end = std::min(settled, (i + 1) * bt);
      if (!residency[i].host_valid && !residency[i].device_valid) {
        return Fail(absl::StrCat("block ", table[i].value(), " is lost"));
      }
      if (sequence.on_device && !residency[i].seated) {
        return Fail(absl::StrCat("sequence ", id.value(), ", block ",
                                 table[i].value(), " is not seated"));
      }
      for (uint32_t p = i * bt; p < end; ++p) {
        const uint64_t expected = Content(g, sequence.tokens, p);
        const uint64_t host =
            host_[PoolOf(g)][size_t{table[i].value()} * bt + p % bt];
        if (residency[i].host_valid && host != expected) {
          return Fail(
              absl::StrCat("host page ", table[i].value(), " is wrong at ", p));
        }
        if (!residency[i].device_valid) continue;
        const uint64_t device =
            device_[PoolOf(g)][size_t{residency[i].device_page} * bt + p % bt];
        if (device != expected) {
          return Fail(absl::StrCat("device page ", residency[i].device_page,
                                   " is wrong at ", p));
        }
      }
    }
  }
}

bool DeviceWorld::Finish() {
  while (violation_.empty() && !flights_.empty()) RetireOldest();
  while (violation_.empty() && !moves_.empty()) FinishMove(0, true);
  CheckAll();
  if (!violation_.empty()) return false;
  const auto twin = ReplayOpLog(log_.contents());
  if (!twin.ok()) {
    Fail(twin.status().ToString());
  } else if ((*twin)->Fingerprint() != cache_->Fingerprint()) {
    Fail("a replay of the log gives another state");
  }
  sequences_.clear();
  cache_->FreeAll();
  const absl::Status reset = cache_->Reset();
  if (!reset.ok()) Fail(reset.ToString());
  for (const DevicePoolStats& pool : cache_->Stats().device_pools) {
    if (pool.free != pool.capacity) Fail("a device page leaked");
  }
  return violation_.empty();
}

}  // namespace paged_kv::testing

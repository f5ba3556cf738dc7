// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// An engine without a model, which notices every wrong page. Its "K/V" of a
// token is a hash of all tokens (and key extras) up to it; it is written
// through the slot mapping and read back through the page table, as a kernel
// would. Its "sampling" is a function of that hash, so that what a request
// must generate is known beforehand, however it is batched, preempted or
// shared.

#ifndef PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_FAKE_ENGINE_H_
#define PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_FAKE_ENGINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/status_macros.h"

namespace paged_kv {

inline uint64_t MixHash(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Owns what a GenerationRequest borrows.
struct TestRequest {
  RequestId id;
  std::vector<TokenId> prompt;
  uint32_t max_output_tokens = 0;
  uint32_t samples = 1;
  int32_t priority = 0;
  std::vector<TokenId> stop_tokens;
  std::string salt;  // empty: none
  bool share = true;

  // Calls f(const GenerationRequest&) and returns its result.
  template <typename F>
  auto Borrow(F f) const {
    const KeyExtra extra = Salt(salt);
    GenerationRequest request;
    request.id = id;
    request.prompt = prompt;
    request.max_output_tokens = max_output_tokens;
    request.samples = samples;
    request.priority = priority;
    request.stop_tokens = stop_tokens;
    if (!salt.empty()) request.extras = absl::MakeConstSpan(&extra, 1);
    request.share = share;
    return f(request);
  }
};

// Tokens of one sample and the hash of each prefix.
class TokenHistory {
 public:
  explicit TokenHistory(const TestRequest& request)
      : salt_hash_(std::hash<std::string>()(request.salt)) {
    for (TokenId token : request.prompt) Append(token);
  }

  void Append(TokenId token) {
    const uint64_t before = hashes_.empty() ? salt_hash_ : hashes_.back();
    tokens_.push_back(token);
    hashes_.push_back(MixHash(before, static_cast<uint64_t>(token)));
  }

  // What the model would generate next, from a vocabulary of 64.
  TokenId Next(RequestId id, uint32_t sample) const {
    return static_cast<TokenId>(
        MixHash(hashes_.back(), MixHash(id.value(), sample)) % 64);
  }

  const std::vector<TokenId>& tokens() const { return tokens_; }
  // K/V of the token at `position` in `group`.
  uint64_t Kv(size_t position, uint32_t group) const {
    return MixHash(hashes_[position], group);
  }

 private:
  uint64_t salt_hash_;
  std::vector<TokenId> tokens_;
  std::vector<uint64_t> hashes_;
};

// The history with drafts behind it, as the step that checks them sees it.
inline TokenHistory WithDrafts(TokenHistory history,
                               absl::Span<const TokenId> drafts) {
  for (TokenId draft : drafts) history.Append(draft);
  return history;
}

// Appends what an item samples to `sampled` and, as far as it counts, to the
// histories [samples] of its request.
inline void SampleItem(const WorkItem& item, absl::Span<const TokenId> drafts,
                       std::vector<TokenHistory>* histories,
                       std::vector<TokenId>* sampled) {
  if (drafts.empty()) {
    for (uint32_t k = 0; k < item.outputs; ++k) {
      const uint32_t sample = item.outputs == 1 ? item.sample : k;
      TokenHistory& history = (*histories)[sample];
      sampled->push_back(history.Next(item.request, sample));
      history.Append(sampled->back());
    }
    return;
  }
  TokenHistory& history = (*histories)[item.sample];
  TokenHistory seen = history;
  bool counts = true;
  for (size_t i = 0; i <= drafts.size(); ++i) {
    const TokenId token = seen.Next(item.request, item.sample);
    sampled->push_back(token);
    if (counts) history.Append(token);
    if (i == drafts.size()) break;
    counts = counts && token == drafts[i];
    seen.Append(drafts[i]);
  }
}

// `count` guesses of what follows, right but for those from `wrong` on.
inline std::vector<TokenId> Guess(TokenHistory history, RequestId id,
                                  uint32_t sample, size_t count, size_t wrong) {
  std::vector<TokenId> drafts;
  while (drafts.size() < count) {
    const TokenId next = history.Next(id, sample);
    drafts.push_back(drafts.size() < wrong ? next : (next + 1) % 64);
    history.Append(drafts.back());
  }
  return drafts;
}

// The output that a sample must have if nobody stops it.
inline std::vector<TokenId> ExpectedOutput(const TestRequest& request,
                                           uint32_t sample) {
  TokenHistory history(request);
  std::vector<TokenId> output;
  while (output.size() < request.max_output_tokens) {
    const TokenId token = history.Next(request.id, sample);
    output.push_back(token);
    history.Append(token);
    if (std::count(request.stop_tokens.begin(), request.stop_tokens.end(),
                   token) > 0) {
      break;
    }
  }
  return output;
}

class FakeEngine {
 public:
  // Both are borrowed.
  FakeEngine(KvCacheManager* cache, BatchScheduler* scheduler)
      : cache_(cache), scheduler_(scheduler) {
    const auto& groups = cache->options().groups;
    for (uint32_t g = 0; g < groups.size(); ++g) {
      uint32_t first = 0;
      while (
          !(PageBytes(groups[first].shape) == PageBytes(groups[g].shape) &&
            groups[first].shape.block_tokens == groups[g].shape.block_tokens)) {
        ++first;
      }
      pool_of_.push_back(first);
      pools_.emplace_back(size_t{cache->PoolBlocks(GroupId(g)).value()} *
                          groups[g].shape.block_tokens);
    }
  }

  absl::Status Submit(const TestRequest& request) {
    PAGED_KV_RETURN_IF_ERROR(request.Borrow(
        [this](const GenerationRequest& r) { return scheduler_->Submit(r); }));
    histories_[request.id] =
        std::vector<TokenHistory>(request.samples, TokenHistory(request));
    return absl::OkStatus();
  }

  // Proposes drafts of which the first `right` are, and then `wrong` are not.
  absl::Status Propose(RequestId id, uint32_t sample, size_t right,
                       size_t wrong) {
    const TokenHistory& history = histories_[id][sample];
    return scheduler_->Propose(
        id, sample, Guess(history, id, sample, right + wrong, right));
  }

  size_t in_flight() const { return launched_.size(); }

  // Schedules a step and reads its tables, as an engine does before it
  // launches it. False if there is nothing to do.
  absl::StatusOr<bool> Launch() {
    PAGED_KV_ASSIGN_OR_RETURN(const ScheduledStep step, scheduler_->Schedule());
    if (step.empty()) return false;
    Launched launched;
    launched.id = step.id;
    launched.outputs = step.outputs;
    launched.items.assign(step.items.begin(), step.items.end());
    for (const WorkItem& item : step.items) {
      launched.inputs.emplace_back(item.tokens.begin(), item.tokens.end());
      launched.drafts.emplace_back(item.drafts.begin(), item.drafts.end());
    }
    PAGED_KV_ASSIGN_OR_RETURN(const StepView view, cache_->View(step.id));
    launched.copies.assign(view.copies.begin(), view.copies.end());
    for (uint32_t g = 0; g < pool_of_.size(); ++g) {
      PAGED_KV_RETURN_IF_ERROR(Export(g, &launched));
    }
    launched_.push_back(std::move(launched));
    return true;
  }

  // Runs the oldest launched step and completes it.
  absl::Status Land() {
    Launched step = std::move(launched_.front());
    launched_.pop_front();
    for (const BlockCopy& copy : step.copies) Copy(copy);
    PAGED_KV_RETURN_IF_ERROR(Write(step));
    PAGED_KV_RETURN_IF_ERROR(Read(step));
    const std::vector<TokenId> sampled = Sample(step);
    if (sampled.size() != step.outputs) {
      return absl::InternalError(absl::StrCat(
          "step wants ", step.outputs, " outputs, its items ", sampled.size()));
    }
    return scheduler_->Complete(step.id, sampled);
  }

  // Loses all launched steps: nothing is written or sampled.
  absl::Status Crash() {
    launched_.clear();
    return scheduler_->AbandonStepsInFlight();
  }

  // Launches and lands until nothing is left, at most `max_steps` times.
  absl::Status Drain(size_t max_steps) {
    const size_t depth = scheduler_->options().max_steps_in_flight;
    for (size_t i = 0; i < max_steps; ++i) {
      bool launched = false;
      if (launched_.size() < depth) {
        PAGED_KV_ASSIGN_OR_RETURN(launched, Launch());
      }
      if (launched && launched_.size() < depth) continue;
      if (launched_.empty()) return absl::OkStatus();
      PAGED_KV_RETURN_IF_ERROR(Land());
      PAGED_KV_RETURN_IF_ERROR(cache_->CheckInvariants());
      PAGED_KV_RETURN_IF_ERROR(scheduler_->CheckInvariants());
    }
    return absl::DeadlineExceededError(
        absl::StrCat("still busy after ", max_steps, " steps"));
  }

  // Items of the newest launched step. REQUIRES: in_flight() > 0.
  const std::vector<WorkItem>& newest_items() const {
    return launched_.back().items;
  }

 private:
  struct Tables {
    std::vector<int32_t> indptr, pages, last, first;
    std::vector<int64_t> slots;
    PageTable csr;
  };
  struct Launched {
    StepId id;
    uint32_t outputs = 0;
    std::vector<WorkItem> items;
    std::vector<std::vector<TokenId>> inputs;  // known values, per item
    std::vector<std::vector<TokenId>> drafts;  // per item
    std::vector<BlockCopy> copies;
    std::vector<Tables> tables;  // per group
  };

  absl::Status Export(uint32_t g, Launched* launched) {
    PAGED_KV_ASSIGN_OR_RETURN(const PageTableSize size,
                              cache_->TableSize(launched->id, GroupId(g)));
    Tables t;
    t.indptr.resize(size.sequences + 1);
    t.pages.resize(size.pages);
    t.last.resize(size.sequences);
    t.first.resize(size.sequences);
    uint32_t rows = 0;
    for (const WorkItem& item : launched->items) {
      rows +=
          item.new_tokens.value() + static_cast<uint32_t>(item.drafts.size());
    }
    t.slots.resize(rows);
    PAGED_KV_ASSIGN_OR_RETURN(
        t.csr, cache_->ExportPageTable(
                   launched->id, GroupId(g),
                   {absl::MakeSpan(t.indptr), absl::MakeSpan(t.pages),
                    absl::MakeSpan(t.last), absl::MakeSpan(t.first)}));
    PAGED_KV_RETURN_IF_ERROR(cache_->ExportSlotMapping(
        launched->id, GroupId(g), absl::MakeSpan(t.slots)));
    launched->tables.push_back(std::move(t));
    return absl::OkStatus();
  }

  uint64_t* Block(uint32_t g, size_t block) {
    const size_t tokens = cache_->options().groups[g].shape.block_tokens;
    return pools_[pool_of_[g]].data() + block * tokens;
  }

  void Copy(const BlockCopy& copy) {
    const uint32_t g = copy.group.value();
    std::copy_n(Block(g, copy.source.value()), copy.filled_tokens,
                Block(g, copy.target.value()));
  }

  absl::Status Write(const Launched& step) {
    for (uint32_t g = 0; g < pool_of_.size(); ++g) {
      size_t row = 0;
      for (size_t i = 0; i < step.items.size(); ++i) {
        const WorkItem& item = step.items[i];
        const TokenHistory history = HistoryOf(step, i);
        const size_t first = item.first_new.value();
        const size_t rows = item.new_tokens.value() + step.drafts[i].size();
        for (size_t j = 0; j < rows; ++j) {
          if (first + j >= history.tokens().size()) {
            return Wrong(item, "computes a token that nobody sampled");
          }
          if (j < step.inputs[i].size() &&
              step.inputs[i][j] != history.tokens()[first + j]) {
            return Wrong(item, "reads a wrong token");
          }
          const size_t slot = static_cast<size_t>(step.tables[g].slots[row++]);
          pools_[pool_of_[g]][slot] = history.Kv(first + j, g);
        }
      }
    }
    return absl::OkStatus();
  }

  // Every token that the page tables show must be the sequence's own.
  absl::Status Read(const Launched& step) {
    for (uint32_t g = 0; g < pool_of_.size(); ++g) {
      const PageTable& table = step.tables[g].csr;
      for (size_t i = 0; i < step.items.size(); ++i) {
        const WorkItem& item = step.items[i];
        const TokenHistory history = HistoryOf(step, i);
        const size_t end = item.first_new.value() + item.new_tokens.value() +
                           step.drafts[i].size();
        if (table.SequenceTokens(i) != static_cast<int64_t>(end)) {
          return Wrong(item, "has a page table of another length");
        }
        for (int32_t p = table.indptr[i]; p < table.indptr[i + 1]; ++p) {
          PAGED_KV_RETURN_IF_ERROR(ReadPage(g, table, i, static_cast<size_t>(p),
                                            end, item, history));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadPage(uint32_t g, const PageTable& table, size_t i, size_t p,
                        size_t end, const WorkItem& item,
                        const TokenHistory& history) {
    const size_t tokens = static_cast<size_t>(table.block_tokens);
    const size_t place = p - static_cast<size_t>(table.indptr[i]);
    size_t position = place * tokens;
    if (table.first_token[i] > 0 &&
        place >= static_cast<size_t>(table.sink_pages)) {
      position = static_cast<size_t>(table.first_token[i]) +
                 (place - static_cast<size_t>(table.sink_pages)) * tokens;
    }
    const uint64_t* block =
        Block(g, static_cast<size_t>(table.page_indices[p]));
    for (size_t j = 0; j < tokens && position + j < end; ++j) {
      if (block[j] != history.Kv(position + j, g)) {
        return Wrong(item, absl::StrCat("sees foreign K/V at position ",
                                        position + j, " of group ", g));
      }
    }
    return absl::OkStatus();
  }

  std::vector<TokenId> Sample(const Launched& step) {
    std::vector<TokenId> sampled;
    for (size_t i = 0; i < step.items.size(); ++i) {
      const WorkItem& item = step.items[i];
      SampleItem(item, step.drafts[i], &histories_[item.request], &sampled);
    }
    return sampled;
  }

  // Of an item, its drafts included.
  TokenHistory HistoryOf(const Launched& step, size_t i) {
    const WorkItem& item = step.items[i];
    return WithDrafts(histories_[item.request][item.sample], step.drafts[i]);
  }

  static absl::Status Wrong(const WorkItem& item, const std::string& what) {
    return absl::InternalError(
        absl::StrCat("request ", item.request.value(), " sample ", item.sample,
                     ", ", item.new_tokens.value(), " tokens from ",
                     item.first_new.value(), ": ", what));
  }

  KvCacheManager* const cache_;
  BatchScheduler* const scheduler_;
  std::vector<uint32_t> pool_of_;             // per group: index in pools_
  std::vector<std::vector<uint64_t>> pools_;  // K/V of every slot
  std::map<RequestId, std::vector<TokenHistory>> histories_;
  std::deque<Launched> launched_;
};

}  // namespace paged_kv

#endif  // PAGED_KV_TESTS_PAGED_KV_BATCH_SCHEDULER_FAKE_ENGINE_H_

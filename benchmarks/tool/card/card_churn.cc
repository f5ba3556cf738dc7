// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_churn.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "attention/kv_pages.h"
#include "benchmarks/tool/card/card_units.h"
#include "benchmarks/tool/card/lifo_shadow.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/workload.h"
#include "fpga_dma/decode/card_decode.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/operation_tracker.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr GroupId kGroup(0);
constexpr char kConversationTrace[] = "AzureLLMInferenceTrace_conv_2023.csv";
constexpr uint32_t kMaxSequences = 4096;
constexpr uint32_t kWorkloadRequests = 4000;
// Counting what a step reads takes longer than the step.
constexpr uint64_t kStepsPerReading = 4;
constexpr uint64_t kStepsPerCheck = 4096;
constexpr double kEven = 1.05;

class ChurnRun {
 public:
  ChurnRun(fpga_dma::Device* device, const CardCase& card_case,
           const Trace& trace, const CardChurnOptions& options)
      : device_(device),
        case_(card_case),
        trace_(trace),
        options_(options),
        random_(options.seed) {}

  absl::StatusOr<CardChurn> Run(Progress& progress) {
    PAGED_KV_RETURN_IF_ERROR(Setup());
    progress.Start("churn, requests");
    while (next_ < trace_.requests.size() || !running_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(AdmitAll());
      PAGED_KV_RETURN_IF_ERROR(Step());
      progress.Update(next_, trace_.requests.size());
    }
    progress.Clear();
    if (result_.requests == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no request of ", trace_.short_name(), " fits ", options_.pages,
          " pages of ", case_.shape.block_tokens, " tokens"));
    }
    PAGED_KV_RETURN_IF_ERROR(manager_->CheckInvariants());
    return result_;
  }

 private:
  struct Sequence {
    SequenceId id;
    uint32_t tokens = 0;
    uint32_t final_tokens = 0;
    std::vector<BlockId> blocks;  // as the shadow knows them
  };

  absl::Status Setup() {
    PAGED_KV_ASSIGN_OR_RETURN(
        const DecodeUnits units,
        FindDecodeUnits(device_->info(), case_.shape.kv_heads));
    if (options_.pages == 0 || options_.pages % units.splits != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(options_.pages, " pages on a card with ", units.splits,
                       " splits; must be a multiple"));
    }
    result_.trace = trace_.format == TraceFormat::kGenerated
                        ? trace_.name
                        : trace_.short_name();
    result_.pages = options_.pages;
    result_.stripes = units.stripes;
    result_.splits = units.splits;
    result_.page_bytes = PageBytes(case_.shape).value() / units.stripes;
    // Layers lie in a page one after the other: one is as good as all.
    BlockShape shape = case_.shape;
    shape.layers = 1;
    PAGED_KV_RETURN_IF_ERROR(MakeManager(shape, units.splits));
    fpga_dma::DevicePoolOptions pool;
    pool.shape = shape;
    pool.num_pages = options_.pages;
    pool.stripes = units.stripes;
    pool.splits = units.splits;
    pool.banks = units.banks;
    PAGED_KV_ASSIGN_OR_RETURN(pool_,
                              fpga_dma::DevicePool::Create(device_, pool));
    tracker_ = std::make_unique<fpga_dma::OperationTracker>(
        device_, fpga_dma::OperationLimits{});
    attention::KvPages host;
    host.shape = shape;
    PAGED_KV_ASSIGN_OR_RETURN(host.layout, manager_->Layout(kGroup));
    host.num_pages = manager_->PoolBlocks(kGroup).value();
    fpga_dma::CardDecodeOptions decode;
    decode.query_heads = case_.query_heads;
    PAGED_KV_ASSIGN_OR_RETURN(
        decode_, fpga_dma::CardDecode::Create(tracker_.get(), pool_.get(), host,
                                              decode));
    shadow_ = std::make_unique<LifoShadow>(options_.pages, units.splits);
    result_.kv_read.assign(pool_->num_slabs(), 0);
    return absl::OkStatus();
  }

  absl::Status MakeManager(const BlockShape& shape, uint32_t splits) {
    const uint32_t longest = trace_.max_total_tokens() + shape.block_tokens;
    KvCacheOptions options;
    LayerGroup group;
    group.shape = shape;
    options.groups = {group};
    // A sequence that waits for the card is already in host memory.
    options.host_blocks =
        BlockCount(options_.pages + longest / shape.block_tokens + 1);
    options.max_sequences = kMaxSequences;
    options.max_tokens_per_sequence = longest;
    options.device.pages = BlockCount(options_.pages);
    options.device.splits = splits;
    options.prefix_caching = false;
    options.memory = MemoryMode::kOwnMemory;  // touched by nobody
    options.hash_seed = options_.seed + 1;
    PAGED_KV_ASSIGN_OR_RETURN(manager_, KvCacheManager::Create(options));
    headroom_ = BlockCount(options_.pages / splits / 20);
    return absl::OkStatus();
  }

  // Until the first that has to wait.
  absl::Status AdmitAll() {
    const std::vector<Request>& requests = trace_.requests;
    while (next_ < requests.size() && running_.size() + 2 <= kMaxSequences) {
      PAGED_KV_ASSIGN_OR_RETURN(const bool joined, Admit(requests[next_]));
      if (!joined) break;
      ++next_;
    }
    return absl::OkStatus();
  }

  // False: not now. A request that never fits is left out.
  absl::StatusOr<bool> Admit(const Request& request) {
    prompt_.resize(request.prompt_tokens);
    const absl::StatusOr<Admission> admission = manager_->Allocate(prompt_);
    if (admission.status().code() == absl::StatusCode::kOutOfRange) return true;
    if (absl::IsResourceExhausted(admission.status())) return false;
    PAGED_KV_RETURN_IF_ERROR(admission.status());
    PAGED_KV_RETURN_IF_ERROR(manager_->Retire(admission->step));
    const SequenceId id = admission->id;
    const absl::Status room =
        manager_->CheckSwapIn(absl::MakeConstSpan(&id, 1), headroom_);
    if (!room.ok()) {
      PAGED_KV_RETURN_IF_ERROR(manager_->Free(id));
      if (absl::IsOutOfRange(room)) return true;
      return absl::IsResourceExhausted(room) ? absl::StatusOr<bool>(false)
                                             : room;
    }
    PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const TierTransfer> transfers,
                              manager_->SwapIn(absl::MakeConstSpan(&id, 1)));
    for (const TierTransfer& transfer : transfers) {
      PAGED_KV_RETURN_IF_ERROR(manager_->FinishTransfer(transfer.id, true));
    }
    PAGED_KV_RETURN_IF_ERROR(Join(id, request));
    ++result_.requests;
    if (random_.Below(1000) < options_.forked * 1000) {
      PAGED_KV_ASSIGN_OR_RETURN(const SequenceId fork, manager_->Fork(id));
      PAGED_KV_RETURN_IF_ERROR(Join(fork, request));
      ++result_.forks;
    }
    return true;
  }

  absl::Status Join(SequenceId id, const Request& request) {
    Sequence sequence;
    sequence.id = id;
    sequence.tokens = request.prompt_tokens;
    sequence.final_tokens = request.total_tokens();
    PAGED_KV_RETURN_IF_ERROR(Follow(&sequence));
    running_.push_back(std::move(sequence));
    return absl::OkStatus();
  }

  // Tells the shadow which blocks the sequence has got and given up.
  absl::Status Follow(Sequence* sequence) {
    PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const BlockId> table,
                              manager_->BlockTable(sequence->id, kGroup));
    std::vector<BlockId>& known = sequence->blocks;
    for (size_t i = 0; i < table.size(); ++i) {
      if (i < known.size() && known[i] == table[i]) continue;
      shadow_->Hold(table[i], static_cast<uint32_t>(i));
      if (i < known.size()) {
        shadow_->Drop(known[i]);
        known[i] = table[i];
      } else {
        known.push_back(table[i]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Leave(size_t index) {
    for (size_t i = running_[index].blocks.size(); i-- > 0;) {
      shadow_->Drop(running_[index].blocks[i]);
    }
    PAGED_KV_RETURN_IF_ERROR(manager_->Free(running_[index].id));
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    return absl::OkStatus();
  }

  // A token for everybody; who finds no page gives up.
  absl::Status Step() {
    if (running_.empty()) return absl::OkStatus();
    std::vector<StepRequest> requests;
    for (const Sequence& sequence : running_) {
      requests.push_back(StepRequest::Extend(sequence.id, TokenCount(1)));
    }
    std::vector<absl::Status> outcomes(requests.size());
    PAGED_KV_ASSIGN_OR_RETURN(
        StepPlan plan,
        manager_->PlanFitting(requests, absl::MakeSpan(outcomes)));
    PAGED_KV_ASSIGN_OR_RETURN(const StepId step,
                              manager_->Commit(std::move(plan)));
    PAGED_KV_ASSIGN_OR_RETURN(const StepView view, manager_->View(step));
    result_.copies += view.copies.size();
    for (size_t i = 0; i < running_.size(); ++i) {
      if (!outcomes[i].ok()) continue;
      ++running_[i].tokens;
      PAGED_KV_RETURN_IF_ERROR(Follow(&running_[i]));
    }
    PAGED_KV_RETURN_IF_ERROR(manager_->Retire(step));
    PAGED_KV_RETURN_IF_ERROR(Measure());
    ++result_.steps;
    for (size_t i = running_.size(); i-- > 0;) {
      const bool refused = !outcomes[i].ok();
      if (!refused && running_[i].tokens < running_[i].final_tokens) continue;
      result_.preempted += refused ? 1 : 0;
      PAGED_KV_RETURN_IF_ERROR(Leave(i));
    }
    return Check();
  }

  // The shadow has as many free pages as the manager, so it saw every change.
  absl::Status Check() {
    const size_t free = manager_->Stats().device_pools[0].free.value();
    if (free != shadow_->num_free()) {
      return absl::InternalError(absl::StrCat(
          "the manager has ", free, " free pages on the card, its shadow ",
          shadow_->num_free()));
    }
    return result_.steps % kStepsPerCheck == 0 ? manager_->CheckInvariants()
                                               : absl::OkStatus();
  }

  absl::Status Measure() {
    const bool read = result_.steps % kStepsPerReading == 0;
    fpga_dma::DecodeBlocks step;
    step.indptr = {0};
    for (const Sequence& sequence : running_) {
      where_.resize(sequence.blocks.size());
      PAGED_KV_RETURN_IF_ERROR(
          manager_->ExportResidency(sequence.id, kGroup, absl::MakeSpan(where_))
              .status());
      CountExtents(sequence);
      if (!read) continue;
      for (size_t i = 0; i < where_.size(); ++i) {
        step.device_pages.push_back(where_[i].device_page);
        step.host_pages.push_back(sequence.blocks[i].value());
      }
      const uint32_t block_tokens = case_.shape.block_tokens;
      step.last_page_tokens.push_back(
          static_cast<int32_t>((sequence.tokens - 1) % block_tokens) + 1);
      step.indptr.push_back(static_cast<int32_t>(step.host_pages.size()));
    }
    return read ? CountReads(step) : absl::OkStatus();
  }

  void CountExtents(const Sequence& sequence) {
    const size_t splits = result_.splits;
    for (size_t i = 0; i < where_.size(); ++i) {
      ++result_.pages_held;
      const bool first = i < splits;
      if (first ||
          where_[i].device_page != where_[i - splits].device_page + 1) {
        ++result_.extents;
      }
      if (first || shadow_->PageOf(sequence.blocks[i]) !=
                       shadow_->PageOf(sequence.blocks[i - splits]) + 1) {
        ++result_.lifo_extents;
      }
    }
  }

  absl::Status CountReads(const fpga_dma::DecodeBlocks& step) {
    PAGED_KV_RETURN_IF_ERROR(decode_->BeginStep(step));
    const std::vector<uint64_t> read = decode_->traffic().kv_read;
    for (size_t i = 0; i < read.size(); ++i) {
      result_.kv_read[i] += read[i] * case_.shape.layers;
    }
    const uint64_t least = *std::min_element(read.begin(), read.end());
    const uint64_t most = *std::max_element(read.begin(), read.end());
    ++result_.read_steps;
    if (static_cast<double>(most) <= kEven * static_cast<double>(least)) {
      ++result_.even_steps;
    }
    return absl::OkStatus();
  }

  fpga_dma::Device* const device_;
  const CardCase& case_;
  const Trace& trace_;
  const CardChurnOptions& options_;
  Random random_;
  CardChurn result_;

  std::unique_ptr<KvCacheManager> manager_;
  std::unique_ptr<fpga_dma::DevicePool> pool_;
  std::unique_ptr<fpga_dma::OperationTracker> tracker_;
  std::unique_ptr<fpga_dma::CardDecode> decode_;
  std::unique_ptr<LifoShadow> shadow_;
  BlockCount headroom_{0};
  size_t next_ = 0;  // of the trace's requests
  std::vector<Sequence> running_;
  std::vector<TokenId> prompt_;
  std::vector<BlockResidency> where_;
};

double PerDescriptor(const CardChurn& churn, uint64_t extents) {
  return extents == 0 ? 0.0
                      : static_cast<double>(churn.pages_held) *
                            static_cast<double>(churn.page_bytes) /
                            static_cast<double>(extents);
}

}  // namespace

double CardChurn::BytesPerDescriptor() const {
  return PerDescriptor(*this, extents);
}

double CardChurn::LifoBytesPerDescriptor() const {
  return PerDescriptor(*this, lifo_extents);
}

double CardChurn::DescriptorGain() const {
  return extents == 0
             ? 0.0
             : static_cast<double>(lifo_extents) / static_cast<double>(extents);
}

double CardChurn::BankSpread() const {
  if (kv_read.empty()) return 0.0;
  const auto [least, most] =
      std::minmax_element(kv_read.begin(), kv_read.end());
  return *least == 0
             ? 0.0
             : static_cast<double>(*most) / static_cast<double>(*least) - 1.0;
}

absl::StatusOr<Trace> ChurnTrace(const std::string& path, uint64_t seed) {
  if (!path.empty()) return ReadTrace(path, {});
  const char* shared = std::getenv("PAGED_KV_SHARED_DIR");
  const std::filesystem::path place =
      std::filesystem::path(shared == nullptr ? "../shared" : shared) /
      "traces" / kConversationTrace;
  std::error_code error;
  if (std::filesystem::is_regular_file(place, error)) {
    return ReadTrace(place.string(), {});
  }
  WorkloadOptions workload;
  workload.profile = WorkloadProfile::kAzureConversation;
  workload.requests = kWorkloadRequests;
  workload.seed = seed;
  Trace trace = GenerateWorkload(workload);
  trace.name = absl::StrCat("made up, for there is no ", place.string());
  return trace;
}

absl::StatusOr<CardChurn> RunCardChurn(fpga_dma::Device* device,
                                       const CardCase& card_case,
                                       const Trace& trace,
                                       const CardChurnOptions& options,
                                       Progress& progress) {
  return ChurnRun(device, card_case, trace, options).Run(progress);
}

}  // namespace paged_kv::tool

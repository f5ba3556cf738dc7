// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_BATCH_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_BATCH_H_

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "attention/append_kv.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "benchmarks/tool/card/card_case.h"
#include "benchmarks/tool/progress.h"
#include "fpga_dma/decode/card_decode.h"
#include "fpga_dma/device.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/transfers/transfer_queue.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv::tool {

// How the prompts' K/V got to the card while the host computed.
struct HandOff {
  absl::Duration prefill;      // of the prompts, on the host
  absl::Duration upload_busy;  // of the busiest channel
  absl::Duration exposed;      // after the prefill, until all had arrived
  uint64_t bytes = 0;
  // Share of the upload's time that the prefill hid; 1 if nothing was uploaded.
  double Hidden() const;
};

// One token of each sequence.
struct CardStep {
  absl::Duration time;  // of attention, all layers, on the device's clock
  std::vector<fpga_dma::DecodeEvent> events;
  fpga_dma::DecodeTraffic traffic;
  // Largest difference to the host's kernel over all pages in host memory.
  double max_error = 0;
};

// A batch of sequences in a KvCacheManager with a device tier: prefill on the
// host, which hands whole blocks over to the card, and decode steps by both.
class CardBatch {
 public:
  // `device` outlives it. InvalidArgument for a case that the device's kernels
  // do not take; FailedPrecondition without compute units of paged_decode;
  // ResourceExhausted if the card is too small.
  static absl::StatusOr<std::unique_ptr<CardBatch>> Create(
      fpga_dma::Device* device, const CardCase& card_case);

  // Once, before the steps.
  absl::StatusOr<HandOff> Prefill(Progress& progress);
  // `mode`: none but kAuto.
  absl::StatusOr<CardStep> Step(CardMode mode);

  const fpga_dma::DevicePool& pool() const { return *pool_; }

 private:
  CardBatch(fpga_dma::Device* device, const CardCase& card_case);
  absl::Status Setup();
  absl::Status MakeManager(uint32_t splits, uint32_t device_pages);

  // Rows of `tokens` tokens, normally distributed.
  attention::KvRows RandomRows();
  // Starts to upload what the card should have and has not.
  absl::Status StartUploads();
  absl::Status SubmitLayers(fpga_dma::LayerRange layers);
  absl::Status TakeArrived();
  absl::StatusOr<fpga_dma::DecodeBlocks> Blocks(CardMode mode) const;
  absl::Status AttendLayer(uint32_t layer, absl::Span<const float> q,
                           CardStep* step);
  absl::Status CheckLayer(uint32_t layer, absl::Span<const float> q,
                          absl::Span<const float> out, double* max_error);

  fpga_dma::Device* const device_;
  const CardCase case_;
  std::mt19937_64 random_;
  std::vector<float> normals_;
  attention::ThreadPool threads_;

  std::unique_ptr<KvCacheManager> manager_;
  attention::KvPages host_;
  std::unique_ptr<fpga_dma::OperationTracker> tracker_;
  std::unique_ptr<fpga_dma::DevicePool> pool_;
  std::unique_ptr<fpga_dma::TransferQueue> queue_;
  std::unique_ptr<fpga_dma::CardDecode> decode_;

  std::vector<SequenceId> ids_;
  uint32_t tokens_ = 0;  // of each
  // Pages on their way, and how many of their layers are not yet there.
  struct Upload {
    TransferId id;
    fpga_dma::PageTransfer transfer;
    uint32_t layers_left = 0;
    bool failed = false;
  };
  std::vector<Upload> uploads_;
  absl::flat_hash_map<fpga_dma::TransferListId, uint32_t> lists_;  // layers
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_BATCH_H_

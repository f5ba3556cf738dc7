// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_DECODE_CARD_DECODE_H_
#define PAGED_KV_FPGA_DMA_DECODE_CARD_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "attention/attention_arrays.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "fpga_dma/decode/page_stream.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/owned_slab.h"

namespace paged_kv::fpga_dma {

inline constexpr char kDecodeKernel[] = "paged_decode";

// In place of a device page, for a block that is in host memory: the host
// attends to it, or it is sent to the card for every layer.
inline constexpr uint32_t kNoDevicePage = 0xFFFFFFFFu;
inline constexpr uint32_t kStreamedPage = 0xFFFFFFFEu;

// The blocks of a step's sequences, in order, and where each is. One that is on
// the device is read there, whether it is in host memory or not. A streamed one
// is sent ahead of its layer, so no token of this step is in it.
struct DecodeBlocks {
  std::vector<int32_t> indptr;            // [num_sequences + 1]
  std::vector<uint32_t> device_pages;     // [blocks], or one of the above
  std::vector<uint32_t> host_pages;       // [blocks], of those without
  std::vector<int32_t> last_page_tokens;  // [num_sequences]

  size_t num_sequences() const { return last_page_tokens.size(); }
};

struct CardDecodeOptions {
  // -- Affects behaviour --

  uint32_t query_heads = 0;  // a multiple of the KV heads, up to 8 times
  float scale = 0;           // 0: 1 / sqrt(head_dim)
  uint32_t max_attempts = 4;
  // Reads the outputs twice and compares: the card gives no checksum of them.
  bool verify_outputs = true;

  // -- Affects speed --

  // The rate at which the host reads or packs its K/V, told to modelled devices
  // (Device::HostWorks); 0: as if it took no time.
  double host_bytes_per_second = 0;
};

// What one layer of a step moves, bytes.
struct DecodeTraffic {
  std::vector<uint64_t> kv_read;  // by the card, K and V; [slabs of the pool]
  uint64_t kv_on_host = 0;        // K and V that the host attends to
  uint64_t streamed = 0;          // pages sent for the layer
  uint64_t inputs = 0;            // lists, tables and queries
  uint64_t outputs = 0;           // with their status words
  uint32_t launches = 0;
};

// What happened when, for plots.
struct DecodeEvent {
  std::string what;  // "upload", "kernel", "download", "host", "stream"
  uint32_t layer = 0;
  absl::Time start;
  absl::Time finish;
};

// Decode attention over pages on a card and pages in host memory at once. Per
// layer one packed upload (work lists, page tables, queries), one launch per
// stripe and split, and one packed download; meanwhile the host attends to the
// blocks that are not on the card, and the parts are merged by log-sum-exp,
// which is exact (attention::MergePartials). All blocks on the card, some, or
// none: resident, hybrid and host decoding are one. Streamed blocks take a
// launch more, on what PageStream has sent while the layer before was read; it
// runs while the first outputs and the pages themselves are read back, and
// counts once the pages are known to be right.
//
// The upload is read back with the outputs and compared, so that what the
// kernels saw is what was sent. Pages are copied for nobody: those of the step
// are neither written nor moved until Attend() returns.
//
// Thread safety: thread-compatible.
class CardDecode {
 public:
  // `tracker`, `pool` and the memory of `host` outlive it. InvalidArgument for
  // pages that the kernel does not take (bf16, K in tiles, head_dim 8, 16, 32,
  // 64 or 128, no v_head_dim of its own) or query heads that do not fit;
  // FailedPrecondition if a slab of the pool is reached by no unit of
  // paged_decode, or their other ports are not all in one bank.
  static absl::StatusOr<std::unique_ptr<CardDecode>> Create(
      OperationTracker* tracker, const DevicePool* pool,
      const attention::KvPages& host, const CardDecodeOptions& options);
  ~CardDecode() = default;
  CardDecode(const CardDecode&) = delete;
  CardDecode& operator=(const CardDecode&) = delete;

  // Keeps a copy of the blocks: what the caller changes afterwards is of the
  // next step. InvalidArgument, with the numbers, for arrays that do not fit
  // each other; OutOfRange for pages that are not there.
  absl::Status BeginStep(const DecodeBlocks& blocks);

  // One query per sequence, its last token, to all its tokens. `q` is rounded
  // to bf16 where the card reads it. outputs.lse may be empty.
  //
  // A step with streamed blocks takes its layers in order, from 0, and may
  // repeat the last one; FailedPrecondition otherwise.
  // InvalidArgument for sizes that are not the step's; DataLoss if nothing
  // arrives as it was sent, or the card was reset since the step began: it has
  // no pages then, and whatever is asked of this step fails. Else the device's
  // last error. On error nothing was written.
  absl::Status Attend(uint32_t layer,
                      absl::Span<const float> q,  // [sequences, heads, dim]
                      const attention::AttentionOutputs& outputs,
                      attention::ParallelFor& parallel);

  // Of each layer of the step.
  DecodeTraffic traffic() const;
  // What happened since the last call.
  std::vector<DecodeEvent> TakeEvents();

 private:
  // What one compute unit does in a layer: with pages of the pool or streamed
  // ones.
  struct Launch {
    uint32_t slab = 0;  // of the pool, or the streamed one beside it
    bool streamed = false;
    uint64_t work_offset = 0;  // in the slab of the step
    uint64_t status_offset = 0;
    uint32_t items = 0;
  };
  // Blocks of one sequence in one split of the card.
  struct Run {
    uint32_t sequence = 0;
    uint32_t split = 0;
    bool streamed = false;
    uint32_t table_begin = 0;
    uint32_t tokens = 0;
  };
  // The host pages that are sent in a step.
  struct StreamedPages {
    uint32_t all = 0;
    uint32_t dealt = 0;                           // so far
    std::vector<std::vector<uint32_t>> of_split;  // [splits]
  };
  // Places in the slab of a step, bytes. From `early` on lie the outputs of
  // blocks on the card, if there are streamed ones as well: they are read a
  // first time while the units are at work on these.
  struct Layout {
    uint64_t table = 0, queries = 0, status = 0, out = 0, early = 0, end = 0;
  };

  CardDecode(OperationTracker* tracker, const DevicePool* pool,
             const attention::KvPages& host, const CardDecodeOptions& options);
  absl::Status Setup();
  absl::Status CheckBlocks(const DecodeBlocks& blocks) const;
  void MakeRuns(const DecodeBlocks& blocks, uint32_t sequence,
                StreamedPages* streamed);
  absl::Status MakeRoom();
  void LayOut();
  bool Serves(const Launch& launch, const Run& run) const;
  uint32_t num_parts() const;  // of the card; the host's is one more

  void WriteInputs(uint32_t layer, absl::Span<const float> q);
  absl::Status AttendOnCard(uint32_t layer, absl::Span<const float> q,
                            const attention::AttentionOutputs& host_part,
                            attention::ParallelFor& parallel, bool* host_done);
  absl::Status StartUnits(uint32_t layer, bool streamed);
  // Until all pages of a layer are there, or known to be right as well.
  absl::Status AwaitStream(uint32_t layer, bool verified);
  absl::Status Finish(OpId op, absl::string_view what, uint32_t layer);
  uint32_t Checksum(uint64_t begin, uint64_t end) const;  // of the image
  absl::Status Read(uint64_t begin, uint64_t end, uint32_t layer);
  absl::Status CheckStatusWords() const;
  absl::Status CheckGeneration() const;
  absl::Status AttendOnHost(uint32_t layer, absl::Span<const float> q,
                            const attention::AttentionOutputs& part,
                            attention::ParallelFor& parallel);
  // Writes the parts of the splits to `out` and `lse`, [splits, rows, ...].
  void TakeOutputs(std::vector<float>* out, std::vector<float>* lse) const;

  uint32_t group() const;
  uint64_t OutBeatsOfItem() const;
  std::vector<KernelArgument> Arguments(const Launch& launch,
                                        uint32_t layer) const;

  OperationTracker* const tracker_;
  const DevicePool* const pool_;
  const attention::KvPages host_;
  const CardDecodeOptions options_;
  BankId bank_ = kNoBank;        // of all ports but `kv`
  std::vector<uint32_t> units_;  // of the device, [pool slabs]
  PageStream stream_;
  uint64_t generation_ = 0;  // of the card, as the step began
  uint32_t next_layer_ = 0;  // of a step with streamed blocks

  std::vector<Launch> launches_;
  std::vector<Run> runs_;
  std::vector<uint32_t> table_;
  size_t sequences_ = 0;
  // Of the blocks that are not on the card.
  std::vector<int32_t> host_indptr_, host_indices_, host_last_, host_first_;
  uint64_t host_tokens_ = 0;

  OwnedSlab slab_;
  uint64_t slab_bytes_ = 0;
  absl::Span<std::byte> image_;
  Layout at_;
  std::vector<OpId> launched_;
  uint32_t tag_ = 0;
  std::vector<DecodeEvent> events_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_DECODE_CARD_DECODE_H_

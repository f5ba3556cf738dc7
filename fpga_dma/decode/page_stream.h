// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_DECODE_PAGE_STREAM_H_
#define PAGED_KV_FPGA_DMA_DECODE_PAGE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "attention/kv_pages.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/device_types.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/owned_slab.h"

namespace paged_kv::fpga_dma {

struct PageStreamOptions {
  uint32_t max_attempts = 4;
  // What a descriptor holds up that a step waits for; more per descriptor means
  // fewer of them.
  uint64_t max_chunk_bytes = uint64_t{512} << 10;
  // The rate at which the host packs, told to modelled devices; 0: as if it
  // took no time.
  double host_bytes_per_second = 0;
};

// Sends pages of host memory to the card one layer at a time, for a step that
// reads more than the card holds. Beside each slab of the pool lies one, in the
// same bank, with two halves: a layer is read from one while the next arrives
// in the other.
//
//   half of (stripe, split):  | page 0 of the split | page 1 | ...
//   a page:                   the stripe's heads of one layer, as in the pool
//
// Every chunk is read back and compared. Up and down go at the same time, one
// chunk per channel, so what waits at a channel for something more urgent is at
// most a chunk.
//
// Thread safety: thread-compatible. Host pages of a step do not change until
// its last layer is verified.
class PageStream {
 public:
  // All outlive it, as does the memory of `host`.
  PageStream(OperationTracker* tracker, const DevicePool* pool,
             const attention::KvPages& host, const PageStreamOptions& options);
  // Waits for what is under way.
  ~PageStream();
  PageStream(const PageStream&) = delete;
  PageStream& operator=(const PageStream&) = delete;

  // The next step: `pages[split]` are its host pages, in the order in which
  // kernels find them. Makes room; ResourceExhausted if a bank has none.
  absl::Status BeginStep(std::vector<std::vector<uint32_t>> pages);
  bool empty() const { return layer_bytes_ == 0; }

  // Starts to send a layer. REQUIRES: layer - 2 is verified, and nobody reads
  // it any more.
  void Send(uint32_t layer);
  // What a step waits for that is not a page.
  enum class Urgent { kNothing, kUpload, kDownload };
  // Starts what can be started, takes what has ended. Does not wait. From a
  // step's downloads to its next upload one channel up is left free, since a
  // chunk that has begun holds up what comes behind it; while something is to
  // come down nothing else is read back.
  void Advance(Urgent urgent = Urgent::kNothing);
  // Whether all of a layer is on the card, as far as the card says.
  bool Arrived(uint32_t layer) const;
  // Whether all of it was read back and is what was sent.
  bool Verified(uint32_t layer) const;
  // Chunks of a layer that had arrived and were not what was sent, so that they
  // are sent again. What was read of a layer before it was verified counts if
  // there were none meanwhile.
  uint32_t Spoiled(uint32_t layer) const { return spoiled_[layer]; }
  // Why a layer will not arrive, or OK.
  const absl::Status& status() const { return status_; }

  // Where a layer lies in the slab beside pool slab `index`.
  KernelArgument Address(uint32_t index, uint32_t layer) const;
  uint32_t Pages(uint32_t split) const {
    return static_cast<uint32_t>(pages_[split].size());
  }
  // K, V and padding of one layer.
  uint64_t layer_bytes() const { return layer_bytes_; }

  // A chunk's way up.
  struct Event {
    uint32_t layer = 0;
    absl::Time start;
    absl::Time finish;
  };
  // Those since the last call.
  std::vector<Event> TakeEvents();

 private:
  struct Chunk {
    uint32_t layer = 0;
    uint32_t slab = 0;
    uint32_t first = 0;  // of the split's pages
    uint32_t count = 0;
    uint32_t attempts = 0;
    bool packed = false;
    uint32_t checksum = 0;
  };
  struct UnderWay {
    Chunk chunk;
    OpId op;
    bool verifies = false;
  };

  // Drops what waits and waits for what is under way.
  void GiveUp();
  SlabRange Range(const Chunk& chunk) const;
  uint64_t HalfBytes(uint32_t slab) const;
  void Pack(Chunk* chunk);
  void PackNext();
  void StartNext(std::deque<Chunk>* waiting, bool verifies,
                 uint32_t first_channel);
  void TakeEnded();
  void Settle(const UnderWay& ended, const absl::Status& status);

  OperationTracker* const tracker_;
  const DevicePool* const pool_;
  const attention::KvPages host_;
  const PageStreamOptions options_;
  std::vector<OwnedSlab> slabs_;               // [pool slabs]
  std::vector<absl::Span<std::byte>> images_;  // [pool slabs]
  std::vector<std::vector<uint32_t>> pages_;   // [splits][pages]
  uint64_t layer_bytes_ = 0;
  std::deque<Chunk> to_send_, to_verify_;
  std::vector<UnderWay> under_way_;
  // Chunks that have not arrived, are not verified, were sent again; [layers].
  std::vector<uint32_t> absent_, unverified_, spoiled_;
  std::vector<bool> sent_;  // [layers]
  absl::Status status_;
  std::vector<Event> events_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_DECODE_PAGE_STREAM_H_

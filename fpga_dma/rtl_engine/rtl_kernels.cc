// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One more build of paged_decode.cpp, whose stage Gather is the one below.

#include "fpga_dma/rtl_engine/rtl_kernels.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/dataflow.h"
#include "fpga_dma/kernels/decode_back.h"
#include "fpga_dma/kernels/decode_front.h"
#include "fpga_dma/kernels/kernel_entry_points.h"
#include "fpga_dma/rtl_engine/rtl_gather.h"

namespace paged_kv::fpga_dma {
namespace {

// What the stage has to know of its launch, beside what the stages tell it.
struct LaunchState {
  PortTiming timing;
  RtlWork work;
  absl::Status status;
  // Of the run in progress: paged_decode may run one launch as several.
  const Beat* list = nullptr;
  uint32_t num_pages = 0;
  uint32_t page_stride_beats = 0;
  uint32_t slice_beats = 0;
};
thread_local LaunchState* launch_state = nullptr;

// Tiles that one launch of kv_gather serves.
struct GatherBatch {
  uint32_t slice_beat = 0;
  std::vector<uint32_t> pages;
  struct Tile {
    GatherCommand command;
    size_t entry;  // of `pages`
  };
  std::vector<Tile> tiles;
};

Beat ToBeat(const GatheredBeat& bytes) {
  Beat beat;
  std::memcpy(static_cast<void*>(&beat), bytes.data(), sizeof(beat));
  return beat;
}

// Slices as they came -> the streams behind Gather.
class Distributor {
 public:
  Distributor(const GatherBatch& batch, uint32_t slice_beats, uint64_t stride,
              const std::vector<GatheredBeat>& beats)
      : batch_(batch),
        slice_beats_(slice_beats),
        stride_(stride),
        beats_(beats) {}

  // A beat of a tile, by its place in the pool.
  Beat At(const GatherBatch::Tile& tile, uint64_t pool_beat) const {
    const uint64_t slice =
        batch_.pages[tile.entry] * stride_ + batch_.slice_beat;
    const uint64_t place = tile.entry * slice_beats_ + (pool_beat - slice);
    // Missing after an error of the RTL, which ends the launch.
    return place < beats_.size() ? ToBeat(beats_[place]) : Beat(0);
  }

 private:
  const GatherBatch& batch_;
  const uint64_t slice_beats_;
  const uint64_t stride_;
  const std::vector<GatheredBeat>& beats_;
};

void RunBatch(const Beat* kv, const DecodeGeometry& geometry,
              const GatherBatch& batch, hls::stream<Beat>& k_beats,
              hls::stream<TileScales>& scales, hls::stream<Beat>& v_beats) {
  if (batch.tiles.empty()) return;
  LaunchState& state = *launch_state;
  const uint64_t pool_bytes =
      uint64_t{state.num_pages} * state.page_stride_beats * kBeatBytes;
  GatherJob job;
  job.pool = {reinterpret_cast<const std::byte*>(kv), pool_bytes};
  job.num_pages = state.num_pages;
  job.page_stride_beats = state.page_stride_beats;
  job.slice_beat = batch.slice_beat;
  job.slice_beats = state.slice_beats;
  job.pages = batch.pages;
  std::vector<GatheredBeat> beats;
  const absl::Status status =
      RunRtlGather(job, state.timing, &beats, &state.work.cycles);
  ++state.work.launches;
  state.work.beats += beats.size();
  const size_t expected = batch.pages.size() * state.slice_beats;
  if (!status.ok()) {
    state.status.Update(absl::InternalError(status.message()));
  } else if (beats.size() != expected) {
    state.status.Update(absl::InternalError(absl::StrCat(
        "kv_gather streamed ", beats.size(), " beats, not ", expected)));
  }
  const Distributor from(batch, state.slice_beats, state.page_stride_beats,
                         beats);
  for (const GatherBatch::Tile& tile : batch.tiles) {
    if (geometry.int8) {
      TileScales tile_scales;
      tile_scales.k = from.At(tile, tile.command.k_scale_beat);
      tile_scales.v = from.At(tile, tile.command.v_scale_beat);
      scales.write(tile_scales);
    }
    for (uint32_t i = 0; i < geometry.tile_beats; ++i) {
      k_beats.write(from.At(tile, tile.command.k_beat + i));
      v_beats.write(from.At(tile, tile.command.v_beat + i));
    }
  }
}

// In the place of Gather. Streams have no bound in this build, so the order of
// K and V among each other does not matter.
void RtlGatherStage(const Beat* kv, const DecodeGeometry& geometry,
                    hls::stream<GatherCommand>& tiles,
                    hls::stream<TileCommand>& score_tiles,
                    hls::stream<Beat>& k_beats, hls::stream<TileScales>& scales,
                    hls::stream<Beat>& v_beats) {
  const LaunchState& state = *launch_state;
  GatherBatch batch;
  uint32_t item = 0;
  uint64_t previous_beat = 0;
  for (;;) {
    const GatherCommand command = tiles.read();
    score_tiles.write(command.tile);
    if (command.tile.stop) break;
    if (command.tile.first) {
      ++item;  // the header is beat 0 of the list
      const uint32_t slice_beat = ToDecodeItem(state.list[item]).slice_beat;
      if (slice_beat != batch.slice_beat) {
        RunBatch(kv, geometry, batch, k_beats, scales, v_beats);
        batch = {slice_beat, {}, {}};
      }
    }
    const auto page =
        static_cast<uint32_t>(command.k_beat / state.page_stride_beats);
    // Tiles of one page come in their order; the same page again is an entry
    // of its own.
    if (command.tile.first || batch.pages.empty() ||
        page != batch.pages.back() || command.k_beat <= previous_beat) {
      batch.pages.push_back(page);
    }
    previous_beat = command.k_beat;
    batch.tiles.push_back({command, batch.pages.size() - 1});
  }
  RunBatch(kv, geometry, batch, k_beats, scales, v_beats);
  // The stage that this one replaces is not called.
  static_cast<void>(&Gather);
}

}  // namespace
}  // namespace paged_kv::fpga_dma

#define Gather RtlGatherStage
#define paged_decode paged_decode_behind_rtl
#include "fpga_dma/kernels/paged_decode.cpp"  // NOLINT(bugprone-suspicious-include)
#undef paged_decode
#undef Gather

namespace paged_kv::fpga_dma {
namespace {

PagedDecodeFunction EnterPagedDecode;
void EnterPagedDecode(const Beat* kv, const Beat* work, const uint32_t* table,
                      const Beat* queries, Beat* out, Beat* status,
                      uint32_t max_items, uint32_t table_entries,
                      uint32_t query_beats, uint32_t out_beats,
                      uint32_t num_pages, uint32_t page_stride_beats,
                      uint32_t element, uint32_t head_dim, uint32_t group_heads,
                      uint32_t block_tokens) {
  launch_state->list = work;
  launch_state->num_pages = num_pages;
  launch_state->page_stride_beats = page_stride_beats;
  launch_state->slice_beats =
      SliceBeats(block_tokens, head_dim, static_cast<KvElement>(element));
  paged_decode_behind_rtl(kv, work, table, queries, out, status, max_items,
                          table_entries, query_beats, out_beats, num_pages,
                          page_stride_beats, element, head_dim, group_heads,
                          block_tokens);
}

}  // namespace

absl::Status RunRtlPagedDecode(absl::Span<const BoundArgument> arguments,
                               const PortTiming& timing, RtlWork* work) {
  const KernelEntryPoints entry_points = {EnterPagedDecode, kv_append, kv_copy,
                                          kv_scatter};
  LaunchState state;
  state.timing = timing;
  launch_state = &state;
  const absl::Status status =
      RunKernel(entry_points, KernelId::kPagedDecode, arguments);
  launch_state = nullptr;
  *work = state.work;
  return status.ok() ? state.status : status;
}

}  // namespace paged_kv::fpga_dma

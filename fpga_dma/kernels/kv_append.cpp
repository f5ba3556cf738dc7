// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a step's new K and V rows, which arrive packed, into slots of pages;
// kernel_abi.h describes the arguments. A row of K is spread over all beats of
// its tile, 4 bytes in each, so a tile is read, changed and written: 2 bursts
// of 64 beats for head_dim 128, which overlap with those of other tiles.

#include "fpga_dma/kernels/append_tiles.h"
#include "fpga_dma/kernels/dataflow.h"

namespace paged_kv::fpga_dma {
namespace {

struct AppendLimits {
  uint32_t source_beats;
  uint32_t num_pages;
  uint32_t page_stride_beats;
};
struct AppendCommand {
  bool stop = false;
  LaunchResult result;  // of the launch, if `stop`
  uint32_t index = 0;
  AppendItem item;
};
AppendGeometry ToAppendGeometry(KvElement element, uint32_t head_dim,
                                uint32_t block_tokens) {
  AppendGeometry geometry;
  geometry.block_tokens = block_tokens;
  geometry.int8 = element == KvElement::kInt8;
  geometry.row_words = head_dim * KvElementBytes(element) / 4;
  geometry.tile_beats = TileBeats(head_dim, element);
  geometry.row_beats = RowBeats(head_dim, element);
  geometry.token_beats = AppendTokenBeats(head_dim, element);
  geometry.half_beats = SliceBeats(block_tokens, head_dim, element) / 2;
  geometry.slots_per_beat = geometry.row_words < kWordsPerBeat
                                ? kWordsPerBeat / geometry.row_words
                                : 1;
  return geometry;
}

AppendItem ToAppendItem(const Beat& beat) {
#pragma HLS inline
  AppendItem item = {};
  item.page = Word(beat, 0);
  item.first_slot = Word(beat, 1);
  item.num_tokens = Word(beat, 2);
  item.slice_beat = Word(beat, 3);
  item.num_slices = Word(beat, 4);
  item.slice_stride_beats = Word(beat, 5);
  item.source_beat = Word(beat, 6);
  return item;
}

KernelError CheckItem(const AppendItem& item, const AppendLimits& limits,
                      AppendGeometry geometry, uint64_t* detail) {
  *detail = 0;
  if (item.num_tokens == 0 || item.num_slices == 0) {
    return KernelError::kZeroLength;
  }
  *detail = uint64_t{item.first_slot} + item.num_tokens;
  if (*detail > geometry.block_tokens) return KernelError::kSlotRange;
  *detail = item.page;
  if (item.page >= limits.num_pages) return KernelError::kPageIndex;
  const uint64_t slice_beats = 2 * uint64_t{geometry.half_beats};
  // Slices lie apart, so there cannot be more than a page holds.
  *detail = item.slice_stride_beats;
  if (item.num_slices > 1 && *detail < slice_beats) {
    return KernelError::kSliceRange;
  }
  *detail = item.slice_beat +
            uint64_t{item.num_slices - 1} * item.slice_stride_beats +
            slice_beats;
  if (*detail > limits.page_stride_beats) return KernelError::kSliceRange;
  *detail = item.source_beat +
            uint64_t{item.num_slices} * item.num_tokens * geometry.token_beats;
  if (*detail > limits.source_beats) return KernelError::kSourceRange;
  return KernelError::kOk;
}

void ReadItems(const Beat* work, uint32_t num_items, AppendLimits limits,
               AppendGeometry geometry, hls::stream<AppendCommand>& items) {
  AppendCommand stop;
  stop.stop = true;
  stop.result.item = num_items;
  for (uint32_t i = 0; i < num_items; ++i) {
#pragma HLS pipeline II = 2
    AppendCommand command;
    command.index = i;
    command.item = ToAppendItem(work[1 + uint64_t{i}]);
    uint64_t detail = 0;
    const KernelError error =
        CheckItem(command.item, limits, geometry, &detail);
    if (error != KernelError::kOk) {
      stop.result = {error, i, detail};
      break;
    }
    items.write(command);
  }
  items.write(stop);
}

void PlanTiles(AppendLimits limits, AppendGeometry geometry,
               hls::stream<AppendCommand>& items,
               hls::stream<TileAppend>& tiles) {
  const uint32_t data_beats =
      geometry.block_tokens / kTileSlots * geometry.tile_beats;
  TileAppend stop;
  stop.stop = true;
  for (;;) {
    const AppendCommand command = items.read();
    if (command.stop) {
      stop.result = command.result;
      break;
    }
    const AppendItem& item = command.item;
    const uint32_t end_slot = item.first_slot + item.num_tokens;
    uint64_t slice =
        uint64_t{item.page} * limits.page_stride_beats + item.slice_beat;
    uint64_t source = item.source_beat;
    for (uint32_t i = 0; i < item.num_slices; ++i) {
      uint32_t slot = item.first_slot;
      while (slot < end_slot) {
#pragma HLS pipeline II = 4
        const uint32_t tile = slot / kTileSlots;
        const uint32_t tile_end = (tile + 1) * kTileSlots;
        const uint32_t end = end_slot < tile_end ? end_slot : tile_end;
        TileAppend out;
        out.item = command.index;
        out.begin = slot % kTileSlots;
        out.end = out.begin + (end - slot);
        out.keep_k = out.begin != 0;
        out.keep_v = out.begin % geometry.slots_per_beat != 0;
        out.k_beat = slice + uint64_t{tile} * geometry.tile_beats;
        out.k_scale_beat = slice + data_beats + tile;
        out.v_scale_beat = out.k_scale_beat + geometry.half_beats;
        const uint32_t first_v = slot * geometry.row_words / kWordsPerBeat;
        const uint32_t end_v =
            (end * geometry.row_words + kWordsPerBeat - 1) / kWordsPerBeat;
        out.v_beat = slice + geometry.half_beats + first_v;
        out.v_beats = end_v - first_v;
        out.source_beat = source;
        tiles.write(out);
        source += uint64_t{end - slot} * geometry.token_beats;
        slot = end;
      }
      slice += item.slice_stride_beats;
    }
  }
  tiles.write(stop);
}

void ReadRows(const Beat* rows, AppendGeometry geometry,
              hls::stream<TileAppend>& tiles,
              hls::stream<TileAppend>& read_tiles,
              hls::stream<Beat>& row_beats) {
  for (;;) {
    const TileAppend tile = tiles.read();
    read_tiles.write(tile);
    if (tile.stop) break;
    ReadRun(rows, tile.source_beat,
            (tile.end - tile.begin) * geometry.token_beats, row_beats);
  }
}

// What is kept of the old contents: a tile of K, its scales and those of V,
// then a beat of V.
void ReadOld(const Beat* kv, AppendGeometry geometry,
             hls::stream<TileAppend>& tiles,
             hls::stream<TileAppend>& read_tiles,
             hls::stream<Beat>& old_beats) {
  for (;;) {
    const TileAppend tile = tiles.read();
    read_tiles.write(tile);
    if (tile.stop) break;
    if (tile.keep_k) {
      ReadRun(kv, tile.k_beat, geometry.tile_beats, old_beats);
      if (geometry.int8) {
        ReadRun(kv, tile.k_scale_beat, 1, old_beats);
        ReadRun(kv, tile.v_scale_beat, 1, old_beats);
      }
    }
    if (tile.keep_v) ReadRun(kv, tile.v_beat, 1, old_beats);
  }
}

void AppendStages(const Beat* kv_in, Beat* kv_out, const Beat* work,
                  const Beat* rows, uint32_t num_items, AppendLimits limits,
                  AppendGeometry geometry, LaunchResult* result) {
#pragma HLS dataflow
  PAGED_KV_STREAM(AppendCommand, items, 4);
  PAGED_KV_STREAM(TileAppend, tiles, 8);
  PAGED_KV_STREAM(TileAppend, row_tiles, 8);
  PAGED_KV_STREAM(TileAppend, old_tiles, 8);
  PAGED_KV_STREAM(Beat, row_beats, 128);
  PAGED_KV_STREAM(Beat, old_beats, 128);
  PAGED_KV_STREAM(RunCommand, runs, 4);
  PAGED_KV_STREAM(Beat, new_beats, 128);
  PAGED_KV_STAGES_BEGIN;
  PAGED_KV_STAGE(ReadItems(work, num_items, limits, geometry, items));
  PAGED_KV_STAGE(PlanTiles(limits, geometry, items, tiles));
  PAGED_KV_STAGE(ReadRows(rows, geometry, tiles, row_tiles, row_beats));
  PAGED_KV_STAGE(ReadOld(kv_in, geometry, row_tiles, old_tiles, old_beats));
  PAGED_KV_STAGE(MergeTiles(geometry, old_tiles, row_beats, old_beats, runs,
                            new_beats, result));
  PAGED_KV_STAGE(WriteRuns(kv_out, runs, new_beats));
  PAGED_KV_STAGES_END;
}

}  // namespace
}  // namespace paged_kv::fpga_dma

extern "C" void kv_append(const paged_kv::fpga_dma::Beat* kv_in,
                          paged_kv::fpga_dma::Beat* kv_out,
                          const paged_kv::fpga_dma::Beat* work,
                          const paged_kv::fpga_dma::Beat* rows,
                          paged_kv::fpga_dma::Beat* status, uint32_t max_items,
                          uint32_t source_beats, uint32_t num_pages,
                          uint32_t page_stride_beats, uint32_t element,
                          uint32_t head_dim, uint32_t block_tokens) {
#pragma HLS interface m_axi port = kv_in bundle = gmem_kv_in offset = \
    slave max_read_burst_length = 64 num_read_outstanding = 32
#pragma HLS interface m_axi port = kv_out bundle = gmem_kv_out offset = \
    slave max_write_burst_length = 64 num_write_outstanding = 32
#pragma HLS interface m_axi port = work bundle = gmem_work offset = \
    slave max_read_burst_length = 64
#pragma HLS interface m_axi port = rows bundle = gmem_rows offset = \
    slave max_read_burst_length = 64 num_read_outstanding = 32
#pragma HLS interface m_axi port = status bundle = gmem_status offset = slave
#pragma HLS interface ap_ctrl_chain port = return
  namespace dma = paged_kv::fpga_dma;
  dma::Launch launch =
      dma::BeginLaunch(work, status, dma::KernelId::kKvAppend, max_items);
  if (!launch.refused && launch.result.code == dma::KernelError::kOk) {
    if (!dma::GoodGeometry(element, head_dim, block_tokens,
                           &launch.result.detail)) {
      launch.result.code = dma::KernelError::kBadGeometry;
    } else {
      const dma::AppendLimits limits = {source_beats, num_pages,
                                        page_stride_beats};
      const dma::AppendGeometry geometry = dma::ToAppendGeometry(
          static_cast<dma::KvElement>(element), head_dim, block_tokens);
      dma::AppendStages(kv_in, kv_out, work, rows, launch.num_items, limits,
                        geometry, &launch.result);
    }
  }
  dma::EndLaunch(launch, status);
}

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages of paged_decode that read memory. Every address is checked here.
// Device code; included by paged_decode.cpp alone.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_DECODE_FRONT_H_
#define PAGED_KV_FPGA_DMA_KERNELS_DECODE_FRONT_H_

#include <hls_stream.h>

#include "fpga_dma/kernels/beat_runs.h"
#include "fpga_dma/kernels/decode_commands.h"
#include "fpga_dma/kernels/kernel_arithmetic.h"

namespace paged_kv::fpga_dma {

static DecodeItem ToDecodeItem(const Beat& beat) {
#pragma HLS inline
  DecodeItem item = {};
  item.table_begin = Word(beat, 0);
  item.table_step = Word(beat, 1);
  item.first_slot = Word(beat, 2);
  item.num_tokens = Word(beat, 3);
  item.slice_beat = Word(beat, 4);
  item.query_beat = Word(beat, 5);
  item.out_beat = Word(beat, 6);
  item.lse_beat = Word(beat, 7);
  item.scale = FloatOfBits(Word(beat, 8));
  return item;
}

// Beats of K and its scales in a slice, and so of V.
static uint32_t HalfSliceBeats(const DecodeGeometry& geometry) {
#pragma HLS inline
  const uint32_t scale_beats = geometry.int8 ? 1 : 0;
  return geometry.block_tokens / kTileSlots *
         (geometry.tile_beats + scale_beats);
}

// What is wrong with an item, apart from the page indices, which PlanTiles
// checks. Sets `num_pages` and, on an error, `detail`.
static KernelError CheckItem(const DecodeItem& item, const DecodeLimits& limits,
                             const DecodeGeometry& geometry,
                             uint32_t* num_pages, uint64_t* detail) {
  *detail = 0;
  if (item.num_tokens == 0 || item.table_step == 0) {
    return KernelError::kZeroLength;
  }
  *detail = item.first_slot;
  if (item.first_slot >= geometry.block_tokens) return KernelError::kSlotRange;
  const uint64_t end_slot = uint64_t{item.first_slot} + item.num_tokens;
  *num_pages =
      static_cast<uint32_t>((end_slot - 1) / geometry.block_tokens + 1);
  *detail = item.table_begin + uint64_t{*num_pages - 1} * item.table_step;
  if (*detail >= limits.table_entries) return KernelError::kTableRange;
  *detail = uint64_t{item.slice_beat} + 2 * HalfSliceBeats(geometry);
  if (*detail > limits.page_stride_beats) return KernelError::kSliceRange;
  *detail = uint64_t{item.query_beat} +
            geometry.group_heads * RowBeats(geometry.head_dim);
  if (*detail > limits.query_beats) return KernelError::kQueryRange;
  *detail = uint64_t{item.out_beat} +
            geometry.group_heads * OutRowBeats(geometry.head_dim);
  if (*detail > limits.out_beats) return KernelError::kOutRange;
  *detail = uint64_t{item.lse_beat} + 1;
  if (*detail > limits.out_beats) return KernelError::kOutRange;
  const uint32_t scale_bits = BitsOfFloat(item.scale);
  *detail = scale_bits;
  if (ExponentField(scale_bits) == kNoExponent) return KernelError::kBadScale;
  return KernelError::kOk;
}

// The work list, up to its first bad item.
static void ReadItems(const Beat* work, uint32_t num_items, DecodeLimits limits,
                      DecodeGeometry geometry,
                      hls::stream<ItemCommand>& items) {
  ItemCommand stop;
  stop.stop = true;
  stop.result.item = num_items;
  for (uint32_t i = 0; i < num_items; ++i) {
#pragma HLS pipeline II = 4
    ItemCommand command;
    command.index = i;
    command.item = ToDecodeItem(work[1 + uint64_t{i}]);
    uint64_t detail = 0;
    const KernelError error =
        CheckItem(command.item, limits, geometry, &command.num_pages, &detail);
    if (error != KernelError::kOk) {
      stop.result.code = error;
      stop.result.item = i;
      stop.result.detail = detail;
      break;
    }
    items.write(command);
  }
  items.write(stop);
}

// The page indices of each item, after it.
static void ReadTable(const uint32_t* table, hls::stream<ItemCommand>& items,
                      hls::stream<ItemCommand>& checked_items,
                      hls::stream<uint32_t>& page_indices) {
  for (;;) {
    const ItemCommand command = items.read();
    checked_items.write(command);
    if (command.stop) break;
    uint64_t entry = command.item.table_begin;
    for (uint32_t page = 0; page < command.num_pages; ++page) {
#pragma HLS pipeline II = 1
      page_indices.write(table[entry]);
      entry += command.item.table_step;
    }
  }
}

// Splits items into tiles. A page index out of range ends the launch: what is
// left of the list is read and dropped, so that no stage before this one waits.
static void PlanTiles(DecodeLimits limits, DecodeGeometry geometry,
                      hls::stream<ItemCommand>& items,
                      hls::stream<uint32_t>& page_indices,
                      hls::stream<QueryCommand>& query_commands,
                      hls::stream<GatherCommand>& tiles, LaunchResult* result) {
  const uint32_t data_beats =
      geometry.block_tokens / kTileSlots * geometry.tile_beats;
  const uint32_t half_beats = HalfSliceBeats(geometry);
  bool failed = false;
  for (;;) {
    const ItemCommand command = items.read();
    if (command.stop) {
      if (!failed) *result = command.result;
      break;
    }
    uint32_t slot = command.item.first_slot;
    uint32_t left = command.item.num_tokens;
    bool first = true;
    for (uint32_t page = 0; page < command.num_pages; ++page) {
      const uint32_t index = page_indices.read();
      if (failed) continue;
      if (index >= limits.num_pages) {
        failed = true;
        result->code = KernelError::kPageIndex;
        result->item = command.index;
        result->detail = index;
        continue;
      }
      if (first) {
        QueryCommand query;
        query.query_beat = command.item.query_beat;
        query_commands.write(query);
      }
      const uint64_t slice_beat =
          uint64_t{index} * limits.page_stride_beats + command.item.slice_beat;
      const uint32_t room = geometry.block_tokens - slot;
      const uint32_t end = slot + (left < room ? left : room);
      for (uint32_t tile = slot / kTileSlots; tile * kTileSlots < end; ++tile) {
#pragma HLS pipeline II = 2
        const uint32_t tile_slot = tile * kTileSlots;
        GatherCommand out;
        out.k_beat = slice_beat + uint64_t{tile} * geometry.tile_beats;
        out.v_beat = out.k_beat + half_beats;
        out.k_scale_beat = slice_beat + data_beats + tile;
        out.v_scale_beat = out.k_scale_beat + half_beats;
        out.tile.first = first;
        out.tile.begin = slot - tile_slot;
        out.tile.end = (end - tile_slot < kTileSlots) ? end - tile_slot
                                                      : uint32_t{kTileSlots};
        left -= out.tile.end - out.tile.begin;
        slot = tile_slot + out.tile.end;
        out.tile.last = left == 0;
        out.tile.scale = ZeroBelow(command.item.scale * kLog2E, -60);
        out.tile.out_beat = command.item.out_beat;
        out.tile.lse_beat = command.item.lse_beat;
        tiles.write(out);
        first = false;
      }
      slot = 0;
    }
  }
  GatherCommand stop;
  stop.tile.stop = true;
  tiles.write(stop);
  QueryCommand query_stop;
  query_stop.stop = true;
  query_commands.write(query_stop);
}

static void LoadQueries(const Beat* queries, DecodeGeometry geometry,
                        hls::stream<QueryCommand>& commands,
                        hls::stream<Beat>& query_beats) {
  const uint32_t beats = geometry.group_heads * RowBeats(geometry.head_dim);
  for (;;) {
    const QueryCommand command = commands.read();
    if (command.stop) break;
    for (uint32_t i = 0; i < beats; ++i) {
#pragma HLS pipeline II = 1
      query_beats.write(queries[uint64_t{command.query_beat} + i]);
    }
  }
}

// Reads K one tile ahead of V: K0 K1 V0 K2 V1 ... Values cannot begin with a
// tile before Scores has seen all of its K, so V before K would fill the FIFO
// of V and stop everything. Being one tile ahead hides the time that scores and
// weights take. Both scales of a tile are needed for its weights, so they come
// with K; that they are bursts of a beat costs nothing, since of int8 the port
// waits for Scores and Values.
static void Gather(const Beat* kv, DecodeGeometry geometry,
                   hls::stream<GatherCommand>& tiles,
                   hls::stream<TileCommand>& score_tiles,
                   hls::stream<Beat>& k_beats, hls::stream<TileScales>& scales,
                   hls::stream<Beat>& v_beats) {
  bool pending = false;
  uint64_t pending_v_beat = 0;
  for (;;) {
    const GatherCommand command = tiles.read();
    score_tiles.write(command.tile);
    if (!command.tile.stop) {
      if (geometry.int8) {
        TileScales tile_scales;
        tile_scales.k = kv[command.k_scale_beat];
        tile_scales.v = kv[command.v_scale_beat];
        scales.write(tile_scales);
      }
      ReadRun(kv, command.k_beat, geometry.tile_beats, k_beats);
    }
    if (pending) ReadRun(kv, pending_v_beat, geometry.tile_beats, v_beats);
    if (command.tile.stop) break;
    pending = true;
    pending_v_beat = command.v_beat;
  }
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_DECODE_FRONT_H_

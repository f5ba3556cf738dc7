// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The stage of kv_append that puts new rows into tiles. Device code; included
// by kv_append.cpp alone.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_APPEND_TILES_H_
#define PAGED_KV_FPGA_DMA_KERNELS_APPEND_TILES_H_

#include <hls_stream.h>

#include "fpga_dma/kernels/beat_runs.h"
#include "fpga_dma/kernels/kernel_arithmetic.h"
#include "fpga_dma/kernels/work_list.h"

namespace paged_kv::fpga_dma {

struct AppendGeometry {
  uint32_t block_tokens;
  bool int8;                // else bf16
  uint32_t row_words;       // 4 bytes of a row, 1 / 16 of a tile's beats
  uint32_t tile_beats;      // TileBeats(head_dim, element)
  uint32_t row_beats;       // RowBeats(head_dim, element)
  uint32_t token_beats;     // AppendTokenBeats(head_dim, element)
  uint32_t half_beats;      // of K and its scales in a slice, and so of V
  uint32_t slots_per_beat;  // of V; 1 where a row is a beat or more
};
// The new slots [begin, end) of one tile of one slice.
struct TileAppend {
  bool stop = false;
  LaunchResult result;  // if `stop`
  uint32_t item = 0;
  bool keep_k = false;  // the tile holds slots already: change, else replace
  bool keep_v = false;  // likewise the first beat of V
  uint32_t begin = 0;
  uint32_t end = 0;
  uint64_t k_beat = 0;        // of the tile
  uint64_t k_scale_beat = 0;  // of int8
  uint64_t v_scale_beat = 0;
  uint64_t v_beat = 0;   // the first beat of V that changes
  uint32_t v_beats = 0;  // how many do
  uint64_t source_beat = 0;
};

// The rows of a tile: K as it came, V already in the beats of its slice.
struct TileRows {
  Beat k[kTileSlots][kMaxKernelHeadDim / kBf16PerBeat];
  Beat v[kTileSlots * kMaxKernelHeadDim / kBf16PerBeat];
  uint32_t k_scale[kTileSlots];  // bits
  uint32_t v_scale[kTileSlots];
};

// Places a row that is a part of a beat. The first one of a beat clears it:
// variables of a kernel hold anything at first.
static void PlaceValueRow(const Beat& row, uint32_t slot, bool first,
                          uint32_t words, TileRows* tile) {
#pragma HLS inline
  const uint32_t first_word = slot * words;
  Beat beat = 0;
  if (!first) beat = tile->v[first_word / kWordsPerBeat];
  // A fixed count, so that HLS can unroll it.
  for (uint32_t w = 0; w < kWordsPerBeat; ++w) {
    if (w >= words) continue;
    SetWord(&beat, (first_word + w) % kWordsPerBeat, Word(row, w));
  }
  tile->v[first_word / kWordsPerBeat] = beat;
}

static bool IsGoodScale(uint32_t bits) {
#pragma HLS inline
  return bits != 0 && bits < (kNoExponent << 23);  // not negative, too
}

// Reads the rows of a tile. False if a scale is not finite or not above 0;
// `bad_scale` is the first such.
static bool ReadTileRows(const TileAppend& tile, AppendGeometry geometry,
                         hls::stream<Beat>& row_beats, TileRows* rows,
                         uint32_t* bad_scale) {
  bool good = true;
  for (uint32_t t = tile.begin; t < tile.end; ++t) {
    for (uint32_t b = 0; b < geometry.row_beats; ++b) {
#pragma HLS pipeline II = 1
      rows->k[t][b] = row_beats.read();
    }
    for (uint32_t b = 0; b < geometry.row_beats; ++b) {
#pragma HLS pipeline II = 1
      const Beat row = row_beats.read();
      if (geometry.slots_per_beat == 1) {
        rows->v[t * geometry.row_beats + b] = row;
      } else {
        const bool first = t == tile.begin || t % geometry.slots_per_beat == 0;
        PlaceValueRow(row, t, first, geometry.row_words, rows);
      }
    }
    if (!geometry.int8) continue;
    const Beat scales = row_beats.read();
    rows->k_scale[t] = Word(scales, 0);
    rows->v_scale[t] = Word(scales, 1);
    for (uint32_t i = 0; i < 2; ++i) {
      if (IsGoodScale(Word(scales, i))) continue;
      if (good) *bad_scale = Word(scales, i);
      good = false;
    }
  }
  return good;
}

static void WriteKeys(const TileAppend& tile, AppendGeometry geometry,
                      const TileRows& rows, hls::stream<Beat>& old_beats,
                      hls::stream<Beat>& new_beats) {
  for (uint32_t r = 0; r < geometry.tile_beats; ++r) {
#pragma HLS pipeline II = 1
    Beat beat = 0;
    if (tile.keep_k) beat = old_beats.read();
    for (uint32_t t = 0; t < kTileSlots; ++t) {
#pragma HLS unroll
      if (t >= tile.begin && t < tile.end) {
        SetWord(&beat, t,
                Word(rows.k[t][r / kWordsPerBeat], r % kWordsPerBeat));
      }
    }
    new_beats.write(beat);
  }
}

static void WriteScales(const TileAppend& tile,
                        const uint32_t scales[kTileSlots],
                        hls::stream<Beat>& old_beats,
                        hls::stream<Beat>& new_beats) {
  Beat beat = 0;
  if (tile.keep_k) beat = old_beats.read();
  for (uint32_t t = 0; t < kTileSlots; ++t) {
#pragma HLS unroll
    if (t >= tile.begin && t < tile.end) SetWord(&beat, t, scales[t]);
  }
  new_beats.write(beat);
}

static void WriteValues(const TileAppend& tile, AppendGeometry geometry,
                        const TileRows& rows, hls::stream<Beat>& old_beats,
                        hls::stream<Beat>& new_beats) {
  const uint32_t words = geometry.row_words;
  const uint32_t first = tile.begin * words / kWordsPerBeat;
  for (uint32_t b = 0; b < tile.v_beats; ++b) {
#pragma HLS pipeline II = 1
    Beat beat = rows.v[first + b];
    if (b == 0 && tile.keep_v) {
      const Beat old = old_beats.read();
      const uint32_t begin = tile.begin * words % kWordsPerBeat;
      const uint32_t end = begin + (tile.end - tile.begin) * words;
      for (uint32_t w = 0; w < kWordsPerBeat; ++w) {
        if (w < begin || w >= end) SetWord(&beat, w, Word(old, w));
      }
    }
    new_beats.write(beat);
  }
}

static void WriteTargetRun(uint64_t beat, uint32_t beats,
                           hls::stream<RunCommand>& runs) {
#pragma HLS inline
  RunCommand run;
  run.target_beat = beat;
  run.beats = beats;
  runs.write(run);
}

// Drops what ReadOld read for a tile.
static void DropOld(const TileAppend& tile, AppendGeometry geometry,
                    hls::stream<Beat>& old_beats) {
  const uint32_t scale_beats = geometry.int8 ? 2 : 0;
  const uint32_t k_beats = tile.keep_k ? geometry.tile_beats + scale_beats : 0;
  const uint32_t beats = k_beats + (tile.keep_v ? 1 : 0);
  for (uint32_t b = 0; b < beats; ++b) {
#pragma HLS pipeline II = 1
    old_beats.read();
  }
}

// A bad scale ends the launch: what is left of the list is read and dropped, so
// that no stage before this one waits.
static void MergeTiles(AppendGeometry geometry, hls::stream<TileAppend>& tiles,
                       hls::stream<Beat>& row_beats,
                       hls::stream<Beat>& old_beats,
                       hls::stream<RunCommand>& runs,
                       hls::stream<Beat>& new_beats, LaunchResult* result) {
  bool failed = false;
  for (;;) {
    const TileAppend tile = tiles.read();
    if (tile.stop) {
      if (!failed) *result = tile.result;
      break;
    }
    TileRows rows;
#pragma HLS array_partition variable = rows.k complete dim = 1
    uint32_t bad_scale = 0;
    const bool good =
        ReadTileRows(tile, geometry, row_beats, &rows, &bad_scale);
    if (!good && !failed) {
      failed = true;
      *result = {KernelError::kBadScale, tile.item, bad_scale};
    }
    if (failed) {
      DropOld(tile, geometry, old_beats);
      continue;
    }
    WriteTargetRun(tile.k_beat, geometry.tile_beats, runs);
    WriteKeys(tile, geometry, rows, old_beats, new_beats);
    if (geometry.int8) {
      WriteTargetRun(tile.k_scale_beat, 1, runs);
      WriteScales(tile, rows.k_scale, old_beats, new_beats);
      WriteTargetRun(tile.v_scale_beat, 1, runs);
      WriteScales(tile, rows.v_scale, old_beats, new_beats);
    }
    WriteTargetRun(tile.v_beat, tile.v_beats, runs);
    WriteValues(tile, geometry, rows, old_beats, new_beats);
  }
  runs.write(StopRuns());
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_APPEND_TILES_H_

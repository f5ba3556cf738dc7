// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the stages of paged_decode tell each other. Device code.
//
//   ReadItems -> ReadTable -> PlanTiles -> Gather -> Scores -> Softmax
//                                |  |       |  |      ^  v      ^ |
//                                |  |       |  |      | tiles   | |
//                                |  +-> LoadQueries --+  v      | |
//                                v          |  +-----> Factors -+ v
//                              result       +- V beats -----> Values -> Write
//
// Every element that opens a tile carries its TileCommand along, so no stage
// has to know how many there are; a command with `stop` is the last.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_DECODE_COMMANDS_H_
#define PAGED_KV_FPGA_DMA_KERNELS_DECODE_COMMANDS_H_

#include <cstdint>

#include "fpga_dma/kernels/beat.h"
#include "fpga_dma/kernels/work_list.h"

namespace paged_kv::fpga_dma {

// Cycles that Scores and Values each take for a step, that is for two elements
// of each of 16 slots: a beat of bf16, half a beat of int8. They decide how
// many multipliers and adders HLS makes. 2 keep up with a port that delivers a
// beat of bf16 per cycle; boards with many compute units build with more.
#if !defined(PAGED_KV_BEAT_CYCLES)
#define PAGED_KV_BEAT_CYCLES 2
#endif
inline constexpr int kBeatCycles = PAGED_KV_BEAT_CYCLES;

// Elements of V of a step.
inline constexpr uint32_t kStepElements = 32;

// Sums that take turns, step by step, so that an adder's result is not needed
// before kTurns steps have passed: with an initiation interval of 2 an adder
// may take 16 cycles.
inline constexpr uint32_t kTurns = 8;

// The scalar arguments.
struct DecodeLimits {
  uint32_t table_entries;
  uint32_t query_beats;
  uint32_t out_beats;
  uint32_t num_pages;
  uint32_t page_stride_beats;
};
struct DecodeGeometry {
  uint32_t head_dim;
  uint32_t group_heads;
  uint32_t block_tokens;
  bool int8;               // else bf16
  uint32_t tile_beats;     // TileBeats(head_dim, element)
  uint32_t tile_steps;     // of Scores, and of Values
  uint32_t turns;          // min(kTurns, tile_steps)
  uint32_t head_dim_bits;  // log2(head_dim)
};
inline DecodeGeometry ToDecodeGeometry(uint32_t element, uint32_t head_dim,
                                       uint32_t group_heads,
                                       uint32_t block_tokens) {
  const KvElement kv_element = static_cast<KvElement>(element);
  DecodeGeometry geometry;
  geometry.head_dim = head_dim;
  geometry.group_heads = group_heads;
  geometry.block_tokens = block_tokens;
  geometry.int8 = kv_element == KvElement::kInt8;
  geometry.tile_beats = TileBeats(head_dim, kv_element);
  geometry.tile_steps = head_dim / 2;
  geometry.turns = geometry.tile_steps < kTurns ? geometry.tile_steps : kTurns;
  geometry.head_dim_bits = HeadDimBits(head_dim);
  return geometry;
}

struct ItemCommand {
  bool stop = false;
  LaunchResult result;  // of the launch, if `stop`
  uint32_t index = 0;
  uint32_t num_pages = 0;
  DecodeItem item;
};

// Slots [begin, end) of a tile take part.
struct TileCommand {
  bool stop = false;
  bool first = false;  // of its item
  bool last = false;
  uint32_t begin = 0;
  uint32_t end = 0;
  float scale = 0;  // of scores of bf16, to powers of 2
  uint32_t out_beat = 0;
  uint32_t lse_beat = 0;
};
struct GatherCommand {
  uint64_t k_beat = 0;  // from `kv`
  uint64_t v_beat = 0;
  uint64_t k_scale_beat = 0;  // of int8
  uint64_t v_scale_beat = 0;
  TileCommand tile;
};
// f32 [16] each.
struct TileScales {
  Beat k;
  Beat v;
};
struct QueryCommand {
  bool stop = false;
  uint32_t query_beat = 0;
};

// One turn of the sums of q * k.
struct PartialScores {
  float score[kMaxGroupHeads][kTileSlots];
};
// 0 for slots that take no part, whose scales may hold anything.
struct TileFactors {
  TileCommand tile;
  float score[kTileSlots];   // of scores, to powers of 2
  float weight[kTileSlots];  // the scale of V
};
struct TileWeights {
  TileCommand tile;
  // The running maximum, a power of 2, grew by 2^-shift.
  float shift[kMaxGroupHeads];
  float weight[kMaxGroupHeads][kTileSlots];  // times the scale of V
  float maximum[kMaxGroupHeads];             // log2
  float sum[kMaxGroupHeads];                 // of all weights so far
};
struct OutputCommand {
  bool stop = false;
  uint32_t out_beat = 0;
  uint32_t lse_beat = 0;
  float maximum[kMaxGroupHeads];
  float sum[kMaxGroupHeads];
};
// One turn of the sums of p * v of one head.
struct PartialOutput {
  float value[kStepElements];
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_DECODE_COMMANDS_H_

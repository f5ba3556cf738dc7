// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages of paged_decode that compute: attention of a group of queries to
// a stream of tiles, in one pass with a running maximum (Milakov & Gimelshein
// 2018, arXiv:1805.02867). The maximum is rounded up to a whole power of 2, so
// that correcting sums changes exponents only: exact, and free of multipliers.
// Device code; included by paged_decode.cpp alone.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_DECODE_BACK_H_
#define PAGED_KV_FPGA_DMA_KERNELS_DECODE_BACK_H_

#include <hls_stream.h>

#include "fpga_dma/kernels/decode_commands.h"
#include "fpga_dma/kernels/kernel_arithmetic.h"

namespace paged_kv::fpga_dma {

// q * k of a tile, as min(kTurns, tile_steps) sums. A step takes two dims of 16
// slots, a beat of bf16 or half a beat of int8, so 8 heads are 256
// multiply-adds in kBeatCycles cycles: 128 multipliers and 128 adders for 2
// cycles.
static void Scores(DecodeGeometry geometry, hls::stream<TileCommand>& tiles,
                   hls::stream<Beat>& query_beats, hls::stream<Beat>& k_beats,
                   hls::stream<TileCommand>& softmax_tiles,
                   hls::stream<PartialScores>& partial_scores) {
  float query[kMaxGroupHeads][kMaxKernelHeadDim] = {};
#pragma HLS array_partition variable = query complete dim = 1
#pragma HLS array_partition variable = query cyclic factor = 2 dim = 2
  PartialScores sums[kTurns] = {};
#pragma HLS array_partition variable = sums->score complete dim = 0
  for (;;) {
    const TileCommand tile = tiles.read();
    softmax_tiles.write(tile);
    if (tile.stop) break;
    if (tile.first) {
      for (uint32_t head = 0; head < geometry.group_heads; ++head) {
        for (uint32_t b = 0; b < RowBeats(geometry.head_dim); ++b) {
#pragma HLS pipeline II = 1
          const Beat beat = query_beats.read();
          for (uint32_t w = 0; w < kWordsPerBeat; ++w) {
            const uint32_t word = Word(beat, w);
            query[head][b * kBf16PerBeat + 2 * w] = Bf16(word & 0xFFFFu);
            query[head][b * kBf16PerBeat + 2 * w + 1] = Bf16(word >> 16);
          }
        }
      }
    }
    Beat beat = 0;
    for (uint32_t step = 0; step < geometry.tile_steps; ++step) {
#pragma HLS pipeline II = kBeatCycles
#pragma HLS dependence variable = sums type = inter direction = RAW distance = \
    8 true
      const bool upper = geometry.int8 && step % 2 == 1;
      if (!upper) beat = k_beats.read();
      float k0[kTileSlots];
      float k1[kTileSlots];
      for (uint32_t t = 0; t < kTileSlots; ++t) {
        const ElementPair pair = PairOf(Word(beat, t), geometry.int8, upper);
        k0[t] = pair.first;
        k1[t] = pair.second;
      }
      PartialScores& sum = sums[step % kTurns];
      // A fixed count, so that HLS can unroll it.
      for (uint32_t head = 0; head < kMaxGroupHeads; ++head) {
        if (head >= geometry.group_heads) continue;
        const float q0 = query[head][2 * step];
        const float q1 = query[head][2 * step + 1];
        float before[kTileSlots];
        for (uint32_t t = 0; t < kTileSlots; ++t) {
          before[t] = sum.score[head][t];
        }
        if (step < kTurns) {
          for (uint32_t t = 0; t < kTileSlots; ++t) before[t] = 0.0f;
        }
        for (uint32_t t = 0; t < kTileSlots; ++t) {
          sum.score[head][t] = before[t] + (q0 * k0[t] + q1 * k1[t]);
        }
      }
      if (step + geometry.turns >= geometry.tile_steps) {
        partial_scores.write(sum);
      }
    }
  }
}

// The sum of 16 values, as a tree of distances 8, 4, 2, 1.
static float SumOfSlots(const float value[kTileSlots]) {
#pragma HLS inline
  float sum[kTileSlots];
  for (uint32_t t = 0; t < kTileSlots; ++t) sum[t] = value[t];
  for (uint32_t step = kTileSlots / 2; step > 0; step /= 2) {
    for (uint32_t t = 0; t < step; ++t) sum[t] = sum[t] + sum[t + step];
  }
  return sum[0];
}

// What the scores and the weights of each slot are multiplied by. A stage of
// its own, so that Softmax does not wait for it.
static void Factors(DecodeGeometry geometry, hls::stream<TileCommand>& tiles,
                    hls::stream<TileScales>& scales,
                    hls::stream<TileFactors>& factors) {
  for (;;) {
    TileFactors out = {};
    out.tile = tiles.read();
    if (out.tile.stop) {
      factors.write(out);
      break;
    }
    TileScales read;
    read.k = 0;
    read.v = 0;
    if (geometry.int8) read = scales.read();
    for (uint32_t t = 0; t < kTileSlots; ++t) {
#pragma HLS pipeline II = 1
      const bool inside = t >= out.tile.begin && t < out.tile.end;
      const float k_scale = geometry.int8 ? KvScale(Word(read.k, t)) : 1.0f;
      const float v_scale = geometry.int8 ? KvScale(Word(read.v, t)) : 1.0f;
      const float factor = ZeroBelow(out.tile.scale * k_scale, -60);
      out.score[t] = inside ? factor : 0.0f;
      out.weight[t] = inside ? v_scale : 0.0f;
    }
    factors.write(out);
  }
}

// The weights of one head, from the finished scores of a tile. The scale of V
// is in `weight`, not in `sum`.
static void WeighHead(const TileFactors& factors, const float score[kTileSlots],
                      float* maximum, float* sum, float* shift,
                      float weight[kTileSlots]) {
#pragma HLS inline
  const TileCommand& tile = factors.tile;
  float tile_maximum = FloatOfBits(kNegativeInfinityBits);
  float scaled[kTileSlots];
  for (uint32_t t = 0; t < kTileSlots; ++t) {
    scaled[t] = ZeroBelow(score[t] * factors.score[t], -60);
    const bool inside = t >= tile.begin && t < tile.end;
    if (inside && scaled[t] > tile_maximum) tile_maximum = scaled[t];
  }
  const float before =
      tile.first ? FloatOfBits(kNegativeInfinityBits) : *maximum;
  const float rounded = RoundUp(tile_maximum);
  const float after = rounded > before ? rounded : before;
  // A score of -infinity weighs nothing, also where there is no other yet.
  const bool none = BitsOfFloat(after) == kNegativeInfinityBits;
  const float base = none ? 0.0f : after;
  for (uint32_t t = 0; t < kTileSlots; ++t) {
    const bool inside = t >= tile.begin && t < tile.end;
    const float power = inside ? scaled[t] - base : -64.0f;
    weight[t] = Exp2(power);
  }
  *shift = before - after;
  *sum = ScaleDown(tile.first ? 0.0f : *sum, *shift) + SumOfSlots(weight);
  *maximum = after;
  for (uint32_t t = 0; t < kTileSlots; ++t) {
    const bool inside = t >= tile.begin && t < tile.end;
    weight[t] = inside ? weight[t] * factors.weight[t] : 0.0f;
  }
}

// One head after the other, 16 slots of it in 16 cycles: one exponential, two
// multipliers for the scales and 7 adders for the turns serve 8 heads in the
// 128 cycles of a tile with head_dim 128.
static void Softmax(DecodeGeometry geometry, hls::stream<TileFactors>& tiles,
                    hls::stream<PartialScores>& partial_scores,
                    hls::stream<TileWeights>& weights) {
  float maximum[kMaxGroupHeads] = {};
  float sum[kMaxGroupHeads] = {};
  for (;;) {
    TileWeights out = {};
    const TileFactors factors = tiles.read();
    out.tile = factors.tile;
    if (out.tile.stop) {
      weights.write(out);
      break;
    }
    PartialScores turns[kTurns] = {};
    for (uint32_t turn = 0; turn < geometry.turns; ++turn) {
#pragma HLS pipeline II = 1
      turns[turn] = partial_scores.read();
    }
    for (uint32_t head = 0; head < geometry.group_heads; ++head) {
#pragma HLS pipeline II = 16
      float score[kTileSlots];
      for (uint32_t t = 0; t < kTileSlots; ++t) {
        float part[kTurns];
        for (uint32_t i = 0; i < kTurns; ++i) {
          part[i] = turns[i].score[head][t];
        }
        for (uint32_t step = kTurns / 2; step > 0; step /= 2) {
          for (uint32_t i = 0; i < step; ++i)
            part[i] = part[i] + part[i + step];
        }
        score[t] = part[0];
      }
      WeighHead(factors, score, &maximum[head], &sum[head], &out.shift[head],
                out.weight[head]);
      out.maximum[head] = maximum[head];
      out.sum[head] = sum[head];
    }
    weights.write(out);
  }
}

// The slot of element `e` of step `step` of a tile of V: a step is a quarter of
// a row of 128 dims, or four rows of 8. head_dim is a power of 2.
static uint32_t SlotOfValue(uint32_t step, uint32_t e, uint32_t head_dim_bits) {
#pragma HLS inline
  return (step * kStepElements + e) >> head_dim_bits;
}

// p * v, summed in turns per (head, element of a step). Again 256 multiply-adds
// in kBeatCycles cycles.
static void Values(DecodeGeometry geometry, hls::stream<TileWeights>& weights,
                   hls::stream<Beat>& v_beats,
                   hls::stream<OutputCommand>& output_commands,
                   hls::stream<PartialOutput>& partial_outputs) {
  PartialOutput sums[kMaxGroupHeads][kTurns] = {};
#pragma HLS array_partition variable = sums->value complete dim = 0
  for (;;) {
    const TileWeights in = weights.read();
    OutputCommand output = {};
    if (in.tile.stop) {
      output.stop = true;
      output_commands.write(output);
      break;
    }
    Beat beat = 0;
    for (uint32_t step = 0; step < geometry.tile_steps; ++step) {
#pragma HLS pipeline II = kBeatCycles
#pragma HLS dependence variable = sums type = inter direction = RAW distance = \
    4 true
      const bool upper = geometry.int8 && step % 2 == 1;
      if (!upper) beat = v_beats.read();
      float v[kStepElements];
      uint32_t slots[kStepElements];
      for (uint32_t w = 0; w < kWordsPerBeat; ++w) {
        const uint32_t first_word = upper ? kWordsPerBeat / 2 : 0;
        const uint32_t word = geometry.int8 ? first_word + w / 2 : w;
        const ElementPair pair =
            PairOf(Word(beat, word), geometry.int8, w % 2 == 1);
        v[2 * w] = pair.first;
        v[2 * w + 1] = pair.second;
      }
      for (uint32_t e = 0; e < kStepElements; ++e) {
        slots[e] = SlotOfValue(step, e, geometry.head_dim_bits);
        // A slot outside may hold NaN, which a weight of 0 does not hide.
        const bool inside = slots[e] >= in.tile.begin && slots[e] < in.tile.end;
        v[e] = inside ? v[e] : 0.0f;
      }
      // A fixed count, so that HLS can unroll it.
      for (uint32_t head = 0; head < kMaxGroupHeads; ++head) {
        if (head >= geometry.group_heads) continue;
        PartialOutput& sum = sums[head][step % kTurns];
        float weight[kStepElements];
        for (uint32_t e = 0; e < kStepElements; ++e) {
          weight[e] = in.weight[head][slots[e]];
        }
        if (step < kTurns) {
          const float shift = in.shift[head];
          for (uint32_t e = 0; e < kStepElements; ++e) {
            sum.value[e] = ScaleDown(sum.value[e], shift);
            if (in.tile.first) sum.value[e] = 0.0f;
          }
        }
        for (uint32_t e = 0; e < kStepElements; ++e) {
          sum.value[e] = sum.value[e] + weight[e] * v[e];
        }
      }
    }
    if (!in.tile.last) continue;
    output.out_beat = in.tile.out_beat;
    output.lse_beat = in.tile.lse_beat;
    for (uint32_t head = 0; head < kMaxGroupHeads; ++head) {
      output.maximum[head] = in.maximum[head];
      output.sum[head] = in.sum[head];
    }
    output_commands.write(output);
    for (uint32_t head = 0; head < geometry.group_heads; ++head) {
      for (uint32_t turn = 0; turn < geometry.turns; ++turn) {
#pragma HLS pipeline II = 1
        partial_outputs.write(sums[head][turn]);
      }
    }
  }
}

// Adds the turns, and within a step the rows, that belong to the same dim. The
// result is in elements [0, min(32, head_dim)) of turns [0, head_dim / 32).
static void FoldOutputs(uint32_t head_dim, PartialOutput turns[kTurns]) {
  for (uint32_t width = kStepElements / 2; width >= 8; width /= 2) {
    if (head_dim > width) continue;
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      for (uint32_t e = 0; e < width; ++e) {
        turns[turn].value[e] =
            turns[turn].value[e] + turns[turn].value[e + width];
      }
    }
  }
  const uint32_t beats_per_row =
      head_dim > kStepElements ? head_dim / kStepElements : 1;
  for (uint32_t step = kTurns / 2; step >= beats_per_row; step /= 2) {
    for (uint32_t turn = 0; turn < step; ++turn) {
      for (uint32_t e = 0; e < kStepElements; ++e) {
#pragma HLS pipeline II = 1
        turns[turn].value[e] =
            turns[turn].value[e] + turns[turn + step].value[e];
      }
    }
    if (step == 1) break;
  }
}

static void Write(Beat* out, DecodeGeometry geometry,
                  hls::stream<OutputCommand>& commands,
                  hls::stream<PartialOutput>& partial_outputs) {
  for (;;) {
    const OutputCommand command = commands.read();
    if (command.stop) break;
    Beat lse = 0;
    uint64_t target = command.out_beat;
    for (uint32_t head = 0; head < geometry.group_heads; ++head) {
      PartialOutput turns[kTurns] = {};
      for (uint32_t turn = 0; turn < geometry.turns; ++turn) {
#pragma HLS pipeline II = 1
        turns[turn] = partial_outputs.read();
      }
      FoldOutputs(geometry.head_dim, turns);
      const float inverse = 1.0f / command.sum[head];
      for (uint32_t b = 0; b < OutRowBeats(geometry.head_dim); ++b) {
        Beat beat = 0;
        for (uint32_t w = 0; w < kWordsPerBeat; ++w) {
          const uint32_t dim = b * kWordsPerBeat + w;
          const float value =
              turns[dim / kStepElements].value[dim % kStepElements] * inverse;
          if (dim < geometry.head_dim) {
            SetWord(&beat, w, OutputBits(ZeroBelow(value, -102)));
          }
        }
        out[target++] = beat;
      }
      const float log2_sum = command.maximum[head] + Log2(command.sum[head]);
      SetWord(&lse, head, OutputBits(log2_sum * kLn2));
    }
    out[command.lse_beat] = lse;
  }
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_DECODE_BACK_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of decode queries to K/V pages in the card's memory: one compute
// unit, of a stripe, works through a list of items. kernel_abi.h describes the
// arguments, decode_commands.h the stages.
//
// The port of K/V delivers a beat per cycle, K and V in turns; Scores and
// Values take two cycles per beat of bf16 (kBeatCycles), so neither waits for
// the other. Of int8 the port waits: a beat holds twice as many elements.
// docs/fpga_kernels.md counts the DSP slices.

#include "fpga_dma/kernels/dataflow.h"
#include "fpga_dma/kernels/decode_back.h"
#include "fpga_dma/kernels/decode_front.h"

namespace paged_kv::fpga_dma {

static void DecodeStages(const Beat* kv, const Beat* work,
                         const uint32_t* table, const Beat* queries, Beat* out,
                         uint32_t num_items, DecodeLimits limits,
                         DecodeGeometry geometry, LaunchResult* result) {
#pragma HLS dataflow
  PAGED_KV_STREAM(ItemCommand, items, 4);
  PAGED_KV_STREAM(ItemCommand, table_items, 4);
  PAGED_KV_STREAM(uint32_t, page_indices, 64);
  PAGED_KV_STREAM(QueryCommand, query_commands, 2);
  PAGED_KV_STREAM(GatherCommand, tiles, 8);
  PAGED_KV_STREAM(TileCommand, score_tiles, 2);
  PAGED_KV_STREAM(Beat, query_beats, 64);
  // A tile of K with head_dim 128, and half a tile of V.
  PAGED_KV_STREAM(Beat, k_beats, 64);
  PAGED_KV_STREAM(Beat, v_beats, 32);
  PAGED_KV_STREAM(TileScales, scales, 4);
  PAGED_KV_STREAM(TileCommand, softmax_tiles, 4);
  PAGED_KV_STREAM(TileFactors, factors, 2);
  PAGED_KV_STREAM(PartialScores, partial_scores, 16);
  PAGED_KV_STREAM(TileWeights, weights, 2);
  PAGED_KV_STREAM(OutputCommand, output_commands, 2);
  PAGED_KV_STREAM(PartialOutput, partial_outputs, 64);
  PAGED_KV_STAGES_BEGIN;
  PAGED_KV_STAGE(ReadItems(work, num_items, limits, geometry, items));
  PAGED_KV_STAGE(ReadTable(table, items, table_items, page_indices));
  PAGED_KV_STAGE(PlanTiles(limits, geometry, table_items, page_indices,
                           query_commands, tiles, result));
  PAGED_KV_STAGE(LoadQueries(queries, geometry, query_commands, query_beats));
  PAGED_KV_STAGE(
      Gather(kv, geometry, tiles, score_tiles, k_beats, scales, v_beats));
  PAGED_KV_STAGE(Scores(geometry, score_tiles, query_beats, k_beats,
                        softmax_tiles, partial_scores));
  PAGED_KV_STAGE(Factors(geometry, softmax_tiles, scales, factors));
  PAGED_KV_STAGE(Softmax(geometry, factors, partial_scores, weights));
  PAGED_KV_STAGE(
      Values(geometry, weights, v_beats, output_commands, partial_outputs));
  PAGED_KV_STAGE(Write(out, geometry, output_commands, partial_outputs));
  PAGED_KV_STAGES_END;
}

}  // namespace paged_kv::fpga_dma

extern "C" void paged_decode(
    const paged_kv::fpga_dma::Beat* kv, const paged_kv::fpga_dma::Beat* work,
    const uint32_t* table, const paged_kv::fpga_dma::Beat* queries,
    paged_kv::fpga_dma::Beat* out, paged_kv::fpga_dma::Beat* status,
    uint32_t max_items, uint32_t table_entries, uint32_t query_beats,
    uint32_t out_beats, uint32_t num_pages, uint32_t page_stride_beats,
    uint32_t element, uint32_t head_dim, uint32_t group_heads,
    uint32_t block_tokens) {
#pragma HLS interface m_axi port = kv bundle = gmem_kv offset = \
    slave max_read_burst_length = 64 num_read_outstanding = 32 latency = 64
#pragma HLS interface m_axi port = work bundle = gmem_work offset = \
    slave max_read_burst_length = 64
#pragma HLS interface m_axi port = table bundle = gmem_table offset = \
    slave max_read_burst_length = 16 num_read_outstanding = 32
#pragma HLS interface m_axi port = queries bundle = gmem_queries offset = \
    slave max_read_burst_length = 64
#pragma HLS interface m_axi port = out bundle = gmem_out offset = \
    slave max_write_burst_length = 64
#pragma HLS interface m_axi port = status bundle = gmem_status offset = slave
#pragma HLS interface ap_ctrl_chain port = return
  namespace dma = paged_kv::fpga_dma;
  dma::Launch launch =
      dma::BeginLaunch(work, status, dma::KernelId::kPagedDecode, max_items);
  if (!launch.refused && launch.result.code == dma::KernelError::kOk) {
    if (!dma::GoodGeometry(element, head_dim, block_tokens,
                           &launch.result.detail)) {
      launch.result.code = dma::KernelError::kBadGeometry;
    } else if (group_heads == 0 || group_heads > dma::kMaxGroupHeads) {
      launch.result.code = dma::KernelError::kBadGeometry;
      launch.result.detail = group_heads;
    } else {
      const dma::DecodeLimits limits = {table_entries, query_beats, out_beats,
                                        num_pages, page_stride_beats};
      const dma::DecodeGeometry geometry =
          dma::ToDecodeGeometry(element, head_dim, group_heads, block_tokens);
      dma::DecodeStages(kv, work, table, queries, out, launch.num_items, limits,
                        geometry, &launch.result);
    }
  }
  dma::EndLaunch(launch, status);
}

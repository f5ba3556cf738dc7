// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies the filled part of pages, in chosen slices; kernel_abi.h describes the
// arguments. A beat per cycle.

#include "fpga_dma/kernels/beat_runs.h"
#include "fpga_dma/kernels/dataflow.h"
#include "fpga_dma/kernels/work_list.h"

namespace paged_kv::fpga_dma {
namespace {

struct CopyLimits {
  uint32_t source_pages;
  uint32_t source_page_stride_beats;
  uint32_t target_pages;
  uint32_t target_page_stride_beats;
};
struct CopyGeometry {
  uint32_t head_dim;
  uint32_t block_tokens;
  KvElement element;
};
struct CopyCommand {
  bool stop = false;
  CopyItem item;
};

CopyItem ToCopyItem(const Beat& beat) {
#pragma HLS inline
  CopyItem item = {};
  item.source_page = Word(beat, 0);
  item.target_page = Word(beat, 1);
  item.source_slice_beat = Word(beat, 2);
  item.target_slice_beat = Word(beat, 3);
  item.source_slice_stride_beats = Word(beat, 4);
  item.target_slice_stride_beats = Word(beat, 5);
  item.num_slices = Word(beat, 6);
  item.filled_tokens = Word(beat, 7);
  return item;
}

KernelError CheckItem(const CopyItem& item, const CopyLimits& limits,
                      CopyGeometry geometry, uint64_t* detail) {
  *detail = 0;
  if (item.num_slices == 0 || item.filled_tokens == 0) {
    return KernelError::kZeroLength;
  }
  *detail = item.filled_tokens;
  if (item.filled_tokens > geometry.block_tokens) {
    return KernelError::kSlotRange;
  }
  *detail = item.source_page;
  if (item.source_page >= limits.source_pages) return KernelError::kPageIndex;
  *detail = item.target_page;
  if (item.target_page >= limits.target_pages) return KernelError::kPageIndex;
  const uint64_t slices = item.num_slices - 1;
  const uint64_t slice_beats =
      SliceBeats(geometry.block_tokens, geometry.head_dim, geometry.element);
  // Slices lie apart, so there cannot be more than a page holds.
  *detail = item.source_slice_stride_beats;
  if (slices > 0 && *detail < slice_beats) return KernelError::kSliceRange;
  *detail = item.target_slice_stride_beats;
  if (slices > 0 && *detail < slice_beats) return KernelError::kSliceRange;
  *detail = item.source_slice_beat + slices * item.source_slice_stride_beats +
            slice_beats;
  if (*detail > limits.source_page_stride_beats) {
    return KernelError::kSliceRange;
  }
  *detail = item.target_slice_beat + slices * item.target_slice_stride_beats +
            slice_beats;
  if (*detail > limits.target_page_stride_beats) {
    return KernelError::kSliceRange;
  }
  return KernelError::kOk;
}

void ReadItems(const Beat* work, uint32_t num_items, CopyLimits limits,
               CopyGeometry geometry, hls::stream<CopyCommand>& items,
               LaunchResult* result) {
  result->item = num_items;
  for (uint32_t i = 0; i < num_items; ++i) {
#pragma HLS pipeline II = 2
    CopyCommand command;
    command.item = ToCopyItem(work[1 + uint64_t{i}]);
    uint64_t detail = 0;
    const KernelError error =
        CheckItem(command.item, limits, geometry, &detail);
    if (error != KernelError::kOk) {
      *result = {error, i, detail};
      break;
    }
    items.write(command);
  }
  CopyCommand stop;
  stop.stop = true;
  items.write(stop);
}

// The runs of a slice, in beats from its start: whole tiles of K that hold a
// filled slot, the rows of V of filled slots in whole beats, and the scales of
// both.
struct SliceRuns {
  uint32_t num_runs;
  uint32_t begin[4];
  uint32_t beats[4];
};
SliceRuns RunsOf(uint32_t filled_tokens, CopyGeometry geometry) {
#pragma HLS inline
  const uint32_t tiles = (filled_tokens + kTileSlots - 1) / kTileSlots;
  const uint32_t tile_beats = TileBeats(geometry.head_dim, geometry.element);
  const uint32_t row_bytes =
      geometry.head_dim * KvElementBytes(geometry.element);
  const uint32_t data_beats = geometry.block_tokens / kTileSlots * tile_beats;
  const uint32_t half_beats =
      SliceBeats(geometry.block_tokens, geometry.head_dim, geometry.element) /
      2;
  SliceRuns runs;
  runs.num_runs = geometry.element == KvElement::kInt8 ? 4 : 2;
  runs.begin[0] = 0;
  runs.beats[0] = tiles * tile_beats;
  runs.begin[1] = half_beats;
  runs.beats[1] = (filled_tokens * row_bytes + kBeatBytes - 1) / kBeatBytes;
  runs.begin[2] = data_beats;
  runs.beats[2] = tiles;
  runs.begin[3] = half_beats + data_beats;
  runs.beats[3] = tiles;
  return runs;
}

void PlanRuns(CopyLimits limits, CopyGeometry geometry,
              hls::stream<CopyCommand>& items, hls::stream<RunCommand>& runs) {
  for (;;) {
    const CopyCommand command = items.read();
    if (command.stop) break;
    const CopyItem& item = command.item;
    const SliceRuns of_slice = RunsOf(item.filled_tokens, geometry);
    uint64_t source =
        uint64_t{item.source_page} * limits.source_page_stride_beats +
        item.source_slice_beat;
    uint64_t target =
        uint64_t{item.target_page} * limits.target_page_stride_beats +
        item.target_slice_beat;
    for (uint32_t slice = 0; slice < item.num_slices; ++slice) {
      for (uint32_t i = 0; i < of_slice.num_runs; ++i) {
#pragma HLS pipeline II = 1
        RunCommand run;
        run.source_beat = source + of_slice.begin[i];
        run.target_beat = target + of_slice.begin[i];
        run.beats = of_slice.beats[i];
        runs.write(run);
      }
      source += item.source_slice_stride_beats;
      target += item.target_slice_stride_beats;
    }
  }
  runs.write(StopRuns());
}

void CopyStages(const Beat* source, Beat* target, const Beat* work,
                uint32_t num_items, CopyLimits limits, CopyGeometry geometry,
                LaunchResult* result) {
#pragma HLS dataflow
  PAGED_KV_STREAM(CopyCommand, items, 4);
  PAGED_KV_STREAM(RunCommand, runs, 16);
  PAGED_KV_STREAM(RunCommand, read_runs, 16);
  PAGED_KV_STREAM(Beat, beats, 128);
  PAGED_KV_STAGES_BEGIN;
  PAGED_KV_STAGE(ReadItems(work, num_items, limits, geometry, items, result));
  PAGED_KV_STAGE(PlanRuns(limits, geometry, items, runs));
  PAGED_KV_STAGE(ReadRuns(source, runs, read_runs, beats));
  PAGED_KV_STAGE(WriteRuns(target, read_runs, beats));
  PAGED_KV_STAGES_END;
}

}  // namespace
}  // namespace paged_kv::fpga_dma

extern "C" void kv_copy(const paged_kv::fpga_dma::Beat* source,
                        paged_kv::fpga_dma::Beat* target,
                        const paged_kv::fpga_dma::Beat* work,
                        paged_kv::fpga_dma::Beat* status, uint32_t max_items,
                        uint32_t source_pages,
                        uint32_t source_page_stride_beats,
                        uint32_t target_pages,
                        uint32_t target_page_stride_beats, uint32_t element,
                        uint32_t head_dim, uint32_t block_tokens) {
#pragma HLS interface m_axi port = source bundle = gmem_source offset = \
    slave max_read_burst_length = 64 num_read_outstanding = 32
#pragma HLS interface m_axi port = target bundle = gmem_target offset = \
    slave max_write_burst_length = 64 num_write_outstanding = 32
#pragma HLS interface m_axi port = work bundle = gmem_work offset = \
    slave max_read_burst_length = 64
#pragma HLS interface m_axi port = status bundle = gmem_status offset = slave
#pragma HLS interface ap_ctrl_chain port = return
  namespace dma = paged_kv::fpga_dma;
  dma::Launch launch =
      dma::BeginLaunch(work, status, dma::KernelId::kKvCopy, max_items);
  if (!launch.refused && launch.result.code == dma::KernelError::kOk) {
    if (!dma::GoodGeometry(element, head_dim, block_tokens,
                           &launch.result.detail)) {
      launch.result.code = dma::KernelError::kBadGeometry;
    } else {
      const dma::CopyLimits limits = {source_pages, source_page_stride_beats,
                                      target_pages, target_page_stride_beats};
      const dma::CopyGeometry geometry = {head_dim, block_tokens,
                                          static_cast<dma::KvElement>(element)};
      dma::CopyStages(source, target, work, launch.num_items, limits, geometry,
                      &launch.result);
    }
  }
  dma::EndLaunch(launch, status);
}

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Moves the runs of a packed slab to their places in pages; kernel_abi.h
// describes the arguments. A beat per cycle.

#include "fpga_dma/kernels/beat_runs.h"
#include "fpga_dma/kernels/dataflow.h"
#include "fpga_dma/kernels/work_list.h"

namespace paged_kv::fpga_dma {
namespace {

struct ScatterLimits {
  uint32_t source_beats;
  uint32_t num_pages;
  uint32_t page_stride_beats;
};

KernelError CheckItem(const ScatterItem& item, const ScatterLimits& limits,
                      uint64_t* detail) {
  *detail = 0;
  if (item.num_beats == 0) return KernelError::kZeroLength;
  *detail = uint64_t{item.source_beat} + item.num_beats;
  if (*detail > limits.source_beats) return KernelError::kSourceRange;
  *detail = item.page;
  if (item.page >= limits.num_pages) return KernelError::kPageIndex;
  *detail = uint64_t{item.page_beat} + item.num_beats;
  if (*detail > limits.page_stride_beats) return KernelError::kSliceRange;
  return KernelError::kOk;
}

void ReadItems(const Beat* work, uint32_t num_items, ScatterLimits limits,
               hls::stream<RunCommand>& runs, LaunchResult* result) {
  result->item = num_items;
  for (uint32_t i = 0; i < num_items; ++i) {
#pragma HLS pipeline II = 1
    const Beat beat = work[1 + uint64_t{i}];
    ScatterItem item = {};
    item.source_beat = Word(beat, 0);
    item.page = Word(beat, 1);
    item.page_beat = Word(beat, 2);
    item.num_beats = Word(beat, 3);
    uint64_t detail = 0;
    const KernelError error = CheckItem(item, limits, &detail);
    if (error != KernelError::kOk) {
      *result = {error, i, detail};
      break;
    }
    RunCommand run;
    run.source_beat = item.source_beat;
    run.target_beat =
        uint64_t{item.page} * limits.page_stride_beats + item.page_beat;
    run.beats = item.num_beats;
    runs.write(run);
  }
  runs.write(StopRuns());
}

void ScatterStages(const Beat* slab, Beat* kv, const Beat* work,
                   uint32_t num_items, ScatterLimits limits,
                   LaunchResult* result) {
#pragma HLS dataflow
  PAGED_KV_STREAM(RunCommand, runs, 16);
  PAGED_KV_STREAM(RunCommand, read_runs, 16);
  PAGED_KV_STREAM(Beat, beats, 128);
  PAGED_KV_STAGES_BEGIN;
  PAGED_KV_STAGE(ReadItems(work, num_items, limits, runs, result));
  PAGED_KV_STAGE(ReadRuns(slab, runs, read_runs, beats));
  PAGED_KV_STAGE(WriteRuns(kv, read_runs, beats));
  PAGED_KV_STAGES_END;
}

}  // namespace
}  // namespace paged_kv::fpga_dma

extern "C" void kv_scatter(const paged_kv::fpga_dma::Beat* slab,
                           paged_kv::fpga_dma::Beat* kv,
                           const paged_kv::fpga_dma::Beat* work,
                           paged_kv::fpga_dma::Beat* status, uint32_t max_items,
                           uint32_t source_beats, uint32_t num_pages,
                           uint32_t page_stride_beats) {
#pragma HLS interface m_axi port = slab bundle = gmem_slab offset = \
    slave max_read_burst_length = 64 num_read_outstanding = 32
#pragma HLS interface m_axi port = kv bundle = gmem_kv offset = \
    slave max_write_burst_length = 64 num_write_outstanding = 32
#pragma HLS interface m_axi port = work bundle = gmem_work offset = \
    slave max_read_burst_length = 64
#pragma HLS interface m_axi port = status bundle = gmem_status offset = slave
#pragma HLS interface ap_ctrl_chain port = return
  namespace dma = paged_kv::fpga_dma;
  dma::Launch launch =
      dma::BeginLaunch(work, status, dma::KernelId::kKvScatter, max_items);
  if (!launch.refused && launch.result.code == dma::KernelError::kOk) {
    const dma::ScatterLimits limits = {source_beats, num_pages,
                                       page_stride_beats};
    dma::ScatterStages(slab, kv, work, launch.num_items, limits,
                       &launch.result);
  }
  dma::EndLaunch(launch, status);
}

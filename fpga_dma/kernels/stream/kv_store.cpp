// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Stores a stream of gathered beats, one after the other, in a slab: what
// stands behind kv_gather (rtl/), so that paged_decode or one DMA transfer
// finds scattered pages packed. A beat per cycle.
//
//   in          the stream, to and with its TLAST; beats with TKEEP 0 hold
//               nothing
//   slab        written [slab_beats]
//   status      KernelStatus, read and written [1 beat]; items are beats
//   slab_beats  what the slab holds. What comes behind is dropped: kOutRange;
//               detail: the beats that came
//
// The stream is always read to its end, also by a launch that an error in the
// status refuses, so that the next launch begins with the next stream.

#include <ap_axi_sdata.h>

#include "fpga_dma/kernels/beat_runs.h"
#include "fpga_dma/kernels/dataflow.h"
#include "fpga_dma/kernels/work_list.h"

namespace paged_kv::fpga_dma {

using StreamBeat = ap_axiu<512, 0, 0, 0>;

// A run is announced when all its beats are there: `beats` has to hold two.
static void Collect(hls::stream<StreamBeat>& in, uint32_t slab_beats,
                    hls::stream<Beat>& beats, hls::stream<RunCommand>& runs,
                    uint64_t* arrived) {
  uint64_t count = 0;
  RunCommand run;
  for (bool last = false; !last;) {
#pragma HLS pipeline II = 1
    const StreamBeat beat = in.read();
    last = beat.last;
    const bool full = (beat.keep.range(31, 0).to_uint() |
                       beat.keep.range(63, 32).to_uint()) != 0;
    if (full && count < slab_beats) {
      beats.write(beat.data);
      ++run.beats;
    }
    if (full) ++count;
    if (run.beats == kBurstBeats || (last && run.beats > 0)) {
      runs.write(run);
      run.target_beat += run.beats;
      run.beats = 0;
    }
  }
  runs.write(StopRuns());
  *arrived = count;
}

static void StoreStages(hls::stream<StreamBeat>& in, Beat* slab,
                        uint32_t slab_beats, uint64_t* arrived) {
#pragma HLS dataflow
  PAGED_KV_STREAM(RunCommand, runs, 4);
  PAGED_KV_STREAM(Beat, beats, 128);
  PAGED_KV_STAGES_BEGIN;
  PAGED_KV_STAGE(Collect(in, slab_beats, beats, runs, arrived));
  PAGED_KV_STAGE(WriteRuns(slab, runs, beats));
  PAGED_KV_STAGES_END;
}

}  // namespace paged_kv::fpga_dma

extern "C" void kv_store(hls::stream<paged_kv::fpga_dma::StreamBeat>& in,
                         paged_kv::fpga_dma::Beat* slab,
                         paged_kv::fpga_dma::Beat* status,
                         uint32_t slab_beats) {
#pragma HLS interface axis port = in
#pragma HLS interface m_axi port = slab bundle = gmem_slab offset = \
    slave max_write_burst_length = 64 num_write_outstanding = 32
#pragma HLS interface m_axi port = status bundle = gmem_status offset = slave
#pragma HLS interface ap_ctrl_chain port = return
  namespace dma = paged_kv::fpga_dma;
  const dma::Beat before = status[0];
  dma::Launch launch;
  launch.launches = dma::Word(before, 6) + 1;
  launch.refused = dma::Word(before, 0) != 0;
  if (launch.refused) slab_beats = 0;
  uint64_t arrived = 0;
  dma::StoreStages(in, slab, slab_beats, &arrived);
  launch.result.item = static_cast<uint32_t>(arrived);
  if (arrived > slab_beats) {
    launch.result.code = dma::KernelError::kOutRange;
    launch.result.item = slab_beats;
    launch.result.detail = arrived;
  }
  dma::EndLaunch(launch, status);
}

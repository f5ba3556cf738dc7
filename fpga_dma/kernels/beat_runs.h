// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Stages that move runs of beats. Device code.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_BEAT_RUNS_H_
#define PAGED_KV_FPGA_DMA_KERNELS_BEAT_RUNS_H_

#include <hls_stream.h>

#include <cstdint>

#include "fpga_dma/kernels/beat.h"

namespace paged_kv::fpga_dma {

// `beats` beats, to be moved; `stop` is the last command and moves nothing.
struct RunCommand {
  bool stop = false;
  uint64_t source_beat = 0;
  uint64_t target_beat = 0;
  uint32_t beats = 0;
};

inline RunCommand StopRuns() {
  RunCommand stop;
  stop.stop = true;
  return stop;
}

inline void ReadRun(const Beat* memory, uint64_t beat, uint32_t beats,
                    hls::stream<Beat>& out) {
  for (uint32_t done = 0; done < beats;) {
    const uint32_t burst = NextBurst(beat + done, beats - done);
    for (uint32_t i = 0; i < burst; ++i) {
#pragma HLS pipeline II = 1
      out.write(memory[beat + done + i]);
    }
    done += burst;
  }
}

inline void WriteRun(Beat* memory, uint64_t beat, uint32_t beats,
                     hls::stream<Beat>& in) {
  for (uint32_t done = 0; done < beats;) {
    const uint32_t burst = NextBurst(beat + done, beats - done);
    for (uint32_t i = 0; i < burst; ++i) {
#pragma HLS pipeline II = 1
      memory[beat + done + i] = in.read();
    }
    done += burst;
  }
}

// Reads the source of every run, and passes the commands on.
inline void ReadRuns(const Beat* memory, hls::stream<RunCommand>& runs,
                     hls::stream<RunCommand>& read_runs,
                     hls::stream<Beat>& beats) {
  for (;;) {
    const RunCommand run = runs.read();
    read_runs.write(run);
    if (run.stop) break;
    ReadRun(memory, run.source_beat, run.beats, beats);
  }
}

inline void WriteRuns(Beat* memory, hls::stream<RunCommand>& runs,
                      hls::stream<Beat>& beats) {
  for (;;) {
    const RunCommand run = runs.read();
    if (run.stop) break;
    WriteRun(memory, run.target_beat, run.beats, beats);
  }
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_BEAT_RUNS_H_

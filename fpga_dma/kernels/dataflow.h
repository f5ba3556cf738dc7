// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How the kernels declare their streams and stages, so that one source is a
// dataflow region for Vitis HLS, a sequence of calls, or a set of threads.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_DATAFLOW_H_
#define PAGED_KV_FPGA_DMA_KERNELS_DATAFLOW_H_

#include <hls_stream.h>

// A stream of the region: a FIFO that holds `elements`.
#if defined(PAGED_KV_STAND_IN_STREAMS)
#define PAGED_KV_STREAM(type, name, elements) \
  ::hls::stream<type> name(#name, elements)
#else
#define PAGED_KV_PRAGMA(text) _Pragma(#text)
#define PAGED_KV_STREAM(type, name, elements) \
  ::hls::stream<type> name(#name);            \
  PAGED_KV_PRAGMA(HLS stream variable = name depth = elements)
#endif

// The region: PAGED_KV_STAGES_BEGIN; a PAGED_KV_STAGE for each call, in the
// order of the data; PAGED_KV_STAGES_END.
#if defined(PAGED_KV_THREADED_STAGES)
#define PAGED_KV_STAGES_BEGIN ::paged_kv::fpga_dma::StageThreads stages
#define PAGED_KV_STAGE(...) stages.Add([&] { __VA_ARGS__; })
#define PAGED_KV_STAGES_END stages.Run()
#else
#define PAGED_KV_STAGES_BEGIN static_cast<void>(0)
#define PAGED_KV_STAGE(...) __VA_ARGS__
#define PAGED_KV_STAGES_END static_cast<void>(0)
#endif

#endif  // PAGED_KV_FPGA_DMA_KERNELS_DATAFLOW_H_

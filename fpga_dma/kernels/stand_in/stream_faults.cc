// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/kernels/stand_in/stream_faults.h"

#include <atomic>
#include <cstdio>
#include <string>

namespace paged_kv::fpga_dma {
namespace {

std::atomic<uint64_t> leftover_streams{0};

}  // namespace

void ThrowEmptyRead(const char* stream) {
  throw StreamDeadlock(std::string("read from the empty stream ") + stream);
}

void NoteLeftover(const char* stream, size_t elements) {
  ++leftover_streams;
  std::fprintf(stderr, "stream %s ended with %zu unread elements\n", stream,
               elements);
}

uint64_t LeftoverStreams() { return leftover_streams; }

}  // namespace paged_kv::fpga_dma

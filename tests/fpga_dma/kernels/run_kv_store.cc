// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each build; the threaded one has other names.

#include "tests/fpga_dma/kernels/run_kv_store.h"

#include <ap_axi_sdata.h>
#include <ap_int.h>

#include <cstddef>

#include "fpga_dma/kernels/dataflow.h"

using StreamBeat = ap_axiu<512, 0, 0, 0>;

extern "C" void kv_store(hls::stream<StreamBeat>& in, ap_uint<512>* slab,
                         ap_uint<512>* status, uint32_t slab_beats);

namespace paged_kv::fpga_dma {
namespace {

ap_uint<512>* Beats(CardMemory* memory) {
  return reinterpret_cast<ap_uint<512>*>(memory->data());
}

}  // namespace

void RunKvStore(absl::Span<const StreamedBeat> in, CardMemory* slab,
                CardMemory* status, uint32_t slab_beats) {
  PAGED_KV_STREAM(StreamBeat, stream, in.size());
  for (const StreamedBeat& each : in) {
    StreamBeat beat;
    for (size_t word = 0; word < each.words.size(); ++word) {
      const int low = static_cast<int>(32 * word);
      beat.data.range(low + 31, low) = each.words[word];
    }
    for (const int low : {0, 32}) {
      beat.keep.range(low + 31, low) = each.full ? ~uint32_t{0} : 0;
    }
    beat.last = each.last;
    stream.write(beat);
  }
  kv_store(stream, Beats(slab), Beats(status), slab_beats);
}

}  // namespace paged_kv::fpga_dma

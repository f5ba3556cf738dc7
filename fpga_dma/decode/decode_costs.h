// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a decode step should take, by who attends to which blocks, and so who
// should. docs/card_decode.md has the formulas with figures.

#ifndef PAGED_KV_FPGA_DMA_DECODE_DECODE_COSTS_H_
#define PAGED_KV_FPGA_DMA_DECODE_DECODE_COSTS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace paged_kv::fpga_dma {

// Who attends to the blocks of a step (CardDecode). The last, partly filled
// block of a sequence is the host's in all of them.
enum class DecodePath : uint8_t {
  kHost,      // the host, to all
  kHybrid,    // the card to those on it, the host to the others
  kStreamed,  // the card to all; those not on it are sent layer by layer
};

// Measured rates of a card and its host. A transfer of n bytes takes
// `*_setup` + n / `*_bytes_per_second`; the `channels` of a direction share its
// rate, and their setups overlap.
struct DecodeRates {
  absl::Duration upload_setup;
  absl::Duration download_setup;
  double upload_bytes_per_second = 0;
  double download_bytes_per_second = 0;
  uint32_t channels = 1;
  absl::Duration launch;
  double card_bytes_per_second = 0;  // of K and V, all units together
  double card_flops = 0;             // all units together; 0: never the bound
  double host_bytes_per_second = 0;  // of K and V attended to, or packed
};

// What one layer of a step is about, bytes.
struct DecodeDemand {
  uint32_t layers = 0;
  uint32_t group_heads = 1;  // query heads per KV head: flops per byte of bf16
  uint32_t slabs = 1;        // of the pool: descriptors per streamed layer
  uint64_t kv_resident = 0;  // whole blocks that are on the card
  uint64_t kv_absent = 0;    // whole blocks that are not
  uint64_t kv_tail = 0;      // of the last blocks
  uint64_t inputs = 0;       // lists, tables, queries
  uint64_t outputs = 0;      // of the kernels
  uint32_t readings = 2;     // of the outputs (CardDecodeOptions)
};

// The step's time if everything went as well as it can: per layer
//   host      kv / host rate
//   hybrid    upload + max(launch + card's kv, host's kv) + downloads
//   streamed  t_dma + t_comp + (layers - 1) max(t_dma, t_comp), where t_dma
//             sends a layer (over the link, or as fast as the host packs) and
//             t_comp is `hybrid` with all whole blocks, and a launch more if
//             some are on the card.
// Layers follow each other. REQUIRES: rates above 0.
absl::Duration PredictStep(DecodePath path, const DecodeRates& rates,
                           const DecodeDemand& demand);

// The path with the shortest prediction.
DecodePath ChoosePath(const DecodeRates& rates, const DecodeDemand& demand);

// A transfer of so many bytes; nothing if there are none.
absl::Duration UploadTime(const DecodeRates& rates, uint64_t bytes);
absl::Duration DownloadTime(const DecodeRates& rates, uint64_t bytes);
// Attention of the card to so many bytes of K and V, without its launch.
absl::Duration CardTime(const DecodeRates& rates, uint32_t group_heads,
                        uint64_t kv_bytes);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_DECODE_DECODE_COSTS_H_

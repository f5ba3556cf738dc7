// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/decode/decode_costs.h"

#include <algorithm>

namespace paged_kv::fpga_dma {
namespace {

absl::Duration Time(double amount, double per_second) {
  return absl::Seconds(amount / per_second);
}

absl::Duration HostTime(const DecodeRates& rates, uint64_t kv_bytes) {
  return Time(static_cast<double>(kv_bytes), rates.host_bytes_per_second);
}

// A layer of which the card attends to `on_card` bytes and the host to
// `on_host`.
absl::Duration LayerTime(const DecodeRates& rates, const DecodeDemand& demand,
                         uint64_t on_card, uint64_t on_host, int launches) {
  if (on_card == 0) return HostTime(rates, on_host);
  return UploadTime(rates, demand.inputs) +
         std::max(launches * rates.launch +
                      CardTime(rates, demand.group_heads, on_card),
                  HostTime(rates, on_host)) +
         demand.readings * DownloadTime(rates, demand.outputs);
}

absl::Duration StreamedTime(const DecodeRates& rates,
                            const DecodeDemand& demand) {
  // Channels share the link; with two, the next descriptor's setup hides behind
  // the bytes of the one before.
  const absl::Duration dma =
      (rates.channels > 1 ? 1 : demand.slabs) * rates.upload_setup +
      Time(static_cast<double>(demand.kv_absent),
           rates.upload_bytes_per_second);
  const absl::Duration send = std::max(dma, HostTime(rates, demand.kv_absent));
  const absl::Duration attend =
      LayerTime(rates, demand, demand.kv_resident + demand.kv_absent,
                demand.kv_tail, demand.kv_resident > 0 ? 2 : 1);
  return send + attend + (demand.layers - 1) * std::max(send, attend);
}

}  // namespace

absl::Duration UploadTime(const DecodeRates& rates, uint64_t bytes) {
  if (bytes == 0) return absl::ZeroDuration();
  return rates.upload_setup +
         Time(static_cast<double>(bytes), rates.upload_bytes_per_second);
}

absl::Duration DownloadTime(const DecodeRates& rates, uint64_t bytes) {
  if (bytes == 0) return absl::ZeroDuration();
  return rates.download_setup +
         Time(static_cast<double>(bytes), rates.download_bytes_per_second);
}

absl::Duration CardTime(const DecodeRates& rates, uint32_t group_heads,
                        uint64_t kv_bytes) {
  const auto bytes = static_cast<double>(kv_bytes);
  const absl::Duration memory = Time(bytes, rates.card_bytes_per_second);
  if (rates.card_flops <= 0) return memory;
  return std::max(memory, Time(bytes * group_heads, rates.card_flops));
}

absl::Duration PredictStep(DecodePath path, const DecodeRates& rates,
                           const DecodeDemand& demand) {
  switch (path) {
    case DecodePath::kHost:
      return demand.layers *
             HostTime(rates,
                      demand.kv_resident + demand.kv_absent + demand.kv_tail);
    case DecodePath::kStreamed:
      if (demand.kv_absent > 0) return StreamedTime(rates, demand);
      break;
    case DecodePath::kHybrid:
      break;
  }
  return demand.layers * LayerTime(rates, demand, demand.kv_resident,
                                   demand.kv_absent + demand.kv_tail, 1);
}

DecodePath ChoosePath(const DecodeRates& rates, const DecodeDemand& demand) {
  DecodePath best = DecodePath::kHost;
  for (DecodePath path : {DecodePath::kHybrid, DecodePath::kStreamed}) {
    if (PredictStep(path, rates, demand) < PredictStep(best, rates, demand)) {
      best = path;
    }
  }
  return best;
}

}  // namespace paged_kv::fpga_dma

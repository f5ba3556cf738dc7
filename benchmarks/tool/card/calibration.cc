// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/calibration.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/card/decode_probe.h"
#include "benchmarks/tool/card/device_calls.h"
#include "fpga_dma/owned_slab.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using fpga_dma::BankId;
using fpga_dma::Device;
using fpga_dma::OpId;
using fpga_dma::OwnedSlab;
using fpga_dma::SlabKind;
using fpga_dma::SlabRange;

constexpr uint64_t kSmallBytes = 4096;
constexpr uint64_t kLargeBytes = 8 << 20;

absl::Duration Median(std::vector<absl::Duration> times) {
  const auto middle =
      times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Median duration of `repeats` operations, each alone on the device.
absl::StatusOr<absl::Duration> MedianTime(
    Device& device, uint32_t repeats,
    const std::function<absl::StatusOr<OpId>()>& start) {
  std::vector<absl::Duration> times;
  for (uint32_t i = 0; i < repeats; ++i) {
    PAGED_KV_ASSIGN_OR_RETURN(const OpId op, start());
    PAGED_KV_ASSIGN_OR_RETURN(const fpga_dma::Completion done,
                              AwaitOperation(device, op));
    times.push_back(done.finished - done.started);
  }
  return Median(std::move(times));
}

// Two sizes far apart: the difference gives the rate, the small one what is
// paid whatever the size.
absl::StatusOr<AffineCost> MeasureTransfers(
    Device& device, uint32_t repeats,
    const std::function<absl::StatusOr<OpId>(uint64_t bytes)>& start) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const absl::Duration small,
      MedianTime(device, repeats, [&] { return start(kSmallBytes); }));
  PAGED_KV_ASSIGN_OR_RETURN(
      const absl::Duration large,
      MedianTime(device, repeats, [&] { return start(kLargeBytes); }));
  if (large <= small) {
    return absl::InternalError(absl::StrCat(
        "moving ", kLargeBytes, " bytes took no longer than moving ",
        kSmallBytes, ": the device's clock does not measure transfers"));
  }
  AffineCost cost;
  cost.bytes_per_second = static_cast<double>(kLargeBytes - kSmallBytes) /
                          absl::ToDoubleSeconds(large - small);
  cost.setup = small - absl::Seconds(kSmallBytes / cost.bytes_per_second);
  return cost;
}

absl::Status MeasureLink(Device& device, uint32_t repeats,
                         CardCalibration* result) {
  PAGED_KV_ASSIGN_OR_RETURN(const OwnedSlab slab,
                            OwnedSlab::Create(&device, BankId(0), kLargeBytes,
                                              SlabKind::kHostVisible));
  PAGED_KV_ASSIGN_OR_RETURN(
      result->upload, MeasureTransfers(device, repeats, [&](uint64_t bytes) {
        return device.StartUpload(SlabRange{slab.id(), 0, bytes}, 0);
      }));
  PAGED_KV_ASSIGN_OR_RETURN(
      result->download, MeasureTransfers(device, repeats, [&](uint64_t bytes) {
        return device.StartDownload(SlabRange{slab.id(), 0, bytes}, 0);
      }));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CardCalibration> Calibrate(Device& device,
                                          const CalibrationOptions& options) {
  CardCalibration result;
  PAGED_KV_RETURN_IF_ERROR(MeasureLink(device, options.repeats, &result));
  const std::vector<uint32_t> units = DecodeProbe::Units(device.info());
  if (units.empty()) {
    return absl::FailedPreconditionError(
        "the card's design has no compute unit of paged_decode; load one of "
        "this project (docs/fpga.md)");
  }
  std::vector<absl::Duration> launches;
  for (const uint32_t unit : units) {
    PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<DecodeProbe> probe,
                              DecodeProbe::Create(&device, unit, options.seed));
    std::array<absl::Duration, 2> times;
    const std::array<uint32_t, 2> pages = {DecodeProbe::kPages / 8,
                                           DecodeProbe::kPages};
    for (size_t i = 0; i < pages.size(); ++i) {
      PAGED_KV_RETURN_IF_ERROR(probe->Prepare(pages[i]));
      PAGED_KV_ASSIGN_OR_RETURN(
          times[i],
          MedianTime(device, options.repeats, [&] { return probe->Start(); }));
      PAGED_KV_RETURN_IF_ERROR(probe->CheckStatus());
    }
    BankRate rate;
    rate.unit = device.info().compute_units[unit].instance;
    rate.bank = device.info().banks[probe->bank().value()].name;
    rate.bytes_per_second =
        static_cast<double>((pages[1] - pages[0]) * DecodeProbe::kPageBytes) /
        absl::ToDoubleSeconds(times[1] - times[0]);
    launches.push_back(times[0] -
                       absl::Seconds(pages[0] * DecodeProbe::kPageBytes /
                                     rate.bytes_per_second));
    result.banks.push_back(rate);
  }
  result.launch = Median(std::move(launches));
  return result;
}

}  // namespace paged_kv::tool

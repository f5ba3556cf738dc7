// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CALIBRATION_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CALIBRATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fpga_dma/device.h"

namespace paged_kv::tool {

// An operation on n bytes takes setup + n / bytes_per_second.
struct AffineCost {
  absl::Duration setup;
  double bytes_per_second = 0.0;
};

// What a compute unit of paged_decode reads from the bank of its pages, in
// bursts of 4 KiB: the slower of port and bank.
struct BankRate {
  std::string unit;  // instance
  std::string bank;
  double bytes_per_second = 0.0;
};

// The constants that decide how decode steps are laid out on a card.
struct CardCalibration {
  AffineCost upload;
  AffineCost download;
  absl::Duration launch;  // of a kernel with next to nothing to do
  std::vector<BankRate> banks;
};

struct CalibrationOptions {
  uint32_t repeats = 5;  // of each measurement; the median counts
  uint64_t seed = 1;     // of the order of pages
};

// Measures `device` by its own clock, one operation at a time. Takes slabs of
// up to 16 MiB and gives them back. FailedPrecondition if the design has no
// paged_decode; the device's errors.
absl::StatusOr<CardCalibration> Calibrate(fpga_dma::Device& device,
                                          const CalibrationOptions& options);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CALIBRATION_H_

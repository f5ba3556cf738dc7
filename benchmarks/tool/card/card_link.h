// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_LINK_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_LINK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/tool/card/calibration.h"
#include "benchmarks/tool/card/card_case.h"
#include "benchmarks/tool/progress.h"
#include "fpga_dma/device.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// Pages scattered over a pool that moved in one list.
struct LinkMove {
  uint32_t stripes = 1;
  uint32_t splits = 1;
  uint32_t layers = 1;  // of each page
  bool whole = false;   // all its layers
  bool upload = true;
  double share = 0;          // of the link's rate, from Submit() to the result
  uint64_t descriptors = 0;  // that carried pages
};

struct CardLink {
  uint32_t pages = 0;
  std::vector<LinkMove> moves;
  // Uploads of K and V of one head of one layer each, one after the other.
  double slice_share = 0;

  double WorstShare(bool whole) const;
};

// What share of the rate of `costs` scattered pages of `card_case`'s shape get
// through a TransferQueue: whole pages and single layers, up and down, in a
// pool of twice as many pages that is cut into all the banks' splits alone, and
// into stripes. What comes back is compared with what was sent: DataLoss.
absl::StatusOr<CardLink> MeasureCardLink(fpga_dma::Device* device,
                                         const CardCalibration& costs,
                                         const CardCase& card_case,
                                         uint32_t pages, Progress& progress);

std::string CardLinkText(const CardLink& link);
nlohmann::ordered_json CardLinkJson(const CardLink& link);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_LINK_H_

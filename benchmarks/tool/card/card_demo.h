// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_DEMO_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_DEMO_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "benchmarks/tool/card/card_run.h"
#include "benchmarks/tool/progress.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// The step of the tour in which a card decodes.
struct CardDemo {
  std::string board;
  std::string driver;  // how the card is driven
  bool through_xrt = false;
  CardRun run;
};

// Prefill with hand-off and a few steps in mode `resident` on a board without
// hardware, a few seconds; through XRT where that was built. Internal if the
// outputs are not the host's.
absl::StatusOr<CardDemo> RunCardDemo(uint64_t seed, Progress& progress);

std::string CardDemoText(const CardDemo& demo);
nlohmann::ordered_json CardDemoJson(const CardDemo& demo);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_DEMO_H_

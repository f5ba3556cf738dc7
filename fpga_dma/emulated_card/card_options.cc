// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/emulated_card/card_options.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr const char* kBoard = "PAGEDKV_CARD_BOARD";
constexpr const char* kFaults = "PAGEDKV_CARD_FAULTS";
constexpr const char* kSeed = "PAGEDKV_CARD_SEED";
constexpr const char* kSlowdown = "PAGEDKV_CARD_SLOWDOWN";
constexpr const char* kClock = "PAGEDKV_CARD_CLOCK";
constexpr const char* kEngine = "PAGEDKV_CARD_ENGINE";
constexpr const char* kCount = "PAGEDKV_CARD_COUNT";

constexpr uint32_t kMaxCards = 16;

absl::Status Bad(const char* name, const std::string& value,
                 absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", value, ", want ", wanted));
}

// `status` of the value of `name`, with the name.
absl::Status About(const char* name, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(name, ": ", status.message()));
}

absl::StatusOr<Board> ReadBoard(const GetVariable& get) {
  const std::string value = get(kBoard).value_or("u280");
  // A name has no path separator and no ending.
  const bool is_file =
      absl::StrContains(value, '/') || absl::EndsWith(value, ".json");
  absl::StatusOr<Board> board =
      is_file ? LoadBoard(value) : BuiltinBoard(value);
  if (!board.ok()) return About(kBoard, board.status());
  if (const absl::Status status = ValidateBoard(*board); !status.ok()) {
    return About(kBoard, status);
  }
  return board;
}

absl::StatusOr<CardEngine> ReadEngine(const GetVariable& get) {
  const std::string value = get(kEngine).value_or("model");
  if (value == "model") return CardEngine::kModel;
  if (value != "rtl") return Bad(kEngine, value, "model or rtl");
#if defined(PAGED_KV_HAVE_RTL_ENGINE)
  return CardEngine::kRtl;
#else
  return absl::UnimplementedError(absl::StrCat(
      kEngine,
      "=rtl: PagedKV was built without Verilator (Debian: verilator); "
      "configure and build again with it"));
#endif
}

}  // namespace

absl::StatusOr<uint32_t> ReadCardCount(const GetVariable& get) {
  const std::string value = get(kCount).value_or("1");
  uint32_t count = 0;
  if (!absl::SimpleAtoi(value, &count) || count > kMaxCards) {
    return Bad(kCount, value, absl::StrCat("0 to ", kMaxCards));
  }
  return count;
}

absl::StatusOr<CardOptions> ReadCardOptions(const GetVariable& get) {
  CardOptions options;
  PAGED_KV_ASSIGN_OR_RETURN(options.board, ReadBoard(get));
  if (const auto seed = get(kSeed); seed.has_value()) {
    if (!absl::SimpleAtoi(*seed, &options.seed)) {
      return Bad(kSeed, *seed, "a number");
    }
  }
  if (const auto text = get(kFaults); text.has_value()) {
    absl::StatusOr<FaultPlanOptions> faults =
        ParseFaultPlan(absl::StrCat("seed=", options.seed, " ", *text));
    if (!faults.ok()) return About(kFaults, faults.status());
    options.faults = *std::move(faults);
    if (const absl::Status status = ValidateFaultPlan(options.faults);
        !status.ok()) {
      return About(kFaults, status);
    }
  }
  if (const auto slowdown = get(kSlowdown); slowdown.has_value()) {
    if (!absl::SimpleAtod(*slowdown, &options.max_slowdown) ||
        !std::isfinite(options.max_slowdown) || options.max_slowdown < 1) {
      return Bad(kSlowdown, *slowdown, "a factor of 1 or more");
    }
  }
  const std::string clock = get(kClock).value_or("virtual");
  if (clock != "virtual" && clock != "real") {
    return Bad(kClock, clock, "virtual or real");
  }
  options.virtual_clock = clock == "virtual";
  PAGED_KV_ASSIGN_OR_RETURN(options.engine, ReadEngine(get));
  return options;
}

std::optional<std::string> ProcessVariable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace paged_kv::fpga_dma

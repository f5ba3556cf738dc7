// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_CASE_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_CASE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::tool {

// Who attends to the blocks of a decode step. The last block of a sequence, to
// which tokens are still added, is always the host's: it is small, and on the
// card it would cost a launch per layer.
enum class CardMode {
  kHost,      // the host, to all
  kResident,  // the card: all are on it
  kHybrid,    // the card to those that are on it, the host to the others
  kStreamed,  // the card, which the others are sent to layer by layer
  kAuto,      // whichever of these should take the least time
};
inline constexpr CardMode kFixedCardModes[] = {
    CardMode::kHost, CardMode::kResident, CardMode::kHybrid,
    CardMode::kStreamed};
absl::string_view CardModeName(CardMode mode);
// InvalidArgument, with the choices, for another name.
absl::StatusOr<CardMode> ParseCardMode(absl::string_view name);

// A batch of sequences of equal lengths whose K/V are random. The defaults are
// the shape of Qwen2.5-7B.
struct CardCase {
  BlockShape shape;  // bf16
  uint32_t query_heads = 28;
  uint32_t batch = 4;
  uint32_t context = 2048;  // prompt tokens of each
  uint32_t steps = 16;      // of decoding
  double resident = 1.0;    // share of the whole blocks that the card has
  CardMode mode = CardMode::kAuto;
  uint64_t seed = 1;

  // The host's speed, for devices whose clock is a model's.
  double host_bytes_per_second = 40e9;  // of K/V that it attends to or packs
  double prefill_flops = 2e12;          // of the prompt's forward pass

  // One layer of the model without attention: what prefill computes besides,
  // in parameters.
  uint64_t layer_parameters = 233e6;

  CardCase() {
    shape.layers = 28;
    shape.kv_heads = 4;
    shape.head_dim = 128;
    shape.block_tokens = 16;
  }
  uint32_t WholeBlocks(uint32_t tokens) const {
    return tokens / shape.block_tokens;
  }
  // Of a sequence of `tokens` tokens, those that the card has.
  uint32_t ResidentBlocks(uint32_t tokens) const;
  uint64_t KvBytes() const;  // of the prompts
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_CASE_H_

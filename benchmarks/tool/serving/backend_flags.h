// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_BACKEND_FLAGS_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_BACKEND_FLAGS_H_

#include <memory>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "attention/parallel_for.h"
#include "benchmarks/tool/card/open_card.h"
#include "benchmarks/tool/serving/card_attention.h"
#include "docs/examples/llm/engine/serving_engine.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

enum class Backend : uint8_t { kCpu, kCard };

// Where engines attend. It outlives them.
class OpenedBackend {
 public:
  // Of the processor: nothing is opened.
  OpenedBackend() = default;
  explicit OpenedBackend(OpenedCard card);

  // Empty for the processor. `parallel` is borrowed. What Text() and Json()
  // tell is counted from here on.
  llm::AttentionFactory Factory(attention::ParallelFor* parallel) const;

  // What the card did, a line; empty for the processor.
  std::string Text() const;
  // The same; null for the processor.
  nlohmann::ordered_json Json() const;

 private:
  struct Card {
    OpenedCard opened;
    CardUse use;
  };
  std::shared_ptr<Card> card_;
};

// --backend, --board, --device, --xclbin.
struct BackendFlags {
  Backend backend = Backend::kCpu;
  CardChoice card;

  void AddTo(CLI::App& app);
  // The errors of OpenCard().
  absl::StatusOr<OpenedBackend> Open() const;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_BACKEND_FLAGS_H_

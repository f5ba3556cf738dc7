// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/backend_flags.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/serving/serving_stats.h"
#include "benchmarks/tool/table.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

absl::StatusOr<Backend> ParseBackend(absl::string_view name) {
  if (name == "cpu") return Backend::kCpu;
  if (name == "card") return Backend::kCard;
  return absl::InvalidArgumentError(
      absl::StrCat("--backend='", name, "'; use cpu or card"));
}

}  // namespace

OpenedBackend::OpenedBackend(OpenedCard card)
    : card_(std::make_shared<Card>()) {
  card_->opened = std::move(card);
}

llm::AttentionFactory OpenedBackend::Factory(
    attention::ParallelFor* parallel) const {
  if (card_ == nullptr) return nullptr;
  card_->use = {};
  return [card = card_, parallel](const attention::KvPages& pages,
                                  uint32_t query_heads)
             -> absl::StatusOr<std::unique_ptr<llm::AttentionBackend>> {
    return CardAttention::Create(card->opened.device.get(), pages, query_heads,
                                 parallel, &card->use);
  };
}

std::string OpenedBackend::Text() const {
  if (card_ == nullptr) return "";
  const CardUse& use = card_->use;
  return absl::StrFormat(
      "card: %s, %s; %s decode steps, attention %.3f s on its clock; %s pages "
      "uploaded (%s), %s read there; %s steps with prompts on the host, %s "
      "layers that the card failed at\n",
      card_->opened.device->info().name, card_->opened.driver,
      Grouped(use.steps), absl::ToDoubleSeconds(use.attention),
      Grouped(use.pages_uploaded), BytesText(use.bytes_uploaded),
      BytesText(use.kv_read_by_card), Grouped(use.host_steps),
      Grouped(use.failures));
}

nlohmann::ordered_json OpenedBackend::Json() const {
  if (card_ == nullptr) return nullptr;
  const CardUse& use = card_->use;
  return {{"name", card_->opened.device->info().name},
          {"driver", card_->opened.driver},
          {"decode_steps", use.steps},
          {"host_steps", use.host_steps},
          {"pages_uploaded", use.pages_uploaded},
          {"bytes_uploaded", use.bytes_uploaded},
          {"kv_bytes_read", use.kv_read_by_card},
          {"failed_layers", use.failures},
          {"attention_s", absl::ToDoubleSeconds(use.attention)}};
}

void BackendFlags::AddTo(CLI::App& app) {
  const std::string group = "Backend";
  AddChoice(app, "--backend", &backend, ParseBackend, "cpu|card", "cpu",
            "Where decode steps attend; prompts are the processor's always. "
            "The card takes bf16 K/V in blocks of whole tiles of 16 tokens")
      ->group(group);
  AddText(app, "--board", &card.board, "u250|u280|u55c|FILE",
          "Board of a card without hardware")
      ->group(group);
  AddText(app, "--device", &card.device, "BDF",
          "A card: its PCIe address or index")
      ->group(group);
  AddText(app, "--xclbin", &card.xclbin, "FILE",
          "The design that the card is loaded with")
      ->group(group);
}

absl::StatusOr<OpenedBackend> BackendFlags::Open() const {
  if (backend == Backend::kCpu) return OpenedBackend();
  PAGED_KV_ASSIGN_OR_RETURN(OpenedCard opened, OpenCard(card));
  return OpenedBackend(std::move(opened));
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/matmul_set.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

absl::StatusOr<MatmulSet> MakeSet(WeightType type, uint32_t inputs,
                                  uint32_t outputs) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const OneDnnMatmul reference,
      OneDnnMatmul::Create(type, kReferenceRows, inputs, outputs, nullptr));
  MatmulSet set;
  for (uint32_t rows = 1; rows <= kMaxProductRows; rows *= 2) {
    PAGED_KV_ASSIGN_OR_RETURN(
        OneDnnMatmul matmul, OneDnnMatmul::Create(type, rows, inputs, outputs,
                                                  &reference.weights_layout()));
    set.by_rows.push_back(std::move(matmul));
  }
  return set;
}

}  // namespace

const OneDnnMatmul& MatmulSet::reference() const {
  const auto found =
      std::find_if(by_rows.begin(), by_rows.end(),
                   [](const auto& m) { return m.rows() == kReferenceRows; });
  PAGED_KV_CHECK(found != by_rows.end());
  return *found;
}

absl::StatusOr<std::shared_ptr<const MatmulSet>> MatmulsFor(WeightType type,
                                                            uint32_t inputs,
                                                            uint32_t outputs) {
  using Size = std::tuple<WeightType, uint32_t, uint32_t>;
  static std::mutex mutex;
  static auto* const held = new std::map<Size, std::weak_ptr<const MatmulSet>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<const MatmulSet>& entry = (*held)[{type, inputs, outputs}];
  if (auto set = entry.lock()) return set;
  PAGED_KV_ASSIGN_OR_RETURN(MatmulSet made, MakeSet(type, inputs, outputs));
  auto set = std::make_shared<const MatmulSet>(std::move(made));
  entry = set;
  return set;
}

}  // namespace paged_kv::llm

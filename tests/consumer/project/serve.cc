// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Serves one request with the scheduler and merges two attention results: a
// little of each installed library, so that its headers and its link line are
// needed.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attention/merge_partials.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "serve: %s\n", what);
  std::exit(1);
}

void Require(const absl::Status& status, const char* what) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  Require(status.ok(), what);
}

template <typename T>
T Require(absl::StatusOr<T> value, const char* what) {
  Require(value.status(), what);
  return *std::move(value);
}

void ServeOneRequest() {
  paged_kv::KvCacheOptions options;
  options.groups.push_back(paged_kv::LayerGroup{});
  options.host_blocks = paged_kv::BlockCount(8);
  const std::unique_ptr<paged_kv::KvCacheManager> cache =
      Require(paged_kv::KvCacheManager::Create(options), "cache");
  const paged_kv::ManualClock clock;
  const std::unique_ptr<paged_kv::BatchScheduler> scheduler = Require(
      paged_kv::BatchScheduler::Create(cache.get(), &clock, {}), "scheduler");

  const std::vector<paged_kv::TokenId> prompt(40, 7);
  paged_kv::GenerationRequest request;
  request.id = paged_kv::RequestId(1);
  request.prompt = prompt;
  request.max_output_tokens = 3;
  Require(scheduler->Submit(request), "Submit");
  std::optional<paged_kv::FinishedRequest> done;
  for (int step = 0; step < 10 && !done.has_value(); ++step) {
    const paged_kv::ScheduledStep scheduled =
        Require(scheduler->Schedule(), "Schedule");
    const std::vector<paged_kv::TokenId> sampled(scheduled.outputs, 11);
    Require(scheduler->Complete(scheduled.id, sampled), "Complete");
    done = scheduler->TakeFinished();
  }
  Require(done.has_value(), "the request ends");
  Require(done->Output(0).size() == 3, "three tokens");
  Require(Require(cache->Lookup(prompt), "Lookup").hit_tokens ==
              paged_kv::TokenCount(32),
          "the prompt's full blocks stay cached");
  Require(cache->CheckInvariants(), "CheckInvariants");
}

void MergeTwoHalves() {
  // Equal weights: the merged row is the mean, its weight their sum.
  const float out[2] = {1.0f, 3.0f};
  const float lse = 0.0f;
  const paged_kv::attention::PartialAttention parts[2] = {
      {absl::MakeConstSpan(&out[0], 1), absl::MakeConstSpan(&lse, 1)},
      {absl::MakeConstSpan(&out[1], 1), absl::MakeConstSpan(&lse, 1)}};
  float merged = 0.0f;
  float merged_lse = 0.0f;
  Require(paged_kv::attention::MergePartials(
              parts, 1, 1,
              {absl::MakeSpan(&merged, 1), absl::MakeSpan(&merged_lse, 1)}),
          "MergePartials");
  Require(std::fabs(merged - 2.0f) < 1e-6f, "the mean of 1 and 3");
  Require(std::fabs(merged_lse - std::log(2.0f)) < 1e-6f, "log 2");
}

}  // namespace

int main() {
  ServeOneRequest();
  MergeTwoHalves();
  return 0;
}

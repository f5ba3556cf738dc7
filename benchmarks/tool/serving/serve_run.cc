// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/serve_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "docs/examples/llm/engine/serving_engine.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// How long to wait at most before looking for an interrupt again.
constexpr double kLongestSleep = 0.05;

uint32_t OutputTokens(const ServeRequest& request,
                      const llm::ModelConfig& config) {
  return std::min(
      request.max_tokens,
      config.max_context - static_cast<uint32_t>(request.prompt.tokens.size()));
}

BatchLoad LoadOf(const llm::ModelConfig& config,
                 absl::Span<const ServeRequest> requests) {
  BatchLoad load;
  for (const ServeRequest& request : requests) {
    load.longest = std::max(
        load.longest, static_cast<uint32_t>(request.prompt.tokens.size()) +
                          OutputTokens(request, config));
  }
  load.sequences = requests.size();
  load.requests = static_cast<uint32_t>(requests.size());
  return load;
}

class Server {
 public:
  Server(LoadedModel& model, absl::Span<const ServeRequest> requests,
         const ServeOptions& options)
      : model_(model),
        requests_(requests),
        options_(options),
        end_tokens_(EndTokens(model)) {
    result_.batching = options.batching;
    result_.prefix_sharing = options.cache.prefix_caching;
    result_.requests.resize(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      result_.requests[i].arrival_s = requests[i].arrival_s;
    }
  }

  absl::StatusOr<ServeResult> Run(
      const std::function<bool()>& interrupted,
      const std::function<void(uint64_t)>& progress) {
    llm::EngineOptions engine_options =
        EngineOptionsFor(options_, LoadOf(model_.config(), requests_));
    engine_options.attention = model_.backend.Factory(model_.threads.get());
    PAGED_KV_ASSIGN_OR_RETURN(
        engine_, llm::ServingEngine::Create(model_.model.get(), engine_options,
                                            model_.threads.get()));
    ServingMeter meter(engine_.get());
    start_ = std::chrono::steady_clock::now();
    while (next_ < requests_.size() || !engine_->Idle()) {
      if (interrupted && interrupted()) {
        Interrupt();
        break;
      }
      SubmitArrived();
      if (engine_->Idle()) {
        WaitForArrival();
        continue;
      }
      PAGED_KV_RETURN_IF_ERROR(Step());
      if (progress) progress(done_);
    }
    TakeFinished();
    result_.stats = meter.Finish();
    result_.stats.program_bytes = model_.program_bytes;
    result_.stats.card_text = model_.backend.Text();
    result_.stats.card = model_.backend.Json();
    return result_;
  }

 private:
  double Now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

  // How many requests may be in the engine at once; a static batch is closed
  // until it is done.
  bool Admits() const {
    switch (options_.batching) {
      case Batching::kNone:
        return in_engine_ == 0;
      case Batching::kStatic:
        return filling_ && in_engine_ < options_.batch;
      case Batching::kDynamic:
        return true;
    }
    return true;
  }

  void SubmitArrived() {
    if (in_engine_ == 0) filling_ = true;
    while (next_ < requests_.size() && Admits() &&
           requests_[next_].arrival_s <= Now()) {
      Submit(next_++);
    }
    if (in_engine_ > 0) filling_ = false;
  }

  void Submit(size_t i) {
    const ServeRequest& request = requests_[i];
    llm::EngineRequest engine_request;
    engine_request.id = RequestId(i);
    engine_request.prompt = request.prompt.tokens;
    engine_request.max_output_tokens = OutputTokens(request, model_.config());
    engine_request.sampling = request.sampling;
    if (!request.ignore_end) engine_request.stop_tokens = end_tokens_;
    const absl::Status status = engine_->Submit(engine_request);
    if (status.ok()) {
      ++in_engine_;
      return;
    }
    // One that never fits must not keep the others from being served.
    result_.requests[i].reason = FinishReason::kFailed;
    result_.requests[i].error = std::string(status.message());
    ++done_;
  }

  void WaitForArrival() const {
    if (next_ >= requests_.size()) return;
    const double wait =
        std::min(requests_[next_].arrival_s - Now(), kLongestSleep);
    if (wait > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    }
  }

  absl::Status Step() {
    PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const llm::EmittedToken> emitted,
                              engine_->Step());
    const double now = Now();
    for (const llm::EmittedToken& token : emitted) {
      ServedRequest& request = result_.requests[token.request.value()];
      if (request.output.empty()) request.first_token_s = now;
      request.output.push_back(token.token);
    }
    TakeFinished();
    return absl::OkStatus();
  }

  void TakeFinished() {
    while (const auto finished = engine_->TakeFinished()) {
      ServedRequest& request = result_.requests[finished->id.value()];
      request.finished_s = Now();
      request.reason = finished->samples[0].reason;
      request.cached_tokens = finished->costs.cached_tokens;
      if (!finished->status.ok()) {
        request.error = std::string(finished->status.message());
      }
      --in_engine_;
      ++done_;
    }
  }

  void Interrupt() {
    result_.interrupted = true;
    for (size_t i = 0; i < next_; ++i) {
      engine_->Cancel(RequestId(i)).IgnoreError();  // most have ended
    }
  }

  LoadedModel& model_;
  const absl::Span<const ServeRequest> requests_;
  const ServeOptions options_;
  const std::vector<TokenId> end_tokens_;
  std::unique_ptr<llm::ServingEngine> engine_;
  std::chrono::steady_clock::time_point start_;
  ServeResult result_;
  size_t next_ = 0;  // request to submit
  uint32_t in_engine_ = 0;
  uint64_t done_ = 0;
  bool filling_ = true;
};

}  // namespace

const char* BatchingName(Batching batching) {
  switch (batching) {
    case Batching::kNone:
      return "none";
    case Batching::kStatic:
      return "static";
    case Batching::kDynamic:
      return "dynamic";
  }
  return "";
}

absl::StatusOr<Batching> ParseBatching(absl::string_view name) {
  for (const Batching batching :
       {Batching::kNone, Batching::kStatic, Batching::kDynamic}) {
    if (name == BatchingName(batching)) return batching;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown batching ", QuoteForError(std::string(name)),
                   "; use none, static or dynamic"));
}

double ServedRequest::TimePerOutputToken() const {
  if (output.size() < 2) return 0;
  return (finished_s - first_token_s) / static_cast<double>(output.size() - 1);
}

absl::StatusOr<ServeResult> Serve(
    LoadedModel& model, absl::Span<const ServeRequest> requests,
    const ServeOptions& options, const std::function<bool()>& interrupted,
    const std::function<void(uint64_t)>& progress) {
  return Server(model, requests, options).Run(interrupted, progress);
}

}  // namespace paged_kv::tool

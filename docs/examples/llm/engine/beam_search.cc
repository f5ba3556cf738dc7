// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/beam_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// Adds the time that it lives to *seconds.
class Charge {
 public:
  explicit Charge(double* seconds)
      : seconds_(seconds), begin_(std::chrono::steady_clock::now()) {}
  ~Charge() {
    const auto end = std::chrono::steady_clock::now();
    *seconds_ += std::chrono::duration<double>(end - begin_).count();
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  double* const seconds_;
  const std::chrono::steady_clock::time_point begin_;
};

// log(sum(exp(logits))): what a log probability is less than its logit.
double LogSum(absl::Span<const float> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - highest);
  return highest + std::log(sum);
}

}  // namespace

absl::StatusOr<BeamResult> BeamSearch::Run(const BeamRequest& request) {
  if (request.beams == 0 || request.prompt.empty() ||
      request.step_tokens == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a search with ", request.beams, " beams behind ",
        request.prompt.size(), " tokens, ", request.step_tokens, " per step"));
  }
  result_ = BeamResult{};
  nodes_.clear();
  const absl::Status status = Search(request);
  result_.beams = Beams();
  FreeAll();
  PAGED_KV_RETURN_IF_ERROR(status);
  return std::move(result_);
}

absl::Status BeamSearch::Search(const BeamRequest& request) {
  if (request.max_output_tokens == 0) return absl::OkStatus();
  PAGED_KV_RETURN_IF_ERROR(RunPrompt(request));
  for (;;) {
    PAGED_KV_RETURN_IF_ERROR(Branch(request));
    if (request.after_step && !request.after_step(Beams())) break;
    if (!AnyLiving()) break;
    PAGED_KV_RETURN_IF_ERROR(RunBeams());
  }
  return absl::OkStatus();
}

// Leaves one beam without tokens, and its candidates.
absl::Status BeamSearch::RunPrompt(const BeamRequest& request) {
  const auto length = static_cast<uint32_t>(request.prompt.size());
  const uint32_t chunk = std::min(request.step_tokens, length);
  StepRequest wish = StepRequest::Admit(request.prompt);
  wish.new_tokens = TokenCount(chunk);
  for (uint32_t computed = 0; computed < length;) {
    StepPlan plan;
    {
      const Charge charge(&times_->schedule_s);
      PAGED_KV_ASSIGN_OR_RETURN(plan,
                                cache_->Plan(absl::MakeConstSpan(&wish, 1)));
    }
    const PlannedSequence planned = plan.view().sequences[0];
    const uint32_t first = planned.first_new.value();
    const uint32_t count = planned.new_tokens.value();
    computed = first + count;
    const SequenceRows rows = {request.prompt.subspan(first, count), first,
                               computed == length ? 1u : 0u};
    PAGED_KV_ASSIGN_OR_RETURN(
        const absl::Span<const float> logits,
        RunStep(std::move(plan), absl::MakeConstSpan(&rows, 1)));
    if (computed == length) Rank(logits, request.beams);
    wish = StepRequest::Extend(nodes_[0].sequence,
                               TokenCount(std::min(chunk, length - computed)));
  }
  return absl::OkStatus();
}

// Computes the last token of every living beam and ranks what may follow.
absl::Status BeamSearch::RunBeams() {
  std::vector<StepRequest> wishes;
  std::vector<SequenceRows> rows;
  StepPlan plan;
  {
    const Charge charge(&times_->schedule_s);
    for (const Node& node : nodes_) {
      if (!node.living) continue;
      const auto last = absl::MakeConstSpan(&node.beam.tokens.back(), 1);
      wishes.push_back(StepRequest::Extend(node.sequence, last));
      rows.push_back({last, 0, 1});
    }
    PAGED_KV_ASSIGN_OR_RETURN(plan, cache_->Plan(wishes));
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].first_position = plan.view().sequences[i].first_new.value();
    }
  }
  PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const float> logits,
                            RunStep(std::move(plan), rows));
  Rank(logits, static_cast<uint32_t>(nodes_.size()));
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const float>> BeamSearch::RunStep(
    StepPlan plan, absl::Span<const SequenceRows> rows) {
  StepId step;
  {
    const Charge charge(&times_->schedule_s);
    PAGED_KV_ASSIGN_OR_RETURN(step, cache_->Commit(std::move(plan)));
    PAGED_KV_ASSIGN_OR_RETURN(const StepView view, cache_->View(step));
    if (nodes_.empty()) nodes_.push_back({Beam{}, view.sequences[0].id, true});
  }
  const double tables_before = runner_->tables_s();
  absl::StatusOr<absl::Span<const float>> logits;
  {
    const Charge charge(&times_->forward_s);
    logits = runner_->Run(step, rows);
  }
  const double tables = runner_->tables_s() - tables_before;
  times_->tables_s += tables;
  times_->forward_s -= tables;
  ++times_->steps;
  for (const SequenceRows& row : rows) {
    result_.computed_tokens += row.tokens.size();
  }
  const Charge charge(&times_->schedule_s);
  // Freed before its step retires, a sequence shares nothing of it.
  if (!logits.ok()) FreeAll();
  PAGED_KV_RETURN_IF_ERROR(cache_->Retire(step));
  return logits;
}

void BeamSearch::Rank(absl::Span<const float> logits, uint32_t beams) {
  const Charge charge(&times_->sample_s);
  candidates_.clear();
  const auto better = [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.parent != b.parent) return a.parent < b.parent;
    return a.token < b.token;
  };
  // Of one beam's continuations no more than `beams` can stay.
  const auto keep_best = [&](size_t first) {
    if (candidates_.size() - first <= beams) return;
    const auto begin = candidates_.begin() + static_cast<ptrdiff_t>(first);
    std::nth_element(begin, begin + beams, candidates_.end(), better);
    candidates_.resize(first + beams);
  };
  for (uint32_t parent = 0; parent < nodes_.size(); ++parent) {
    const Node& node = nodes_[parent];
    if (!node.living) {
      candidates_.push_back({node.beam.score, parent, 0, true});
      continue;
    }
    const absl::Span<const float> row = logits.first(vocab_);
    logits.remove_prefix(vocab_);
    const double base = node.beam.score - LogSum(row);
    const size_t first = candidates_.size();
    for (uint32_t token = 0; token < vocab_; ++token) {
      candidates_.push_back({base + double{row[token]}, parent,
                             static_cast<TokenId>(token), false});
    }
    keep_best(first);
  }
  keep_best(0);
  std::sort(candidates_.begin(), candidates_.end(), better);
}

absl::Status BeamSearch::Branch(const BeamRequest& request) {
  const Charge charge(&times_->schedule_s);
  std::vector<Node> parents = std::exchange(nodes_, {});
  for (const Candidate& candidate : candidates_) {
    Node node;
    node.beam = parents[candidate.parent].beam;
    if (!candidate.ended) {
      node.beam.tokens.push_back(candidate.token);
      node.beam.score = candidate.score;
      if (std::count(request.stop_tokens.begin(), request.stop_tokens.end(),
                     candidate.token) > 0) {
        node.beam.reason = FinishReason::kStopToken;
      } else if (node.beam.tokens.size() == request.max_output_tokens) {
        node.beam.reason = FinishReason::kMaxTokens;
      }
      node.living = node.beam.reason == FinishReason::kUnfinished;
    }
    nodes_.push_back(std::move(node));
  }
  // Who has children that go on keeps its sequence for the first of them.
  std::vector<bool> has_heir(parents.size(), false);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const uint32_t parent = candidates_[i].parent;
    if (!nodes_[i].living || has_heir[parent]) continue;
    nodes_[i].sequence = parents[parent].sequence;
    has_heir[parent] = true;
  }
  for (size_t i = 0; i < parents.size(); ++i) {
    if (!parents[i].living || has_heir[i]) continue;
    PAGED_KV_CHECK(cache_->Free(parents[i].sequence).ok());
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].living || nodes_[i].sequence != SequenceId()) continue;
    PAGED_KV_ASSIGN_OR_RETURN(
        nodes_[i].sequence,
        cache_->Fork(parents[candidates_[i].parent].sequence));
    ++result_.forks;
  }
  return absl::OkStatus();
}

std::vector<Beam> BeamSearch::Beams() const {
  std::vector<Beam> beams;
  for (const Node& node : nodes_) beams.push_back(node.beam);
  return beams;
}

bool BeamSearch::AnyLiving() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const Node& node) { return node.living; });
}

void BeamSearch::FreeAll() {
  for (Node& node : nodes_) {
    if (!node.living) continue;
    node.living = false;
    // Not there if the search failed before it got one.
    cache_->Free(node.sequence).IgnoreError();
  }
}

}  // namespace paged_kv::llm

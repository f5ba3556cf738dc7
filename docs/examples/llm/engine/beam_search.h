// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_BEAM_SEARCH_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_BEAM_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "docs/examples/llm/engine/engine_times.h"
#include "docs/examples/llm/engine/step_runner.h"
#include "paged_kv/batch_scheduler_request.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv::llm {

// One continuation of the prompt.
struct Beam {
  std::vector<TokenId> tokens;  // without the prompt
  double score = 0;             // sum of the tokens' log probabilities
  FinishReason reason = FinishReason::kUnfinished;
};

// Spans are borrowed while the search runs.
struct BeamRequest {
  absl::Span<const TokenId> prompt;  // not empty
  uint32_t beams = 1;
  uint32_t max_output_tokens = 0;
  absl::Span<const TokenId> stop_tokens;  // a beam ends with the first
  uint32_t step_tokens = 512;             // of the prompt, per step
  // Called after each step with the beams so far; false ends the search. May be
  // empty.
  std::function<bool(absl::Span<const Beam>)> after_step;
};

struct BeamResult {
  std::vector<Beam> beams;  // best first
  uint64_t computed_tokens = 0;
  uint64_t forks = 0;
};

// Beam search (Lowerre 1976; Sutskever et al. 2014, arXiv:1409.3215) over the
// paged cache. In each step every living beam is continued by every token; of
// all these and the beams that have ended, those with the highest scores stay,
// of equals the one whose parent ranked better, then the smaller token.
//
// A beam is a sequence of the cache. Its first child goes on with the sequence,
// further ones are forks of it, which share its blocks; the first of them to
// write into a shared one gets a copy. The sequence of a beam without children
// is freed before anything is taken, so that as many sequences live as beams.
//
// Thread safety: thread-compatible.
class BeamSearch {
 public:
  // All are borrowed; `times` is added to.
  BeamSearch(KvCacheManager* cache, StepRunner* runner, uint32_t vocab,
             EngineTimes* times)
      : cache_(cache), runner_(runner), vocab_(vocab), times_(times) {}

  // Errors leave no sequence behind. InvalidArgument: no beams, an empty
  // prompt, a step of no tokens. Others are the cache's (ResourceExhausted: the
  // pool is too small) and the forward pass's.
  absl::StatusOr<BeamResult> Run(const BeamRequest& request);

 private:
  // A beam that may have a sequence; it has none once it has ended.
  struct Node {
    Beam beam;
    SequenceId sequence;
    bool living = false;
  };
  // One way to go on. `token` is none where the beam has ended.
  struct Candidate {
    double score = 0;
    uint32_t parent = 0;  // index in nodes_
    TokenId token = 0;
    bool ended = false;
  };

  absl::Status Search(const BeamRequest& request);
  absl::Status RunPrompt(const BeamRequest& request);
  absl::Status RunBeams();
  // Computes the rows of a planned step. On error the step's sequences have
  // been freed.
  absl::StatusOr<absl::Span<const float>> RunStep(
      StepPlan plan, absl::Span<const SequenceRows> rows);
  // logits [living beams, vocab], of their last tokens.
  void Rank(absl::Span<const float> logits, uint32_t beams);
  // Turns the candidates into beams.
  absl::Status Branch(const BeamRequest& request);
  std::vector<Beam> Beams() const;
  bool AnyLiving() const;
  void FreeAll();

  KvCacheManager* const cache_;
  StepRunner* const runner_;
  const uint32_t vocab_;
  EngineTimes* const times_;

  std::vector<Node> nodes_;  // best first
  std::vector<Candidate> candidates_;
  BeamResult result_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_BEAM_SEARCH_H_

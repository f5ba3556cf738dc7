#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Plants faults that caches are known for, and sees whether a test notices.

Each fault is one small edit of paged_kv/. It is built into a copy of the tree
and the core's tests run until one fails. A fault whose text is no longer in its
file is an error: change it along with the code.

  scripts/planted_faults.py               # all, as a Markdown table
  scripts/planted_faults.py --only fork   # those whose area or name has it
"""

import re

from fault_planting import ROOT, Fault, cmake_bench, main

TESTS = "kv_cache_manager|regression|eviction_policy|page_table|op_log"

# (area, what is wrong, file, old text, new text)
FAULTS = [
    ("pool", "a second reference is not counted", "block_pool.cc",
     "  ++meta.refs;\n", "  if (meta.refs != 1) ++meta.refs;\n"),
    ("pool", "a sequence more than the limit", "step_planner.cc",
     "if (admissions_ == state_.sequences.free_slots())",
     "if (admissions_ > state_.sequences.free_slots())"),
    ("pool", "the watermark is ignored", "step_planner.cc",
     "admission ? state_.options.watermark_blocks.value() : 0", "0"),
    ("pool", "a freed id is still good", "sequence_table.cc",
     "sequence.generation == generation", "true"),
    ("pool", "quarantine ends with the oldest step", "cache_state.cc",
     "FindStep(StepId(last_step))", "FindStep(StepId(retired_step + 1))"),
    ("pool", "no quarantine at all", "block_lifecycle.cc",
     "if (list == DeviceTier::kNoList) {", "if (true) {"),
    ("CoW", "two owners write in place", "step_planner.cc",
     "if (pool.meta(tail).refs <= 1) {", "if (pool.meta(tail).refs <= 2) {"),
    ("CoW", "shared content is overwritten", "step_commit.cc",
     "if (pool.shareable(tail)) state->index->Detach(&pool, tail);",
     "if (pool.shareable(tail)) return;"),
    ("CoW", "a copy leaves out the last slot", "step_planner.cc",
     "tail, kNoBlock, filled});", "tail, kNoBlock, filled - 1});"),
    ("CoW", "a fork forgets its key extras", "sequence_edit.cc",
     "sequences.extras(parent), source.extra_bytes,",
     "sequences.extras(parent), 0,"),
    ("CoW", "a fork leaves plans valid", "kv_cache_manager.cc",
     "  if (child.ok()) ++state_->version;\n", ""),
    ("index", "shared before it is written", "prefix_lookup.cc",
     "std::min(sequence.written, sequence.known)",
     "std::min(sequence.tokens, sequence.known)"),
    ("index", "shared before its values are known", "prefix_lookup.cc",
     "std::min(sequence.written, sequence.known)", "sequence.written"),
    ("index", "nothing is left to compute", "prefix_lookup.cc",
     "(prompt_tokens - 1) / chunk_tokens", "prompt_tokens / chunk_tokens"),
    ("index", "the parent is not compared", "prefix_index.cc",
     "nodes_[nodes_[node].parent].serial == parent &&", ""),
    ("index", "the extras are not compared", "prefix_index.cc",
     "extras_.Equals(nodes_[node].extras, extras)) {", "true) {"),
    ("index", "every lost copy is an event", "prefix_index.cc",
     "  if (next != kNoBlock) return;\n", ""),
    ("index", "late values share nothing", "sequence_edit.cc",
     "tokens.size());\n  IndexWritten(state, slot);\n  return",
     "tokens.size());\n  return"),
    ("index", "a cut keeps its place in the index", "sequence_edit.cc",
     "  RewindIndex(state, slot, tokens);\n", ""),
    ("steps", "a cut forgets steps in flight", "sequence_edit.cc",
     "  state->sequences.CutWriteEnds(slot, tokens);\n", ""),
    ("steps", "a cut keeps the values behind it", "sequence_edit.cc",
     "  sequence.known = std::min(sequence.known, tokens);\n", ""),
    ("steps", "stale plans commit", "kv_cache_manager.cc",
     "if (record->version != state_->version) {", "if (false) {"),
    ("steps", "steps retire in any order", "kv_cache_manager.cc",
     "if (step.value() != state_->retired_step + 1) {", "if (false) {"),
    ("steps", "drafts outlive Accept", "sequence_edit.cc",
     "  sequence.known = sequence.tokens;\n  sequence.lookahead = 0;\n",
     "  sequence.known = sequence.tokens;\n"),
    ("steps", "slots of a step are shifted", "page_table_export.cc",
     "position % group.block_tokens;", "(position + 1) % group.block_tokens;"),
    ("eviction", "a hit of the same plan is evicted", "step_planner.cc",
     "while (pool.meta(victim).refs > 0 ||", "while ("),
    ("eviction", "the last release sets the priority", "block_pool.cc",
     "std::max<uint32_t>(meta.priority, priority)", "(priority)"),
    ("eviction", "a window releases head first", "step_commit.cc",
     "for (uint32_t logical = needed; logical-- > first;) {",
     "for (uint32_t logical = first; logical < needed; ++logical) {"),
    ("window", "a block is released one token early", "group_geometry.h",
     "(tokens - window + 1) / block_tokens",
     "(tokens - window + 2) / block_tokens"),
    ("window", "sinks are released, too", "step_commit.cc",
     "std::max(extent.first, group.sink_blocks)", "extent.first"),
]

TARGETS = [
    "paged_kv_" + test.stem
    for test in sorted((ROOT / "tests" / "paged_kv").glob("*_test.cc"))
    if re.search(TESTS, test.stem) and "stress" not in test.stem
]

if __name__ == "__main__":
    main(__doc__,
         [Fault(area, name, [(f"paged_kv/{file}", old, new)])
          for area, name, file, old, new in FAULTS],
         cmake_bench(lambda fault: TARGETS, 300))

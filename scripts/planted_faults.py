#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Plants faults that caches are known for, and sees whether a test notices.

Each fault is one small edit of paged_kv/. It is built into a copy of the tree
and the core's tests run until one fails. A fault whose text is no longer in its
file is an error: change it along with the code.

  scripts/planted_faults.py               # all, as a Markdown table
  scripts/planted_faults.py --only fork   # those whose name has this word
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
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


def run(command, **kwargs):
    """The exit code and what was printed."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", **kwargs
        )
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return -1, "timeout"


def plant(tree, fault):
    """Edits the file; returns what undoes it."""
    _, name, file, old, new = fault
    path = tree / "paged_kv" / file
    text = path.read_text()
    if old not in text:
        sys.exit(f"'{name}': {file} no longer holds\n{old}")
    path.write_text(text.replace(old, new, 1))
    return lambda: path.write_text(text)


def noticed_by(programs, tree, seconds=300):
    """The first test that fails or takes too long, None if all pass."""
    for program in programs:
        code, output = run([program], cwd=tree, timeout=seconds)
        if code == 0:
            continue
        failed = re.findall(r"\[  FAILED  \] ([\w/]+\.[\w/]+)", output)
        running = re.findall(r"\[ RUN      \] ([\w/]+\.[\w/]+)", output)
        return (failed or running or [program.name])[0 if failed else -1]
    return None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="word in a fault's name")
    parser.add_argument("--jobs", default="2", help="compile jobs")
    args = parser.parse_args()
    faults = [f for f in FAULTS if args.only in f[1]]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="paged_kv_faults_") as name:
        tree = pathlib.Path(name) / "tree"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns("build", ".git")
        )
        build = pathlib.Path(name) / "build"
        code, output = run(
            ["cmake", "-S", tree, "-B", build, "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1",
             "-DPAGED_KV_WERROR=OFF", "-DBUILD_SHARED_LIBS=ON",
             "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON", "-DPAGED_KV_BUILD_TOOL=OFF",
             "-DPAGED_KV_BUILD_BENCHMARKS=OFF",
             "-DPAGED_KV_BUILD_EXAMPLES=OFF", "-DPAGED_KV_INSTALL=OFF"]
        )
        if code != 0:
            sys.exit(output)
        names = [
            "paged_kv_" + t.stem
            for t in sorted((tree / "tests" / "paged_kv").glob("*_test.cc"))
            if re.search(TESTS, t.stem) and "stress" not in t.stem
        ]
        ninja = ["ninja", "-C", str(build), "-j", args.jobs] + names
        code, output = run(ninja)
        if code != 0:
            sys.exit(output)
        programs = [build / "bin" / "tests" / n for n in names]
        if (test := noticed_by(programs, tree)) is not None:
            sys.exit(f"{test} fails without any fault")
        print("| Area | Fault | Noticed first by |\n| --- | --- | --- |")
        for fault in faults:
            undo = plant(tree, fault)
            code, _ = run(ninja)
            test = noticed_by(programs, tree) if code == 0 else "the compiler"
            undo()
            missed += test is None
            print(f"| {fault[0]} | {fault[1]} | {test or '**nobody**'} |",
                  flush=True)
    print(f"\n{len(faults) - missed} of {len(faults)} noticed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()

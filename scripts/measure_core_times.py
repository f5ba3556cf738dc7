#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Times the manager's operations over pool sizes, with their spread.

Runs the benchmarks of the release preset several times, one after the other,
and prints for each case and pool size the median over the repetitions, in
nanoseconds per unit (block, token, ...), and the smallest and largest value of
the batch median. Says how the evicting allocation compares with a dependent
read and with the naive cache.

  scripts/measure_core_times.py [--repetitions 5] [--filter REGEX] [--json FILE]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

BENCHMARKS = ("eviction", "kv_cache_manager", "prefix_hit", "page_table")
COUNTERS = ("ns", "p50_ns", "p99_ns", "p99.9_ns", "dram_ns", "x_dram")


def run(binary, args):
    """All repetitions of one binary, as {name: {blocks: [counters]}}."""
    command = [
        str(binary), "--benchmark_format=json",
        f"--benchmark_repetitions={args.repetitions}",
        f"--benchmark_min_time={args.min_time}",
        f"--benchmark_filter={args.filter}",
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stderr}")
    if not result.stdout.strip():  # the filter left nothing
        return {}
    cases = {}
    for row in json.loads(result.stdout)["benchmarks"]:
        if row["run_type"] != "iteration":
            continue
        name, blocks = row["run_name"].split("/")[:2]
        cases.setdefault(name, {}).setdefault(
            int(blocks.removeprefix("blocks:")), []).append(
                {counter: row[counter] for counter in COUNTERS
                 if counter in row})
    return cases


def summarise(repetitions):
    """Medians of the counters, and the spread of `ns`."""
    summary = {}
    for counter in COUNTERS:
        values = [r[counter] for r in repetitions if counter in r]
        if values:
            summary[counter] = round(statistics.median(values), 2)
    values = [r["ns"] for r in repetitions]
    summary["ns_min"] = round(min(values), 2)
    summary["ns_max"] = round(max(values), 2)
    return summary


def print_table(results):
    heads = ["case", "blocks", "ns", "min", "max", "p50", "p99", "p99.9",
             "read", "x read"]
    print("| " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * (len(heads) - 1))
    for name, sizes in results.items():
        for blocks, s in sizes.items():
            cells = [name.removeprefix("BM_"), f"{blocks:,}"]
            for key in ("ns", "ns_min", "ns_max", "p50_ns", "p99_ns",
                        "p99.9_ns", "dram_ns"):
                value = s.get(key)
                cells.append("" if value is None else
                             f"{value:,.1f}" if value < 100 else
                             f"{value:,.0f}")
            cells.append(f"{s['x_dram']:.2f}")
            print("| " + " | ".join(cells) + " |")


def print_ratios(results):
    for blocks, naive in results.get("BM_NaiveEviction", {}).items():
        ours = results.get("BM_Eviction", {}).get(blocks)
        if ours is not None:
            print(f"evicting allocation, {blocks:,} blocks: "
                  f"{ours['x_dram']:.2f}x a dependent read, "
                  f"{naive['ns'] / ours['ns']:.1f}x faster than the naive cache")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path,
                        default=root / "build/release/bin/benchmarks")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--min_time", default="0.2",
                        help="seconds measured per repetition")
    parser.add_argument("--filter", default=".", help="regex of benchmarks")
    parser.add_argument("--json", type=pathlib.Path, help="also write this")
    args = parser.parse_args()

    results = {}
    for name in BENCHMARKS:
        binary = args.folder / f"paged_kv_{name}_benchmark"
        if not binary.exists():
            parser.error(f"{binary} is missing: build the release preset")
        for case, sizes in run(binary, args).items():
            results[case] = {blocks: summarise(repetitions)
                             for blocks, repetitions in sizes.items()}
    print_table(results)
    print_ratios(results)
    if args.json:
        args.json.write_text(json.dumps({"schema": 1, "cases": results},
                                        indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())

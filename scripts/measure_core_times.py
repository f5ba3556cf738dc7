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

The largest pools take most of the time, to fill. To measure in short runs, give
each a filter such as 'Eviction/blocks:10000000$' and --merge, which keeps what
the JSON file has of other cases and sizes. --plot draws cost over pool size.
"""

import argparse
import json
import pathlib
import shutil
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


# Curves of the plot: case, title, colour.
CURVES = (
    ("BM_NaiveEviction", "naive cache: evicting allocation", "#D55E00"),
    ("BM_Eviction", "evicting allocation", "#0072B2"),
    ("BM_KvCacheManager_Append", "append a token", "#009E73"),
    ("BM_PrefixHit_Admit", "hit, per block", "#CC79A7"),
    ("BM_KvCacheManager_Free", "free, per block", "#E69F00"),
    ("BM_PageTable_Export", "page table, per sequence", "#56B4E9"),
)


def plot(results, path):
    """Nanoseconds over pool size, beside a dependent read, as SVG."""
    lines = ["set terminal svg size 860,480 font 'sans,13' background 'white'",
             f"set output '{path}'", "set logscale xy", "set grid",
             "set xlabel 'blocks of the pool, all cached'",
             "set ylabel 'ns (median)'", "set format x '10^{%L}'",
             "set key outside right center Left reverse samplen 2 width -7",
             "set xrange [700:1.4e7]"]
    curves = []
    reads = {}
    for case, title, colour in CURVES:
        sizes = results.get(case, {})
        if not sizes:
            continue
        name = case.lower()
        rows = "\n".join(f"{n} {s['ns']}" for n, s in sorted(sizes.items()))
        lines.append(f"${name} << EOD\n{rows}\nEOD")
        curves.append(f"${name} with linespoints pt 7 lw 2 lc rgb '{colour}' "
                      f"title '{title}'")
        for blocks, s in sizes.items():
            reads.setdefault(blocks, []).append(s["dram_ns"])
    rows = "\n".join(f"{n} {statistics.median(r)}"
                     for n, r in sorted(reads.items()))
    lines.append(f"$read << EOD\n{rows}\nEOD")
    curves.append("$read with lines dt 2 lw 2 lc rgb 'black' "
                  "title 'one dependent read'")
    lines.append("plot " + ", ".join(curves))
    subprocess.run(["gnuplot"], input="\n".join(lines), text=True, check=True)


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
    parser.add_argument("--merge", action="store_true",
                        help="keep other results that the JSON file has")
    parser.add_argument("--plot", type=pathlib.Path, metavar="SVG",
                        help="also draw this (needs gnuplot)")
    args = parser.parse_args()
    if args.plot and shutil.which("gnuplot") is None:
        parser.error("gnuplot is missing: scripts/install_deps.sh all")

    results = {}
    if args.merge and args.json and args.json.exists():
        for case, sizes in json.loads(args.json.read_text())["cases"].items():
            results[case] = {int(n): s for n, s in sizes.items()}
    for name in BENCHMARKS:
        binary = args.folder / f"paged_kv_{name}_benchmark"
        if not binary.exists():
            parser.error(f"{binary} is missing: build the release preset")
        for case, sizes in run(binary, args).items():
            results.setdefault(case, {}).update(
                (blocks, summarise(repetitions))
                for blocks, repetitions in sizes.items())
            results[case] = dict(sorted(results[case].items()))
    print_table(results)
    print_ratios(results)
    if args.json:
        args.json.write_text(json.dumps({"schema": 1, "cases": results},
                                        indent=2))
    if args.plot:
        plot(results, args.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())

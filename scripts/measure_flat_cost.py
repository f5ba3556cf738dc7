#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of the manager's operations over pool sizes.

Runs paged_kv_count_instructions (release preset) under valgrind's callgrind
and prints instructions per unit of each case and pool size, and the ratio of
the largest to the smallest. Exit code 1 if a ratio is above --limit.

  scripts/measure_flat_cost.py [--blocks 1000,10000,...] [--json FILE]
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SIZES = [10**n for n in range(3, 8)]
# Batches are chosen so that every case counts some hundred runs.
CASES = {
    "eviction": 32,
    "prefill": 16,
    "allocate_free": 8,
    "free": 8,
    "append": 2,
    "decode_step": 2,
    "fork_and_write": 8,
    "lookup": 8,
    "hit": 8,
    "export": 1,
}


def count(binary, case, blocks, batches):
    """Instructions and units of `batches` batches of one case."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        command = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no",
            "--collect-atstart=no", f"--callgrind-out-file={out}",
            str(binary), case, str(blocks), str(batches),
        ]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{run.stderr}")
        units, unit = run.stdout.split()
        totals = re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)
        if totals is None:
            sys.exit(f"callgrind counted nothing for {case}")
        return int(totals.group(1)), int(units), unit


def measure(binary, cases, sizes):
    """One row per case: instructions per unit at every size, and max/min."""
    rows = []
    for case in cases:
        row = {"case": case, "instructions": {}}
        for blocks in sizes:
            total, units, unit = count(binary, case, blocks, CASES[case])
            row["unit"] = unit
            row["instructions"][blocks] = round(total / units, 2)
            print(f"  {case} {blocks}: {total / units:.1f} per {unit}",
                  file=sys.stderr, flush=True)
        values = row["instructions"].values()
        row["max_over_min"] = round(max(values) / min(values), 4)
        rows.append(row)
    return rows


def print_table(rows, sizes):
    print(f"{'instructions per':26}" +
          "".join(f"{blocks:>12,}" for blocks in sizes) + "   max/min")
    for row in rows:
        name = f"{row['case']} {row['unit']}"
        print(f"{name:26}" + "".join(
            f"{row['instructions'][blocks]:12.1f}" for blocks in sizes) +
              f"{row['max_over_min']:10.3f}")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--binary", type=pathlib.Path, default=root /
        "build/release/bin/measurements/paged_kv_count_instructions")
    parser.add_argument("--blocks", default=",".join(map(str, SIZES)),
                        help="pool sizes, at least 1000 each")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json", type=pathlib.Path, help="also write this")
    parser.add_argument("--limit", type=float, default=1.1,
                        help="largest max/min that counts as flat")
    args = parser.parse_args()
    sizes = [int(blocks) for blocks in args.blocks.split(",")]
    cases = args.cases.split(",")
    if unknown := [case for case in cases if case not in CASES]:
        parser.error(f"unknown cases {unknown}; there are {list(CASES)}")
    if not args.binary.exists():
        parser.error(f"{args.binary} is missing: build the release preset")
    if shutil.which("valgrind") is None:
        parser.error("valgrind is missing: scripts/install_deps.sh all")

    rows = measure(args.binary, cases, sizes)
    print_table(rows, sizes)
    if args.json:
        args.json.write_text(json.dumps({"schema": 1, "rows": rows}, indent=2))
    if uneven := [r["case"] for r in rows if r["max_over_min"] > args.limit]:
        print(f"not flat (above {args.limit}): {', '.join(uneven)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Line and toggle coverage of the RTL kernels under their Verilator benches.

  scripts/rtl_coverage.py            # a Markdown table and what was missed
  scripts/rtl_coverage.py --bursts=20000 --only=kv_mover

Lines are Verilator's points of lines and branches; toggles are bits of signals,
each in every instance of its module, buses of 512 bits included. UNREACHABLE
names the points that no launch can reach, each with the reason; all others
count. Fails below 95 % of these, if a point that is said to be unreachable was
reached, or if an entry names no point.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from rtl_builder import KERNELS, RTL, RtlBench, must

WANTED = 0.95

# (kernel, instance, signals, first bit, last bit, why). Regular expressions of
# whole names; instances without the kernel's name, "" for the kernel itself.
UNREACHABLE = [
    (".*", ".*", "unused", 0, 0,
     "names inputs that nothing reads; constant 0"),
    (".*", ".*", r"(s_axi_control|s)_[br]resp", 0, 1,
     "registers always answer OKAY"),
    (".*", "", "m_axi_.*_a[rw]size", 0, 0,
     "constant: 64 bytes per beat"),
    (".*", "", "m_axi_.*_a[rw]burst", 1, 1,
     "constant: incrementing bursts"),
    (".*", ".*", "(m|m_axi_.*)_a[rw]len", 6, 7,
     "bursts have at most 64 beats"),
    (".*", ".*", "((m|m_axi_.*)_a[rw]addr|a[rw]_address|burst_address)", 0, 5,
     "addresses are whole beats"),
    (".*", ".*", "((m|m_axi_.*)_a[rw]addr|a[rw]_address|burst_address)", 63, 63,
     "a base below 2^48 and less than 2^32 pages of 2^30 bytes"),
    (".*", r".*_port\.splitter", "beat", 57, 57,
     "a base below 2^48 and less than 2^32 pages of 2^30 bytes"),
    (".*", "(table|work)_port", "(m_araddr|ar_address|burst_address)", 49, 62,
     "lists start below 2^48 and have at most 2^30 bytes"),
    (".*", "", "m_axi_(table|work)_araddr", 49, 62,
     "lists start below 2^48 and have at most 2^30 bytes"),
    ("kv_gather", r".*_port(\.splitter)?", "abort", 0, 0,
     "kv_gather cuts no run short"),
    ("kv_mover", "source_port", "abort", 0, 0,
     "only the list of items is cut short"),
    (".*", "(registers|job|)", "status", 4, 31,
     "codes have 4 bits"),
    ("kv_gather", "", "slice_sent", 24, 24,
     "counts to 2^24 - 1"),
    ("kv_gather", "(|job|unpacker)",
     "entries_(checked|sent)|left|item|first_item|items_done|bad_items", 29, 31,
     "a launch has at most 2^28 entries"),
    ("kv_gather", "(registers|job|)", "status", 61, 63,
     "first_item: a launch has at most 2^28 entries"),
    ("kv_gather", "(registers|job|)", "status", 157, 159,
     "items_done: a launch has at most 2^28 entries"),
    ("kv_gather", "(registers|job|)", "status", 189, 191,
     "bad_items: of one launch, since it refuses the next"),
    ("kv_mover", "(|job)", "items_(taken|done)", 21, 31,
     "a launch has at most 2^20 items"),
    ("kv_mover", "job", "item|first_item", 21, 31,
     "a launch has at most 2^20 items"),
    ("kv_mover", "(registers|job|)", "status", 53, 63,
     "first_item: a launch has at most 2^20 items"),
    ("kv_mover", "(registers|job|)", "status", 149, 159,
     "items_done: a launch has at most 2^20 items"),
    ("kv_mover", "job", "bad_items", 1, 31,
     "the first ends its launch and refuses the next"),
    ("kv_mover", "(registers|job|)", "status", 161, 191,
     "bad_items: the first ends its launch and refuses the next"),
    ("kv_mover", "items", "code", 3, 3, "an item has the codes 4, 6 and 7"),
    ("kv_mover", "", "item_code", 3, 3, "an item has the codes 4, 6 and 7"),
    ("kv_mover", "items", "(source|target)_end", 33, 33,
     "ends below 2^33: two numbers of 32 bits and a place inside a page"),
    ("kv_mover", "items", "detail", 33, 63, "ends below 2^33"),
    ("kv_mover", "", "item_detail", 33, 63, "ends below 2^33"),
]

Point = collections.namedtuple("Point", "kind module line what bit instance")


def parse(folder, kernel):
    """How often each point was seen, over all files that the benches wrote."""
    counts = collections.Counter()
    for path in folder.glob("*.dat"):
        for line in path.read_text().splitlines():
            match = re.match(r"C '(.*)' (\d+)$", line)
            if not match:
                continue
            field = dict(pair.split("\x02")
                         for pair in match[1].split("\x01") if pair)
            kind = field["page"].split("/")[0].removeprefix("v_")
            what, bit = field["o"], 0
            vector = re.fullmatch(r"(.*)\[(\d+)\]", what)
            if kind == "toggle" and vector:
                what, bit = vector[1], int(vector[2])
            instance = field["h"].removeprefix(f"TOP.{kernel}").lstrip(".")
            counts[Point(kind == "toggle" and "toggle" or "line",
                         pathlib.Path(field["f"]).stem,
                         f"{field['l']}:{field['n']}", what, bit,
                         instance)] += int(match[2])
    return counts


def entries_of(kernel, point):
    """The entries of UNREACHABLE that name the point."""
    if point.kind != "toggle":
        return []
    return [i for i, (kernels, instances, signals, first, last, _)
            in enumerate(UNREACHABLE)
            if first <= point.bit <= last
            and re.fullmatch(kernels, kernel)
            and re.fullmatch(instances, point.instance)
            and re.fullmatch(signals, point.what)]


def measure(kernel, tree, bursts):
    """The counts of all points of a kernel."""
    bench = RtlBench(kernel, tree, coverage=True)
    bench.build_tests()
    program = bench.build(RTL, tree / f"{kernel}_cov")
    folder = tree / f"{kernel}_data"
    folder.mkdir()
    environment = {**os.environ, "PAGED_KV_RTL_COVERAGE": str(folder),
                   "PAGED_KV_RTL_BURSTS": str(bursts)}
    done = subprocess.run([program, "--gtest_brief=1"], env=environment,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)
    return parse(folder, kernel)


def ranges(bits):
    """[0, 1, 2, 5] as "0-2 5"."""
    runs = []
    for bit in sorted(bits):
        if runs and runs[-1][1] == bit - 1:
            runs[-1][1] = bit
        else:
            runs.append([bit, bit])
    return " ".join(f"{a}-{b}" if a < b else str(a) for a, b in runs)


def report(kernel, counts, used):
    """Prints the row and returns the shares that were reached, what was missed
    and what is wrong."""
    total, reached = collections.Counter(), collections.Counter()
    missed, wrong = collections.defaultdict(list), []
    excluded = 0
    for point, count in counts.items():
        entries = entries_of(kernel, point)
        used.update(entries)
        if entries:
            excluded += 1
            if count > 0:
                wrong.append(f"reached: {kernel} {point}")
            continue
        total[point.kind] += 1
        reached[point.kind] += count > 0
        if count == 0:
            missed[point._replace(bit=0)].append(point.bit)
    cells, shares = [], {}
    for kind in ["line", "toggle"]:
        share = shares[kind] = reached[kind] / total[kind]
        cells.append(f"{reached[kind]:,} of {total[kind]:,} | {share:.1%}")
        if share < WANTED:
            wrong.append(f"{kernel}: {kind} coverage is below {WANTED:.0%}")
    print(f"| `{kernel}` | {' | '.join(cells)} | {excluded:,} |", flush=True)
    return shares, missed, wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="one kernel")
    parser.add_argument("--bursts", type=int, default=4000,
                        help="of the property tests")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path,
                        help="file for the shares, if nothing is wrong")
    args = parser.parse_args()
    must(["verilator", "--version"])
    kernels = [k for k in KERNELS if args.only in k]
    used, shares, missed, wrong = set(), {}, {}, []
    with tempfile.TemporaryDirectory(prefix="paged_kv_rtl_coverage_") as name:
        tree = pathlib.Path(name)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            counts = list(pool.map(
                lambda kernel: measure(kernel, tree, args.bursts), kernels))
    print("| kernel | lines and branches | | toggles | | unreachable |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for kernel, count in zip(kernels, counts):
        shares[kernel], missed[kernel], problems = report(kernel, count, used)
        wrong += problems
    for kernel in kernels:
        print(f"\nMissed in {kernel}:")
        for point, bits in sorted(missed[kernel].items()):
            print(f"  {point.module}.sv:{point.line} {point.instance or '-'}: "
                  f"{point.what} [{ranges(bits)}]")
    if not args.only:
        wrong += [f"names no point: {entry}"
                  for i, entry in enumerate(UNREACHABLE) if i not in used]
    print("\n".join(wrong), file=sys.stderr)
    if args.json and not wrong:
        args.json.write_text(json.dumps(shares))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Prints the area of the RTL kernels as yosys maps them to UltraScale+ cells.

  scripts/rtl_area.py                   # all kernels, as a Markdown table
  scripts/rtl_area.py kv_gather

Logic synthesis alone: no placement, so no clock frequency.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

RTL = pathlib.Path(__file__).resolve().parent.parent / "fpga_dma/kernels/rtl"
COLUMNS = ["LUT", "FF", "DSP", "BRAM36", "LUTRAM", "CARRY"]


def column(cell):
    """The column that a cell counts in, and how much."""
    if re.fullmatch(r"LUT[1-6]|INV", cell):
        return "LUT", 1
    if re.fullmatch(r"FD[RSCP]E(_1)?", cell):
        return "FF", 1
    if cell.startswith("DSP48"):
        return "DSP", 1
    if cell.startswith("RAMB36"):
        return "BRAM36", 1
    if cell.startswith("RAMB18"):
        return "BRAM36", 0.5
    if re.match(r"RAM\d|SRL", cell):
        return "LUTRAM", 1
    if cell.startswith("CARRY"):
        return "CARRY", 1
    return None, 0


def area(kernel):
    files = " ".join(str(path) for path in sorted(RTL.glob("*.sv")))
    commands = (f"read_verilog -sv {files}; hierarchy -top {kernel}; "
                f"synth_xilinx -family xcup -top {kernel} -flatten; "
                "stat -tech xilinx")
    try:
        done = subprocess.run(["yosys", "-p", commands], capture_output=True,
                              text=True)
    except FileNotFoundError:
        sys.exit("yosys is not installed (Debian: yosys)")
    if done.returncode != 0:
        sys.exit(done.stdout[-2000:] + done.stderr)
    sums = dict.fromkeys(COLUMNS, 0)
    statistics = done.stdout[done.stdout.rindex("Number of cells"):]
    for cell, count in re.findall(r"^ +(\w+) +(\d+)$", statistics, re.M):
        name, weight = column(cell)
        if name:
            sums[name] += weight * int(count)
    return sums


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernels", nargs="*", default=["kv_gather", "kv_mover"])
    parser.add_argument("--json", type=pathlib.Path,
                        help="file for the rows of the table")
    args = parser.parse_args()
    rows = {}
    print("| kernel | " + " | ".join(COLUMNS) + " |")
    print("| --- |" + " ---: |" * len(COLUMNS))
    for kernel in args.kernels:
        sums = area(kernel)
        cells = " | ".join(f"{sums[name]:,g}" for name in COLUMNS)
        rows[kernel] = f"| `{kernel}` | {cells} |"
        print(rows[kernel], flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that every build of the device kernels computes the same bits.

Builds the kernels with each compiler, at -O2 and -O3, against our stand-in headers
and against the open Vitis HLS ones of Xilinx (ap_int.h, hls_stream.h,
Apache-2.0), which are taken from the PyPI package hls4ml, or from a folder. Every
build is linked to the same objects of the tests and runs all of them; among these
are 500 random launches per element type whose outputs have to equal one model of
the arithmetic, bit for bit.

  scripts/kernel_build_matrix.py                      # fetches the headers
  scripts/kernel_build_matrix.py --headers=DIR        # DIR has ap_int.h
  scripts/kernel_build_matrix.py --headers=           # stand-ins alone
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import sys
import tempfile
import zipfile

from commands import must
from kernel_builder import STAND_IN, KernelBuilder, copy_tree

PACKAGE = "hls4ml==1.3.0"
COMPILERS = ["g++", "clang++-14"]


def fetch_headers(folder):
    """Downloads the package; the folder of its headers."""
    must([sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d",
          folder, PACKAGE])
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    found = sorted(folder.glob("**/vivado/ap_types/ap_int.h"))
    if not found:
        sys.exit(f"{PACKAGE} has no ap_int.h any more")
    return found[0].parent


def build_harness(tree, jobs):
    """What is the same in every build: tests, and the model."""
    copy_tree(tree)
    builder = KernelBuilder(tree, jobs, "g++", "-O2")
    if not builder.build_objects(builder.harness):
        sys.exit("the tests do not build")
    return builder


def build_and_test(tree, harness, compiler, level, headers):
    """What the tests have recorded, None if they fail or do not build."""
    copy_tree(tree)
    builder = KernelBuilder(tree, 1, compiler, level, headers)
    builder.take_objects(harness, builder.harness)
    if not builder.build(builder.device):
        return None
    code, output = builder.test()
    if code != 0:
        print(output, file=sys.stderr)
        return None
    recorded = builder.properties()
    shutil.rmtree(tree)
    return recorded


def recorded_sum(recorded, name):
    """Of a property, over all tests."""
    return sum(int(test.get(name, 0)) for test in (recorded or {}).values())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--headers", help="folder of the Vitis HLS headers")
    parser.add_argument("--only", default="",
                        help="builds whose row has this, e.g. '-O3 | Xilinx'")
    parser.add_argument("--jobs", type=int, default=2,
                        help="builds at the same time")
    parser.add_argument("--json", type=pathlib.Path,
                        help="file for the results")
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="paged_kv_matrix_") as name:
        folder = pathlib.Path(name)
        headers = {"stand-in": STAND_IN}
        if args.headers is None:
            headers["Xilinx"] = fetch_headers(folder / "package")
        elif args.headers:
            headers["Xilinx"] = pathlib.Path(args.headers).resolve()
        rows = [(compiler, level, kind) for compiler in COMPILERS
                for level in ["-O2", "-O3"] for kind in headers]
        rows = [row for row in rows if args.only in f"| {' | '.join(row)} |"]
        for compiler in {row[0] for row in rows}:
            if not shutil.which(compiler):
                sys.exit(f"{compiler} is not installed")
        print("| Compiler | Level | Headers | Tests | Shapes | Schedules |\n"
              "| --- | --- | --- | --- | ---: | ---: |", flush=True)
        harness = build_harness(folder / "harness", args.jobs)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            done = pool.map(
                lambda row: build_and_test(folder / "".join(row), harness,
                                           row[0], row[1], headers[row[2]]),
                rows)
            for row, recorded in zip(rows, done):
                result = {"row": " ".join(row), "passed": bool(recorded),
                          "shapes": recorded_sum(recorded, "shapes"),
                          "schedules": recorded_sum(recorded, "schedules")}
                results.append(result)
                print(f"| {' | '.join(row)} | "
                      f"{'pass' if result['passed'] else '**fail**'} | "
                      f"{result['shapes']} | {result['schedules']} |",
                      flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    sys.exit(0 if all(result["passed"] for result in results) else 1)


if __name__ == "__main__":
    main()

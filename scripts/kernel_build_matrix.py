#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that every build of the device kernels computes the same bits.

Builds the kernels and their tests with each compiler, at -O2 and -O3, against our
stand-in headers and against the open Vitis HLS ones of Xilinx (ap_int.h,
hls_stream.h, Apache-2.0), which are taken from the PyPI package hls4ml, or from
a folder. Every build runs all tests; among these are 500 random launches whose
outputs have to equal one model of the arithmetic, bit for bit.

  scripts/kernel_build_matrix.py                      # fetches the headers
  scripts/kernel_build_matrix.py --headers=DIR        # DIR has ap_int.h
  scripts/kernel_build_matrix.py --headers=           # stand-ins alone
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import zipfile

from kernel_builder import STAND_IN, KernelBuilder, copy_tree, run

PACKAGE = "hls4ml==1.3.0"
COMPILERS = ["g++", "clang++-14"]


def fetch_headers(folder):
    """Downloads the package; the folder of its headers."""
    code, output = run([sys.executable, "-m", "pip", "download", "--no-deps",
                        "-q", "-d", str(folder), PACKAGE])
    if code != 0:
        sys.exit(f"cannot fetch {PACKAGE}: {output}\n--headers names a folder")
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    found = sorted(folder.glob("**/vivado/ap_types/ap_int.h"))
    if not found:
        sys.exit(f"{PACKAGE} has no ap_int.h any more")
    return found[0].parent


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--headers", help="folder of the Vitis HLS headers")
    parser.add_argument("--only", default="",
                        help="builds whose row has this, e.g. '-O3 | Xilinx'")
    parser.add_argument("--jobs", type=int, default=2, help="compile jobs")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="paged_kv_matrix_") as name:
        folder = pathlib.Path(name)
        headers = {"stand-in": STAND_IN}
        if args.headers is None:
            headers["Xilinx"] = fetch_headers(folder / "package")
        elif args.headers:
            headers["Xilinx"] = pathlib.Path(args.headers).resolve()
        print("| Compiler | Level | Headers | Tests |\n| --- | --- | --- | --- |")
        for compiler in COMPILERS:
            if not shutil.which(compiler):
                sys.exit(f"{compiler} is not installed")
            for level in ["-O2", "-O3"]:
                for kind, where in headers.items():
                    row = f"| {compiler} | {level} | {kind} |"
                    if args.only not in row:
                        continue
                    tree = folder / f"{compiler}{level}{kind}"
                    copy_tree(tree)
                    builder = KernelBuilder(tree, args.jobs, compiler, level,
                                            where)
                    result = "do not build"
                    if builder.build(builder.fixed + builder.varying):
                        code, output = builder.test()
                        result = "pass" if code == 0 else "**fail**"
                        if code != 0:
                            print(output, file=sys.stderr)
                    failed += result != "pass"
                    print(f"{row} {result} |", flush=True)
                    shutil.rmtree(tree)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the device kernels and their tests without CMake, in a copied tree.

For scripts that build them many times, in ways that a build folder has not: with
an edit, another compiler, or the Vitis HLS headers instead of our stand-ins.
"""

import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ["paged_decode", "kv_append", "kv_copy", "kv_scatter"]
STAND_IN = "fpga_dma/kernels/stand_in"
PACKAGES = ["gtest_main", "absl_status", "absl_statusor", "absl_strings",
            "absl_span"]


def run(command, **kwargs):
    """The exit code and what was printed."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", **kwargs
        )
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return -1, "timeout"


def copy_tree(tree):
    """Copies what a KernelBuilder needs."""
    for folder in ["fpga_dma/kernels", "tests/fpga_dma/kernels",
                   "tests/paged_kv"]:
        shutil.copytree(ROOT / folder, tree / folder)


class KernelBuilder:
    """One program with all tests of the kernels.

    `headers` is the folder of ap_int.h and hls_stream.h. The threaded kernels
    always use the stand-ins: the Vitis headers have no bounded streams.
    """

    def __init__(self, tree, jobs, compiler=None, level="-O1",
                 headers=STAND_IN):
        self.tree = tree
        self.jobs = jobs
        self.headers = str(headers)
        self.compiler = shlex.split(compiler or os.environ.get("CXX", "g++"))
        if shutil.which("ccache"):
            self.compiler.insert(0, "ccache")
        self.compiler += ["-std=c++20", level, "-ffp-contract=off", "-w", "-I."]
        code, output = run(["pkg-config", "--libs"] + PACKAGES)
        if code != 0:
            sys.exit(output)
        self.libraries = shlex.split(output) + ["-lpthread"]
        kernels = tree / "fpga_dma" / "kernels"
        tests = tree / "tests" / "fpga_dma" / "kernels"
        # These include no device code that faults are planted in.
        self.fixed = sorted(
            list(kernels.glob("*.cc")) + list(kernels.glob("stand_in/*.cc"))
            + [t for t in tests.glob("*.cc") if "arithmetic" not in t.name]
        )
        self.varying = [kernels / f"{k}.cpp" for k in KERNELS]
        self.varying.append(tests / "kernel_arithmetic_test.cc")

    def dependents(self, files):
        """The sources to compile after a change of these kernel files."""
        if all(f.startswith("decode_") or f == "paged_decode.cpp"
               for f in files):
            return self.varying[:1]
        own = [v for v in self.varying if v.name in files]
        return own if len(own) == len(set(files)) else self.varying

    def _commands(self, sources):
        for source in sources:
            name = source.name.replace(".", "_")
            # A path that is the same in every tree, for ccache's sake.
            compile_it = self.compiler + ["-c",
                                          str(source.relative_to(self.tree))]
            yield compile_it + [f"-I{self.headers}", "-o", f"{name}.o"]
            if source.suffix == ".cpp":
                yield compile_it + [
                    f"-I{STAND_IN}", "-DPAGED_KV_THREADED_STAGES",
                    f"-D{source.stem}={source.stem}_threaded",
                    "-o", f"{name}_threaded.o"]

    def build(self, sources):
        """True if everything compiled and linked."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            done = list(pool.map(lambda c: run(c, cwd=self.tree),
                                 self._commands(sources)))
        for code, output in done:
            if code != 0:
                print(output, file=sys.stderr)
                return False
        objects = sorted(p.name for p in self.tree.glob("*.o"))
        code, output = run(
            self.compiler + objects + ["-o", "kernel_tests"] + self.libraries,
            cwd=self.tree)
        if code != 0:
            print(output, file=sys.stderr)
        return code == 0

    def test(self, pattern="*"):
        """Exit code and output of the tests that match."""
        return run(["./kernel_tests", f"--gtest_filter={pattern}",
                    "--gtest_fail_fast"], cwd=self.tree, timeout=300)

# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the device kernels and their tests without CMake, in a copied tree.

For scripts that build them many times, in ways that a build folder has not: with
an edit, another compiler, or the Vitis HLS headers instead of our stand-ins.
"""

import concurrent.futures
import os
import shlex
import shutil
import sys

from commands import ROOT, gtest_properties, must, run

KERNEL_FOLDER = "fpga_dma/kernels"
KERNELS = ["paged_decode", "kv_append", "kv_copy", "kv_scatter",
           "stream/kv_store"]
THREADED_NAMES = [f"-D{name}={name}_threaded" for name in
                  (kernel.split("/")[-1] for kernel in KERNELS)]
# The program may have ap_uint of other headers, too.
THREADED_NAMES += ["-DRunKvStore=RunKvStoreThreaded",
                   "-Dap_uint=ap_uint_threaded"]
STAND_IN = f"{KERNEL_FOLDER}/stand_in"
PACKAGES = ["gtest_main", "absl_status", "absl_statusor", "absl_strings",
            "absl_span"]


def copy_tree(tree):
    """Copies what a KernelBuilder needs."""
    for folder in [KERNEL_FOLDER, "tests/fpga_dma/kernels", "tests/paged_kv"]:
        shutil.copytree(ROOT / folder, tree / folder)


class KernelBuilder:
    """One program with all tests of the kernels.

    `headers` is the folder of ap_int.h and hls_stream.h; the stand-ins serve
    for what it has not (ap_axi_sdata.h). The threaded kernels always use the
    stand-ins: the Vitis headers have no bounded streams. Besides device code
    there is the harness, tests and the host's side of the kernels, which no
    fault, compiler or header is the subject of.
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
        self.libraries = shlex.split(
            must(["pkg-config", "--libs"] + PACKAGES)) + ["-lpthread"]
        self.kernels = tree / KERNEL_FOLDER
        tests = tree / "tests" / "fpga_dma" / "kernels"
        # Built twice, the second time with a thread per stage.
        self.twice = [self.kernels / f"{kernel}.cpp" for kernel in KERNELS]
        self.twice.append(tests / "run_kv_store.cc")
        self.device = [*self.twice, tests / "kernel_arithmetic_test.cc"]
        self.harness = sorted(
            {*self.kernels.glob("*.cc"), *self.kernels.glob("stand_in/*.cc"),
             *tests.glob("*.cc"), *tests.glob("stream/*.cc")}
            - set(self.device))

    def dependents(self, files):
        """The sources to compile after a change of these kernel files, which
        are named from the folder of the kernels."""
        if all(f.startswith("decode_") or f == "paged_decode.cpp"
               for f in files):
            return self.device[:1]
        changed = {self.kernels / file for file in files}
        own = [source for source in self.device if source in changed]
        return own if len(own) == len(changed) else self.device

    def _commands(self, source):
        """Pairs of an object file and the command that makes it."""
        name = source.name.replace(".", "_")
        # A path that is the same in every tree, for ccache's sake.
        compile_it = self.compiler + ["-c", source.relative_to(self.tree)]
        yield f"{name}.o", compile_it + [
            f"-I{self.headers}", f"-I{STAND_IN}", "-o", f"{name}.o"]
        if source in self.twice:
            yield f"{name}_threaded.o", compile_it + [
                f"-I{STAND_IN}", "-DPAGED_KV_THREADED_STAGES",
                *THREADED_NAMES, "-o", f"{name}_threaded.o"]

    def build_objects(self, sources):
        """True if everything compiled."""
        commands = [c for s in sources for _, c in self._commands(s)]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            done = list(pool.map(lambda c: run(c, cwd=self.tree), commands))
        for code, output in done:
            if code != 0:
                print(output, file=sys.stderr)
                return False
        return True

    def build(self, sources):
        """True if everything compiled and linked."""
        if not self.build_objects(sources):
            return False
        objects = sorted(p.name for p in self.tree.glob("*.o"))
        code, output = run(
            self.compiler + objects + ["-o", "kernel_tests"] + self.libraries,
            cwd=self.tree)
        if code != 0:
            print(output, file=sys.stderr)
        return code == 0

    def take_objects(self, other, sources):
        """Instead of building them: what another builder made of them."""
        for source in sources:
            for name, _ in self._commands(source):
                shutil.copyfile(other.tree / name, self.tree / name)

    def test(self, pattern="*"):
        """Exit code and output of the tests that match."""
        return run(["./kernel_tests", f"--gtest_filter={pattern}",
                    "--gtest_fail_fast", "--gtest_output=json:tests.json"],
                   cwd=self.tree, timeout=600)

    def properties(self):
        """What the tests that passed have recorded of themselves."""
        return gtest_properties(self.tree / "tests.json")

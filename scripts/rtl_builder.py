# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the RTL kernels and their test benches without CMake.

For scripts that build them many times, or in ways that a build folder has not:
with an edit, or with coverage.
"""

import pathlib

from commands import ROOT, failed_test, must, run

RTL_FOLDER = "fpga_dma/kernels/rtl"
RTL = ROOT / RTL_FOLDER
TESTS = ROOT / "tests/fpga_dma/kernels/rtl"
KERNELS = ["kv_gather", "kv_mover"]
# A hung test clocks for long before it says so.
TEST_TIMEOUT_S = 120


def compile_object(source, target, flags=("-O1",)):
    """Compiles with Verilator's own headers in reach."""
    root = must(["verilator", "--getenv", "VERILATOR_ROOT"]).strip()
    include = pathlib.Path(root) / "include"
    must(["g++", "-std=c++20", "-w", "-c", source, "-o", target,
          f"-I{ROOT}", f"-I{include}", f"-I{include}/vltstd", *flags])
    return include


class RtlBench:
    """The tests of one kernel; only the kernel is built again for a fault.

    With `coverage` the program writes what it reached to the folder that
    PAGED_KV_RTL_COVERAGE names.
    """

    def __init__(self, kernel, tree, coverage=False):
        self.kernel = kernel
        self.tree = tree / kernel
        self.tree.mkdir()
        self.objects = []
        # By default buses of more than 256 bits would not count.
        self.verilator_flags = [
            "--coverage-line", "--coverage-toggle", "--coverage-max-width",
            "1024"] if coverage else []
        # Optimising the counters of coverage takes minutes.
        self.flags = ["-O0", "-DVM_COVERAGE=1"] if coverage else ["-O1"]
        self.support = ["verilated", "verilated_threads"]
        if coverage:
            self.support.append("verilated_cov")

    def build_tests(self):
        verilated = self.verilate(RTL, self.tree / "base")
        short = self.kernel.removeprefix("kv_")
        sources = [*TESTS.glob(f"{self.kernel}_*property_test.cc"),
                   *TESTS.glob(f"{self.kernel}_errors_test.cc"),
                   TESTS / f"{short}_bench.cc", TESTS / "kernel_bench.cc",
                   TESTS / "axi_memory.cc", TESTS / "register_checks.cc"]
        for source in sources:
            target = self.tree / (source.stem + ".o")
            include = compile_object(source, target,
                                     [f"-I{verilated}", *self.flags])
            self.objects.append(target)
        for stem in self.support:
            target = self.tree / (stem + ".o")
            compile_object(include / (stem + ".cpp"), target, self.flags)
            self.objects.append(target)

    def verilate(self, rtl, folder):
        must(["verilator", "--cc", "-Wno-fatal", "-Wno-lint", "--x-assign",
              "unique", *self.verilator_flags, "-y", rtl,
              "--prefix", f"V{self.kernel}", "--top-module", self.kernel,
              "--Mdir", folder, rtl / f"{self.kernel}.sv"])
        return folder

    def build(self, rtl, folder):
        """The program of the tests with the RTL of that folder."""
        self.verilate(rtl, folder)
        everything = folder / "everything.cc"
        everything.write_text("".join(f'#include "{path}"\n'
                                      for path in folder.glob("*.cpp")))
        compile_object(everything, folder / "kernel.o",
                       [f"-I{folder}", *self.flags])
        program = folder / "tests"
        must(["g++", *self.objects, folder / "kernel.o", "-o", program,
              "-lgtest_main", "-lgtest"])
        return program

    def failing_test(self, rtl, folder):
        """The test that fails with this RTL, None if none does."""
        program = self.build(rtl, folder)
        code, output = run([program, "--gtest_fail_fast"], TEST_TIMEOUT_S)
        return None if code == 0 else failed_test(output, "a crash")

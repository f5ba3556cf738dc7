#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in the RTL kernels, and sees whether a test notices.

Each fault is one edit of fpga_dma/kernels/rtl/. The kernels that have the file
are verilated with it, and the tests in tests/fpga_dma/kernels/rtl/ run until one
fails. A fault whose text is no longer in its file is an error: change it along
with the code.

  scripts/planted_rtl_faults.py               # all, as a Markdown table
  scripts/planted_rtl_faults.py --only burst  # those whose file or name has it
"""

import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RTL = ROOT / "fpga_dma/kernels/rtl"
TESTS = ROOT / "tests/fpga_dma/kernels/rtl"
KERNELS = ["kv_gather", "kv_mover"]
# A hung test clocks for long before it says so.
TEST_TIMEOUT_S = 120

# (file, what is wrong, old text, new text)
FAULTS = [
    ("burst_splitter", "bursts cross 4 KiB",
     "limit < to_boundary ? limit : to_boundary", "limit"),
    ("burst_splitter", "the limit of a burst's length is ignored",
     "limit < to_boundary ? limit : to_boundary", "to_boundary"),
    ("burst_splitter", "the last burst of a run is a whole one",
     "is_last ? left[6:0] : allowed", "allowed"),
    ("burst_splitter", "the next burst starts a beat late",
     "beat + {51'd0, burst_beats}", "beat + {51'd0, burst_beats} + 58'd1"),
    ("axi_reader", "bursts are asked for without room",
     "&& fits && outstanding", "&& outstanding"),
    ("axi_reader", "one burst too many in flight",
     "outstanding < outstanding_limit", "outstanding <= outstanding_limit"),
    ("axi_reader", "an address changes while it waits",
     "(!ar_valid || m_arready) && fits", "fits"),
    ("axi_reader", "ARLEN counts from 1",
     "burst_beats - 7'd1", "burst_beats"),
    ("axi_reader", "ARVALID goes before ARREADY",
     "else if (m_arready) ar_valid", "else ar_valid"),
    ("axi_reader", "error responses are ignored",
     "m_rvalid && m_rresp[1]", "1'b0"),
    ("axi_reader", "idle while answers are due", "run_ready && room == DEPTH",
     "run_ready"),
    ("stream_fifo", "a waiting beat is replaced",
     "stored && (!head_valid || out_ready)", "stored"),
    ("stream_fifo", "half as deep as the room that is given out",
     "memory[write_place[LG_DEPTH-1:0]]", "memory[write_place[LG_DEPTH-2:0]]"),
    ("axi_writer", "WLAST a beat early",
     "m_wlast = w_left == 7'd1", "m_wlast = w_left == 7'd2"),
    ("axi_writer", "one write too many in flight",
     "outstanding < outstanding_limit", "outstanding <= outstanding_limit"),
    ("axi_writer", "the last bytes are not written",
     "m_wstrb = '1", "m_wstrb = 64'h0FFF_FFFF_FFFF_FFFF"),
    ("axi_writer", "done before the last response",
     "run_ready && outstanding == 6'd0", "run_ready && w_left == 7'd0"),
    ("axi_writer", "error responses are ignored",
     "m_bvalid && m_bresp[1]", "1'b0"),
    ("axi_writer", "a data beat is dropped", "in_ready = m_wready &&",
     "in_ready ="),
    ("page_locator", "a page index at the limit passes",
     "in_page >= num_pages", "in_page > num_pages"),
    ("page_locator", "page indices are compared as signed numbers",
     "in_page >= num_pages", "$signed(in_page) >= $signed(num_pages)"),
    ("page_locator", "an address of 32 bits",
     "base + {1'b0, product2, 6'd0}", "base + {32'd0, product2[25:0], 6'd0}"),
    ("page_locator", "the error marks the next index",
     "bad <= {bad[2:0], in_bad}", "bad <= {bad[3:0] << 2} | {3'd0, in_bad}"),
    ("word_unpacker", "a beat has 15 words", "held <= 5'd16", "held <= 5'd15"),
    ("word_unpacker", "padding of the table is gathered",
     "held != 5'd0 && left != 32'd0", "held != 5'd0"),
    ("kv_gather", "pages behind a bad one are gathered",
     "wire skip = bad || bad_seen", "wire skip = bad"),
    ("kv_gather", "the slice's place in its page is ignored",
     "pool + {26'd0, slice_beat, 6'd0}", "pool"),
    ("kv_gather", "the stream ends with the first slice",
     "slice_end && entries_sent + 32'd1 == num_entries", "slice_end"),
    ("kv_gather", "a later launch ignores the error",
     "launch_code == 4'd0 && !stopped", "launch_code == 4'd0"),
    ("gather_checks", "a slice may end a beat behind its page",
     "slice_end > {1'b0, page_stride_beats}",
     "slice_end > {1'b0, page_stride_beats} + 33'd1"),
    ("gather_checks", "the end of a slice wraps at 32 bits",
     "{1'b0, slice_beat} + {1'b0, slice_beats}",
     "{1'b0, slice_beat + slice_beats}"),
    ("gather_checks", "a table may be too short",
     "num_entries > table_entries ||", "1'b0 ||"),
    ("gather_checks", "a pool may lie between pages",
     "pool[11:0] != 12'd0", "pool[5:0] != 6'd0"),
    ("mover_checks", "more items than the list holds",
     "num_items > max_items ||", "1'b0 ||"),
    ("move_items", "runs may lie on top of each other",
     "several && target_run_stride < num_beats", "1'b0"),
    ("move_items", "only the first run is checked",
     "several ? RUNS : WAIT", "several ? SEND : WAIT"),
    ("move_items", "target runs at the source's stride",
     "target_beat + {1'b0, target_run_stride}",
     "target_beat + {1'b0, source_run_stride}"),
    ("move_items", "the target's page is not checked",
     "else if (target_bad)", "else if (1'b0)"),
    ("kv_mover", "a bad item does not end the list",
     "item_ready && !bad_seen", "item_ready"),
    ("kv_mover", "done while data is on its way",
     "work_idle && source_idle && target_idle", "work_idle"),
    ("job_status", "the last error hides the first",
     "if (error && !stopped)", "if (error)"),
    ("control_registers", "bytes of arguments cannot be written alone",
     "&& s_wstrb[b])", "&& s_wstrb != 4'd0)"),
    ("control_registers", "the next launch does not wait for ap_continue",
     "start_asked && !running && !done_held", "start_asked && !running"),
    ("control_registers", "arguments change under a launch",
     "arguments = taken", "arguments = written"),
]


def run(command, timeout=None):
    """The exit code and what was printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              errors="replace", timeout=timeout)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        return -1, (error.stdout or b"").decode(errors="replace")


def must(command):
    code, output = run([str(word) for word in command])
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{output}")


def compile_object(source, target, flags=()):
    """Compiles with Verilator's own headers in reach."""
    include = pathlib.Path(run(["verilator", "--getenv", "VERILATOR_ROOT"])[1]
                           .strip()) / "include"
    must(["g++", "-std=c++20", "-O1", "-w", "-c", source, "-o", target,
          f"-I{ROOT}", f"-I{include}", f"-I{include}/vltstd", *flags])
    return include


class Bench:
    """The tests of one kernel; only the kernel is built again for a fault."""

    def __init__(self, kernel, tree):
        self.kernel = kernel
        self.tree = tree / kernel
        self.tree.mkdir()
        self.objects = []

    def build_tests(self):
        verilated = self.verilate(RTL, self.tree / "base")
        short = self.kernel.removeprefix("kv_")
        sources = [*TESTS.glob(f"{self.kernel}_property_test.cc"),
                   *TESTS.glob(f"{self.kernel}_errors_test.cc"),
                   TESTS / f"{short}_bench.cc", TESTS / "kernel_bench.cc",
                   TESTS / "axi_memory.cc"]
        for source in sources:
            target = self.tree / (source.stem + ".o")
            include = compile_object(source, target, [f"-I{verilated}"])
            self.objects.append(target)
        for stem in ["verilated", "verilated_threads"]:
            target = self.tree / (stem + ".o")
            compile_object(include / (stem + ".cpp"), target)
            self.objects.append(target)

    def verilate(self, rtl, folder):
        must(["verilator", "--cc", "-Wno-fatal", "-Wno-lint", "--x-assign",
              "unique", "-y", rtl, "--prefix", f"V{self.kernel}",
              "--top-module", self.kernel, "--Mdir", folder,
              rtl / f"{self.kernel}.sv"])
        return folder

    def failing_test(self, rtl, folder):
        """The test that fails with these sources, None if none does."""
        self.verilate(rtl, folder)
        everything = folder / "everything.cc"
        everything.write_text("".join(f'#include "{path}"\n'
                                      for path in folder.glob("*.cpp")))
        compile_object(everything, folder / "kernel.o", [f"-I{folder}"])
        program = folder / "tests"
        must(["g++", *self.objects, folder / "kernel.o", "-o", program,
              "-lgtest_main", "-lgtest"])
        code, output = run([str(program), "--gtest_brief=1"], TEST_TIMEOUT_S)
        if code == 0:
            return None
        failed = re.findall(r"\[  FAILED  \] ([\w]+\.[\w]+)", output)
        return failed[0] if failed else "a crash or a hang"


def noticed_by(benches, tree, number, fault):
    name, _, old, new = fault
    rtl = tree / f"rtl{number}"
    shutil.copytree(RTL, rtl)
    path = rtl / f"{name}.sv"
    text = path.read_text()
    if old not in text:
        sys.exit(f"'{fault[1]}': {path.name} no longer holds\n{old}")
    path.write_text(text.replace(old, new, 1))
    for kernel, bench in benches.items():
        top = (RTL / f"{kernel}.sv").read_text()
        whole = top + "".join(
            (RTL / f"{m}.sv").read_text()
            for m in ["axi_reader", "axi_writer", "move_items"] if m in top)
        if name != kernel and not re.search(rf"\b{name}\b", whole):
            continue
        test = bench.failing_test(rtl, tree / f"{kernel}{number}")
        if test:
            return test
    return None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="word in a file or name")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    faults = [f for f in FAULTS if args.only in f"{f[0]} {f[1]}"]
    with tempfile.TemporaryDirectory(prefix="paged_kv_rtl_faults_") as name:
        tree = pathlib.Path(name)
        benches = {kernel: Bench(kernel, tree) for kernel in KERNELS}
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(Bench.build_tests, benches.values()))
            for kernel, bench in benches.items():
                test = bench.failing_test(RTL, tree / f"{kernel}_clean")
                if test:
                    sys.exit(f"{test} fails without any fault")
            print("| File | Fault | Noticed by |\n| --- | --- | --- |")
            tests = pool.map(
                lambda pair: noticed_by(benches, tree, *pair),
                enumerate(faults))
            missed = 0
            for fault, test in zip(faults, tests):
                missed += test is None
                print(f"| {fault[0]} | {fault[1]} | {test or '**nobody**'} |",
                      flush=True)
    print(f"\n{len(faults) - missed} of {len(faults)} noticed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()

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

import concurrent.futures
import re
import shutil
import sys

from fault_planting import Fault, main, planted
from rtl_builder import KERNELS, RTL, RTL_FOLDER, RtlBench

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
    ("kv_gather", "a bus error and a bad page of the same cycle are mixed",
     "bus_error ? BUS : PAGE_INDEX)", "bad_item ? PAGE_INDEX : BUS)"),
    ("kv_mover", "a bus error and a bad item of the same cycle are mixed",
     "bus_error ? BUS : item_code)", "item_error ? item_code : BUS)"),
    ("kv_gather", "a bad page hides a bus error before it",
     "bus_error || bad_item)", "bad_item || (bus_error && bad_seen))"),
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


# The modules of a kernel that have modules of their own.
PARENTS = ["axi_reader", "axi_writer", "move_items"]


def has_module(kernel, module):
    """Whether the kernel is made of this module, among others."""
    top = (RTL / f"{kernel}.sv").read_text()
    whole = top + "".join((RTL / f"{parent}.sv").read_text()
                          for parent in PARENTS if parent in top)
    return module == kernel or re.search(rf"\b{module}\b", whole) is not None


def noticed_by(benches, folder, fault):
    rtl = folder / RTL_FOLDER
    shutil.copytree(RTL, rtl)
    with planted(fault, folder):
        for kernel, bench in benches.items():
            if has_module(kernel, fault.area):
                test = bench.failing_test(rtl, folder / kernel)
                if test:
                    return test
    return None


def rtl_bench(folder, faults, jobs):
    benches = {kernel: RtlBench(kernel, folder) for kernel in KERNELS}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(RtlBench.build_tests, benches.values()))
        clean = pool.map(
            lambda kernel: benches[kernel].failing_test(
                RTL, folder / f"{kernel}_clean"), KERNELS)
        for test in filter(None, clean):
            sys.exit(f"{test} fails without any fault")
        yield from pool.map(
            lambda pair: noticed_by(benches, folder / f"fault{pair[0]}",
                                    pair[1]), enumerate(faults))


if __name__ == "__main__":
    main(__doc__,
         [Fault(module, name, [(f"{RTL_FOLDER}/{module}.sv", old, new)])
          for module, name, old, new in FAULTS],
         rtl_bench)

#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Proves all that can be proved of the device kernels without a card.

Runs every test and script of the HLS and RTL kernels at full length, in a
release build and in builds of its own, and compares what they measure with what
is demanded. docs/fpga.md says what that proves, and what only a card can show.

  scripts/prove_device_kernels.py                # all; exit code 1 on a miss
  scripts/prove_device_kernels.py --only 'area|lint'
  scripts/prove_device_kernels.py --logs=proof --json=proof.json
"""

import sys
import time

import proof
from commands import ROOT
from proof import Criterion, Step, passing, planted, recorded

BURSTS = 1_000_000
TRACE_STEPS = 60
SMOKE_SECONDS = 8 * 60
# The tests of the kernels that CI runs, at their usual length.
SMOKE = "^(kernels|stream|rtl|rtl_engine)_|^xrt_xrt_(kernels|rtl_engine)_test$"
# Programs of tests that this script names.
PROGRAMS = [
    "kernels_decode_errors_test", "kernels_decode_kernel_property_test",
    "kernels_decode_not_finite_test", "kernels_decode_random_items_test",
    "kernels_kernel_registry_test",
    "kernels_move_kernels_errors_test",
    "stream_kv_store_test", "rtl_kv_gather_any_launch_property_test",
    "rtl_kv_gather_errors_test", "rtl_kv_gather_property_test",
    "rtl_kv_gather_timing_test", "rtl_kv_mover_any_launch_property_test",
    "rtl_kv_mover_errors_test", "rtl_kv_mover_property_test",
    "rtl_engine_rtl_gather_test", "rtl_engine_rtl_kernels_property_test",
    "rtl_engine_trace_decode_simulation_test", "xrt_xrt_kernels_test",
    "xrt_xrt_rtl_engine_test",
]


def build(bench):
    # Those of the smoke run, too.
    return proof.build_programs(bench, SMOKE, PROGRAMS)


def build_matrix(bench):
    options = [f"--jobs={bench.jobs}"]
    if bench.headers is not None:
        options.append(f"--headers={bench.headers}")
    rows = bench.script("kernel_build_matrix", *options) or []
    passed = [row for row in rows if row["passed"]]
    shapes = min((row["shapes"] for row in rows), default=0)
    schedules = min((row["schedules"] for row in rows), default=0)
    everywhere = len(passed) == len(rows) == 8
    return [
        Criterion("HLS: every build equals the model bit for bit",
                  f"{len(passed)} of {len(rows)} builds, {shapes:,} shapes each",
                  "8 of 8, >= 500", everywhere and shapes >= 500),
        Criterion("HLS: schedules of the stages without a deadlock",
                  f"{schedules:,} in each build", ">= 200",
                  everywhere and schedules >= 200)]


def planted_kernel_faults(bench):
    results, criterion = planted("planted_kernel_faults", "HLS", 10, bench)
    # The script counts it only if it is a deadlock.
    order = [r for r in results if r["fault"] == "V before K"
             and r["area"] == "deadlock" and r["test"] is not None]
    return [criterion,
            Criterion("HLS: V before K is found as a deadlock",
                      "yes" if order else "no", "yes", bool(order))]


def planted_rtl_faults(bench):
    return [planted("planted_rtl_faults", "RTL", 20, bench)[1]]


def decode_error(bench):
    tests = bench.program("kernels_decode_kernel_property_test")
    criteria = []
    for element in ["Bf16", "Int8"]:
        errors = recorded({name: test for name, test in (tests or {}).items()
                           if name.endswith(element)}, "largest_error")
        worst = max(errors, default=float("inf"))
        criteria.append(Criterion(
            f"HLS: largest error against double precision, {element.lower()}",
            f"{worst:.2g}", "<= 1e-3", worst <= 1e-3))
    return criteria


def bursts(kernel, bench):
    tests = bench.program(f"rtl_{kernel}_property_test",
                          PAGED_KV_RTL_BURSTS=str(BURSTS))
    count = sum(recorded(tests, "bursts"))
    criteria = [Criterion(f"RTL: bursts of {kernel}, no error of the checkers",
                          f"{count:,.0f}", f">= {BURSTS:,}", count >= BURSTS)]
    if kernel == "kv_gather":
        bad = sum(recorded(tests, "bad_indices"))
        criteria.append(Criterion(
            "RTL: page indices beyond the pool, none of which is read",
            f"{bad:,.0f}", "> 0", bad > 0))
    return criteria


def coverage(bench):
    kernels = bench.script("rtl_coverage", f"--jobs={bench.jobs}") or {}
    criteria = []
    for kind in ["line", "toggle"]:
        worst = min((k[kind] for k in kernels.values()), default=0)
        criteria.append(Criterion(f"RTL: {kind} coverage of what is reachable",
                                  f"{worst:.1%}", ">= 95%",
                                  len(kernels) == 2 and worst >= 0.95))
    return criteria


def timing(bench):
    tests = bench.program("rtl_kv_gather_timing_test") or {}

    def of(test, name):
        return recorded({k: v for k, v in tests.items() if test in k}, name)

    share = min(of("SlicesOf4KiB", "share_of_model"), default=0)
    u200 = max(of("PublishedBandwidths", "deviation"), default=1)
    card = max(of("BurstEfficiency", "deviation"), default=1)
    return [
        Criterion("RTL: slices of 4 KiB, share of the modelled port",
                  f"{share:.3f}", ">= 0.88", share >= 0.88),
        Criterion("RTL: off the published bandwidths of the U200",
                  f"{u200:.1%}", "<= 5%", u200 <= 0.05),
        Criterion("RTL: off the emulated cards' burst efficiency",
                  f"{card:.1%}", "<= 10%", card <= 0.1)]


def area(bench):
    kernels = bench.script("rtl_area") or {}
    text = (ROOT / "docs/fpga_kernels.md").read_text()
    good = [row in text for row in kernels.values()]
    return [Criterion("RTL: area by yosys is the one on record",
                      f"{sum(good)} of {len(good)} kernels", "2 of 2",
                      good == [True, True])]


def lint(bench):
    good = bench.command("lint", ["make", "-C", "fpga_dma/kernels", "lint"])
    return [Criterion("RTL: verilator --lint-only -Wall",
                      "clean" if good else "warnings", "clean", good)]


def trace(bench):
    tests = bench.program("rtl_engine_trace_decode_simulation_test",
                          PAGED_KV_TRACE_STEPS=str(TRACE_STEPS))
    steps = sum(recorded(tests, "steps"))
    return [Criterion("end to end: steps of a trace, RTL + HLS = model",
                      f"{steps:.0f}", ">= 50", steps >= 50)]


def packaging(bench):
    good = bench.command(
        "packaging", [sys.executable,
                      "tests/fpga_dma/kernels/check_packaging.py", ROOT])
    return [Criterion("registers, ports, connectivity and Makefile agree",
                      "yes" if good else "no", "yes", good)]


def smoke(bench):
    start = time.monotonic()
    good = bench.command("smoke", ["ctest", "--test-dir", bench.build, "-R",
                                   SMOKE, "--output-on-failure"])
    seconds = time.monotonic() - start
    return [Criterion("smoke run of CI, one test at a time",
                      f"{seconds:.0f} s" if good else "fails",
                      f"< {SMOKE_SECONDS} s",
                      good and seconds < SMOKE_SECONDS)]


STEPS = [
    Step("build", build, True),
    Step("matrix", build_matrix, True),
    Step("planted HLS faults", planted_kernel_faults, True),
    Step("planted RTL faults", planted_rtl_faults, True),
    Step("coverage", coverage, True),
    Step("area", area),
    Step("bursts of kv_gather", lambda bench: bursts("kv_gather", bench)),
    Step("bursts of kv_mover", lambda bench: bursts("kv_mover", bench)),
    Step("trace", trace),
    Step("decode error", decode_error),
    Step("timing", timing),
    Step("any launch", lambda bench: passing(
        "RTL: any launch is refused or stays in its memory",
        [f"rtl_kv_{kernel}_any_launch_property_test"
         for kernel in ["gather", "mover"]], bench)),
    Step("co-simulation", lambda bench: passing(
        "co-simulation: RTL in the emulated card, also through XRT",
        ["rtl_engine_rtl_gather_test", "rtl_engine_rtl_kernels_property_test",
         "xrt_xrt_rtl_engine_test"], bench)),
    Step("not finite", lambda bench: passing(
        "HLS: a NaN or infinity shows, whatever tile it is in",
        ["kernels_decode_not_finite_test"], bench)),
    Step("bad input", lambda bench: passing(
        "bad input: a sticky code, in HLS, RTL and through XRT",
        ["kernels_decode_errors_test", "kernels_decode_random_items_test",
         "kernels_move_kernels_errors_test", "kernels_kernel_registry_test",
         "stream_kv_store_test", "rtl_kv_gather_errors_test",
         "rtl_kv_mover_errors_test", "xrt_xrt_kernels_test"], bench)),
    Step("lint", lint),
    Step("packaging", packaging),
    Step("smoke", smoke, True),
]


if __name__ == "__main__":
    proof.main(__doc__, STEPS,
               [("--headers", "folder of the Vitis HLS headers; fetched from "
                 "PyPI by default")])

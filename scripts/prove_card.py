#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Proves what the project promises of a card, on boards without hardware.

Decodes, moves pages and runs the fault suites through XRT on the emulated card
and on the simulated device, at full length, and compares what that gives with
what is demanded. Times are those of the boards' own clocks, so that a busy
machine changes no figure. docs/testing.md has the last run.

  scripts/prove_card.py                # all; exit code 1 on a miss
  scripts/prove_card.py --only 'decode|link'
  scripts/prove_card.py --logs=proof --json=proof.json
"""

import json
import platform
import re
import subprocess

import proof
from proof import Criterion, Step, passing, planted

FAULT_SEEDS = 10_000
XRT_FAULT_SEEDS = 200
SWAP_SEEDS = 10_000
CALIBRATION = "benchmarks_card_calibration_test"
FAULT_SUITES = ["fpga_dma_fault_suite_simulation_test",
                "fpga_dma_transfer_queue_simulation_test"]
SWAP_SUITES = ["paged_kv_batch_scheduler_swap_simulation_test",
               "fpga_dma_swap_serving_simulation_test"]
# Section E and B10 of the failure cases, by number.
CASES = ["paged_kv_device_tier_cases_test", "fpga_dma_transfer_queue_test",
         "fpga_dma_transfer_faults_test", "fpga_dma_card_decode_test",
         "xrt_xrt_transfer_cases_test"]
BAD_INPUT = ["fpga_dma_simulated_device_test",
             "fpga_dma_card_decode_status_test", "xclbin_xclbin_file_test",
             "xrt_xclbin_format_test", "xrt_xrt_faults_test",
             "xrt_xrt_kernels_test", "xrt_xrt_transfers_test"]
ALL = "^(fpga_dma|xrt|xclbin|benchmarks_card|paged_kv_device)_" \
      "|^paged_kv_batch_scheduler_swap_"


def build(bench):
    wanted = [CALIBRATION, *FAULT_SUITES, *SWAP_SUITES, *CASES,
              "xrt_xrt_fault_suite_test"]
    return proof.build_programs(bench, ALL, wanted, ["bin/pagedkv"])


def card(bench, board, *options):
    """What `pagedkv card` says in JSON, an empty object if it failed."""
    name = "_".join(["card", board, *options]).replace("-", "").replace(
        "=", "_").replace(".", "_")
    path = bench.logs / f"{name}.json"
    command = [bench.build / "bin/pagedkv", "card", f"--board={board}",
               "--json", *options]
    with open(path, "w") as out, open(path.with_suffix(".log"), "w") as log:
        done = subprocess.run([str(word) for word in command], cwd=proof.ROOT,
                              stdout=out, stderr=log)
    if done.returncode != 0:
        return {}
    found = json.loads(path.read_text())
    # A machine without XRT drives a simulated card, which proves less.
    return {} if found.get("driver", "").startswith("simulated") else found


def at_most(name, value, aim, digits="{:.3g}"):
    return Criterion(name, "fails" if value is None else digits.format(value),
                     f"<= {aim}", value is not None and value <= aim)


def at_least(name, value, aim, digits="{:.3f}"):
    return Criterion(name, "fails" if value is None else digits.format(value),
                     f">= {aim}", value is not None and value >= aim)


def decode(board, bench):
    found = card(bench, board, "--mode=resident").get("decode", {})
    what = f"{board}, 28 layers, 4 x 2,048 tokens, 16 steps: "
    return [at_most(what + "max_error", found.get("max_error"), 2e-3),
            at_most(what + "bound_ratio", found.get("bound_ratio"), 1.15),
            at_most(what + "bytes read per bank, apart",
                    found.get("bank_imbalance"), 0.05),
            at_least(what + "hand-off hidden", found.get("handoff_hidden"),
                     0.95)]


def link(board, bench):
    found = card(bench, board, "--link").get("link", {})
    what = f"{board}, 1,000 scattered pages: "
    return [at_least(what + "link share of whole pages",
                     found.get("link_share_whole_pages"), 0.8),
            at_least(what + "link share of single layers",
                     found.get("link_share_single_layers"), 0.8),
            at_most(what + "slice by slice",
                    found.get("link_share_slice_by_slice"), 0.06)]


def churn(board, forked, bench):
    found = card(bench, board, "--churn", f"--forked={forked}").get("churn", {})
    what = f"{board}, {forked:.0%} forked: "
    trace = found.get("trace", "")
    return [at_least(f"{what}bytes per descriptor over a stack, {trace}",
                     found.get("descriptor_gain"), 4, "{:.2f}"),
            at_most(what + "bytes read per bank, apart",
                    found.get("bank_spread"), 0.05)]


def sweep(board, bench):
    found = card(bench, board, "--sweep", "--layers=8").get("sweep", {})
    points = len(found.get("points", []))
    what = f"{board}, {points} points of 0.1 to 8 times the card: "
    return [at_most(what + "auto over the best mode",
                    found.get("worst_auto_over_best"), 1.05, "{:.3f}"),
            at_least(what + "streaming, share of its formula",
                     found.get("worst_stream_share"), 0.95)]


def seeds(what, programs, variable, count, bench):
    criteria = []
    for program in programs:
        tests = bench.program(program, **{variable: str(count)})
        # Each test prints the seed to repeat it with.
        criteria.append(Criterion(
            f"{what}, {program}", f"{count:,} seeds" if tests else "fails",
            f"{count:,} seeds pass", bool(tests)))
    return criteria


def sanitized(preset, pattern, bench):
    """The card's tests in a build with sanitizers, of its own."""
    folder = proof.ROOT / "build" / preset
    good = bench.command(f"{preset}_configure", ["cmake", "--preset", preset])
    listed = proof.must(["ctest", "--test-dir", folder, "-R", pattern,
                         "--show-only=json-v1"]) if good else '{"tests": []}'
    names = [test["name"] for test in json.loads(listed)["tests"]]
    targets = [name for name in names if re.search("_test$", name)]
    good = good and bool(targets) and bench.command(
        f"{preset}_build", ["cmake", "--build", folder, "-j", bench.jobs,
                            "--target", *targets])
    # The thread sanitizer does not take every layout of memory.
    run = ["setarch", platform.machine(), "-R"] if preset == "tsan" else []
    good = good and bench.command(
        f"{preset}_run", [*run, "ctest", "--test-dir", folder, "-R",
                          "^(" + "|".join(targets) + ")$",
                          "--output-on-failure"])
    return [Criterion(f"{preset}: tests of the card",
                      f"{len(targets)} programs" if good else "fails", "clean",
                      good)]


STEPS = [
    Step("build", build, True),
    *[Step(f"decode {board}", lambda bench, board=board: decode(board, bench))
      for board in ["u250", "u280"]],
    *[Step(f"link {board}", lambda bench, board=board: link(board, bench))
      for board in ["u250", "u280", "u55c"]],
    *[Step(f"churn {board} {forked}",
           lambda bench, board=board, forked=forked:
           churn(board, forked, bench))
      for board in ["u250", "u280"] for forked in [0, 0.5]],
    *[Step(f"sweep {board}", lambda bench, board=board: sweep(board, bench))
      for board in ["u250", "u280"]],
    Step("calibration", lambda bench: passing(
        "constants of perturbed boards within 3 %", [CALIBRATION], bench)),
    Step("cases", lambda bench: passing(
        "cases of section E and B10", CASES, bench)),
    Step("bad input", lambda bench: passing("bad input", BAD_INPUT, bench)),
    Step("fault suites", lambda bench: seeds(
        "faults", FAULT_SUITES, "PAGED_KV_FAULT_SEEDS", FAULT_SEEDS, bench)),
    Step("fault suite through XRT", lambda bench: seeds(
        "faults", ["xrt_xrt_fault_suite_test"], "PAGED_KV_FAULT_SEEDS",
        XRT_FAULT_SEEDS, bench)),
    Step("swap simulations", lambda bench: seeds(
        "swaps", SWAP_SUITES, "PAGED_KV_TEST_SEEDS", SWAP_SEEDS, bench)),
    Step("planted faults", lambda bench: [planted(
        "planted_transfer_faults", "transfers", 15, bench)[1]], True),
    Step("asan-ubsan", lambda bench: sanitized("asan-ubsan", ALL, bench), True),
    Step("tsan", lambda bench: sanitized(
        "tsan", "^fpga_dma_.*_stress_test$", bench), True),
]


if __name__ == "__main__":
    proof.main(__doc__, STEPS)

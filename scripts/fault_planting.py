# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""The part that all scripts share which plant faults: planted_*.py.

Such a script has a list of faults and a bench, which builds a copy of the tree
with one fault after the other and names the test that notices.
"""

import argparse
import contextlib
import json
import pathlib
import re
import shutil
import sys
import tempfile
import typing

from commands import ROOT, failed_test, must, run

# What a bench says of a fault that says nothing about the tests.
DOES_NOT_BUILD = "**does not build**"


class Fault(typing.NamedTuple):
    """Edits that belong together: [(file, old text, new text)]. Files are named
    from the top of the tree, and may be patterns."""
    area: str
    name: str
    edits: list

    @property
    def title(self):
        return f"{self.area}: {self.name}"


def edited_files(fault, root):
    """{file: (its text, its text with the fault)}. Ends the program if a text
    is no longer in its file."""
    files = {}
    for pattern, old, new in fault.edits:
        for path in sorted(root.glob(pattern)):
            before, now = files.get(path) or (path.read_text(),) * 2
            if old in now:
                files[path] = before, now.replace(old, new, 1)
                break
        else:
            sys.exit(f"'{fault.name}': {pattern} no longer holds\n{old}")
    return files


@contextlib.contextmanager
def planted(fault, root):
    """The files below `root` have the fault inside the block."""
    files = edited_files(fault, root)
    try:
        for path, (_, text) in files.items():
            path.write_text(text)
        yield
    finally:
        for path, (text, _) in files.items():
            path.write_text(text)


def copy_sources(tree):
    shutil.copytree(ROOT, tree,
                    ignore=shutil.ignore_patterns("build", ".git"))


def failing_program(programs, tree, seconds):
    """The first test that fails or takes too long, None if all pass."""
    for program in programs:
        code, output = run([program], cwd=tree, timeout=seconds)
        if code != 0:
            return failed_test(output, program.name)
    return None


def cmake_bench(tests_of, seconds):
    """A bench of test programs that CMake builds in a copy of the tree.
    tests_of(fault): their targets, in the order in which they are tried. A test
    that takes longer than `seconds` counts as failed."""
    def bench(folder, faults, jobs):
        tree, build = folder / "tree", folder / "build"
        copy_sources(tree)
        # Shared libraries: a change of one source links no test again.
        must(["cmake", "-S", tree, "-B", build, "-G", "Ninja",
              "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1",
              "-DPAGED_KV_WERROR=OFF", "-DBUILD_SHARED_LIBS=ON",
              "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON",
              "-DPAGED_KV_BUILD_TOOL=OFF", "-DPAGED_KV_BUILD_BENCHMARKS=OFF",
              "-DPAGED_KV_BUILD_EXAMPLES=OFF", "-DPAGED_KV_INSTALL=OFF"])
        ninja = ["ninja", "-C", build, "-j", jobs]

        def programs(targets):
            return [build / "bin" / "tests" / t for t in targets]

        used = dict.fromkeys(t for fault in faults for t in tests_of(fault))
        must(ninja + list(used))
        test = failing_program(programs(used), tree, seconds)
        if test is not None:
            sys.exit(f"{test} fails without any fault")
        for fault in faults:
            targets = tests_of(fault)
            with planted(fault, tree):
                built = run(ninja + list(targets))[0] == 0
                test = (failing_program(programs(targets), tree, seconds)
                        if built else DOES_NOT_BUILD)
            yield test
    return bench


def main(description, faults, bench):
    """Plants the faults that the command line names and exits, with 0 if each
    is noticed. bench(folder, faults, jobs) is a generator; for each fault, in
    their order, it yields the test that noticed, None, or DOES_NOT_BUILD."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="",
                        help="regular expression in an 'area: name'")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path,
                        help="file for the results")
    args = parser.parse_args()
    faults = [f for f in faults if re.search(args.only, f.title)]
    if not faults:
        sys.exit(f"no fault has '{args.only}'")
    for fault in faults:
        edited_files(fault, ROOT)
    results = []
    with tempfile.TemporaryDirectory(prefix="paged_kv_faults_") as folder:
        tests = bench(pathlib.Path(folder), faults, args.jobs)
        print("| Area | Fault | Noticed by |\n| --- | --- | --- |", flush=True)
        for fault, test in zip(faults, tests):
            print(f"| {fault.area} | {fault.name} | {test or '**nobody**'} |",
                  flush=True)
            results.append({"area": fault.area, "fault": fault.name,
                            "test": None if test == DOES_NOT_BUILD else test})
    noticed = sum(result["test"] is not None for result in results)
    print(f"\n{noticed} of {len(faults)} noticed")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    sys.exit(0 if noticed == len(faults) else 1)

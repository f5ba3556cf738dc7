#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how many random faults in paged_kv/ the tests notice.

Mutants come from universalmutator (Groce et al., ICSE 2018; PyPI). A seeded
sample of them is compiled one by one; mutants that do not compile or give the
same object code are replaced by others. Each of the rest is run against the
core's tests until one fails. Works on a copy of the tree.

  python3 -m venv venv && venv/bin/pip install universalmutator
  scripts/mutation_test.py --mutate venv/bin/mutate --count 120 --seed 1
"""

import argparse
import hashlib
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, timeout=None, **kwargs):
    """True if `command` exits 0 in time."""
    try:
        return (
            subprocess.run(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                timeout=timeout,
                **kwargs,
            ).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


def sources(tree, scheduler):
    """Files that are mutated: everything of the library that computes."""
    skip = ("op_log", "op_recorder", "thread_safe", "check.h", "status_macros")
    files = [
        f
        for f in sorted((tree / "paged_kv").glob("*"))
        if f.suffix in (".cc", ".h") and not f.name.startswith(skip)
    ]
    return [
        f for f in files if scheduler or not f.name.startswith("batch_scheduler")
    ]


def mutants_of(path, mutate, scratch):
    """(file, line, new line) of every mutant outside comments."""
    out = scratch / path.name
    out.mkdir()
    subprocess.run(
        [mutate, str(path), "cpp", "--noCheck", "--mutantDir", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        cwd=scratch,
    )
    original = path.read_text().splitlines()
    found = set()
    for file in out.iterdir():
        lines = file.read_text().splitlines()
        for number, (old, new) in enumerate(zip(original, lines)):
            if old == new:
                continue
            code = old.split("//")[0].strip()
            if code and not code.startswith(("#", "namespace", "}  ", "using")):
                found.add((number, new))
            break
    return [(path, number, new) for number, new in sorted(found)]


def object_hash(build):
    """Hash of the library's code, to tell equivalent mutants."""
    digest = hashlib.sha256()
    for file in sorted(build.glob("paged_kv/**/*.o")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutate", default="mutate", help="the mutate command")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--jobs", default="2", help="compile jobs")
    parser.add_argument(
        "--scheduler", action="store_true", help="mutate batch_scheduler* too"
    )
    parser.add_argument(
        "--tests", default="kv_cache_manager|regression|policy|page_table",
        help="regular expression: test files of tests/paged_kv that may notice"
    )
    parser.add_argument(
        "--timeout", type=int, default=120, help="seconds per test program"
    )
    return parser.parse_args()


def main():
    args = parse_arguments()
    if shutil.which(args.mutate) is None:
        sys.exit(
            f"{args.mutate} not found: pip install universalmutator, "
            "then pass --mutate=PATH"
        )
    with tempfile.TemporaryDirectory(prefix="paged_kv_mutants_") as name:
        scratch = pathlib.Path(name)
        tree = scratch / "tree"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns("build", ".git")
        )
        build = scratch / "build"
        if not run(
            ["cmake", "-S", tree, "-B", build, "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1",
             "-DPAGED_KV_WERROR=OFF"]
        ):
            sys.exit("configuring failed")
        names = [
            "paged_kv_" + t.stem
            for t in sorted((tree / "tests" / "paged_kv").glob("*_test.cc"))
            if re.search(args.tests, t.stem) and "stress" not in t.stem
        ]
        ninja = ["ninja", "-C", str(build), "-j", args.jobs]
        print(f"building {len(names)} test programs ...", flush=True)
        if not run(ninja + names):
            sys.exit(f"building the unchanged tests failed: {' '.join(names)}")
        programs = []
        for test in names:
            program = next(p for p in build.rglob(test) if p.is_file())
            start = time.monotonic()
            if not run([program], timeout=args.timeout, cwd=tree):
                sys.exit(f"{test} fails without any mutant")
            programs.append((time.monotonic() - start, test, program))
        programs.sort()
        baseline = object_hash(build)

        candidates = []
        for path in sources(tree, args.scheduler):
            candidates += mutants_of(path, args.mutate, scratch)
        print(f"{len(candidates)} mutants, seed {args.seed}", flush=True)
        random.Random(args.seed).shuffle(candidates)

        results = []
        for path, number, new in candidates:
            if len(results) == args.count:
                break
            text = path.read_text()
            lines = text.splitlines()
            old = lines[number]
            lines[number] = new
            path.write_text("\n".join(lines) + "\n")
            result = None
            if run(ninja + names, timeout=900) and object_hash(build) != baseline:
                result = {
                    "file": path.name, "line": number + 1, "old": old.strip(),
                    "new": new.strip(), "killed_by": None,
                }
                for seconds, test, program in programs:
                    limit = min(args.timeout, 20 + 5 * seconds)
                    if not run([program], timeout=limit, cwd=tree):
                        result["killed_by"] = test
                        break
            path.write_text(text)
            if result is None:
                continue
            results.append(result)
            killed = sum(r["killed_by"] is not None for r in results)
            print(
                f"{len(results)}/{args.count} killed {killed}  "
                f"{result['file']}:{result['line']} "
                f"{result['killed_by'] or 'SURVIVED: ' + result['new']}",
                flush=True,
            )
        killed = sum(r["killed_by"] is not None for r in results)
        print(f"killed {killed} of {len(results)}, "
              f"{100.0 * killed / max(len(results), 1):.1f} %")
        for r in results:
            if r["killed_by"] is None:
                print(f"  {r['file']}:{r['line']}\n    - {r['old']}\n    + {r['new']}")
        if args.json:
            report = {"schema_version": 1, "seed": args.seed, "killed": killed,
                      "mutants": results}
            pathlib.Path(args.json).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

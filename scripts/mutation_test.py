#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how many random faults in paged_kv/ the tests notice.

Mutants, one changed line each, come from universalmutator (Groce et al., ICSE
2018; PyPI). A seeded sample of them is built one by one into a copy of the
tree; those that do not compile or change no object code are replaced by others.
The test programs of tests/paged_kv then run until one fails. Limits are in time
of the processor, so that a loaded machine notices no more than an idle one.

  python3 -m venv venv && venv/bin/pip install universalmutator
  scripts/mutation_test.py --mutate venv/bin/mutate --json report.json
  scripts/mutation_test.py --again report.json   # the survivors once more
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ("paged_kv_paged_kv", "paged_kv_batch_scheduler")
# Shared libraries: a change of one source links nothing else again.
CONFIGURATION = (
    "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1",
    "-DPAGED_KV_WERROR=OFF", "-DBUILD_SHARED_LIBS=ON",
    "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON", "-DPAGED_KV_BUILD_TOOL=OFF",
    "-DPAGED_KV_BUILD_BENCHMARKS=OFF", "-DPAGED_KV_BUILD_EXAMPLES=OFF",
    "-DPAGED_KV_INSTALL=OFF",
)
# A program may take so many times its own time, and some seconds.
PATIENCE = 20
PATIENCE_SECONDS = 10
WALL_SECONDS = 7200  # for what waits and does not compute
MEMORY_BYTES = 8 << 30  # a mutant that fills the memory harms no other program


def file_hash(files):
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Program:
    """One test program: builds, and runs until its first failure."""

    def __init__(self, name, build):
        self.name = name
        self.path = build.path / "bin" / "tests" / name
        self.build = build
        self.seconds = 0.0
        self.hash = ""

    def make(self):
        return self.build.make([self.name])

    def run(self):
        """None if all passes, else what failed; keeps the time it took."""
        limit = int(PATIENCE_SECONDS + PATIENCE * self.seconds)

        def set_limits():
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_DATA,
                               (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(
                [self.path, "--gtest_fail_fast"], capture_output=True,
                text=True, errors="replace", timeout=WALL_SECONDS,
                preexec_fn=set_limits, cwd=self.build.work,
                env=dict(os.environ, TEST_TMPDIR=str(self.build.work)),
                stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "hangs"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.last_seconds = (after.ru_utime + after.ru_stime -
                             before.ru_utime - before.ru_stime)
        if done.returncode == 0:
            return None
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"more than {limit} s of processor time"
        failed = re.findall(r"\[  FAILED  \] ([\w/]+\.[\w/]+)", done.stdout)
        running = re.findall(r"\[ RUN      \] ([\w/]+\.[\w/]+)", done.stdout)
        return failed[0] if failed else (running or ["crash"])[-1]


class Build:
    """A copy of the tree, its libraries and its test programs."""

    def __init__(self, scratch, tests, jobs):
        self.tree = scratch / "tree"
        self.path = scratch / "build"
        self.work = scratch / "work"
        self.jobs = jobs
        self.work.mkdir()
        shutil.copytree(ROOT, self.tree,
                        ignore=shutil.ignore_patterns("build", ".git"))
        self.command(["cmake", "-S", self.tree, "-B", self.path,
                      *CONFIGURATION])
        names = ["paged_kv_" + test.stem
                 for test in sorted((self.tree / "tests/paged_kv").glob(
                     "*_test.cc"))
                 if re.search(tests, test.stem) and "stress" not in test.stem]
        print(f"building {len(names)} test programs ...", flush=True)
        self.command(["ninja", "-C", self.path, f"-j{jobs}", *LIBRARIES,
                      *names])
        self.programs = [Program(name, self) for name in names]
        for program in self.programs:
            program.seconds = 60.0
            if (failure := program.run()) is not None:
                sys.exit(f"{program.name}: {failure} without any mutant")
            program.seconds = program.last_seconds
            program.hash = file_hash([program.path])
        self.programs.sort(key=lambda program: program.seconds)
        self.hash = self.library_hash()

    @staticmethod
    def command(command):
        done = subprocess.run([str(word) for word in command], text=True,
                              capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")

    def make(self, targets):
        return subprocess.run(
            ["ninja", "-C", str(self.path), f"-j{self.jobs}", *targets],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ).returncode == 0

    def library_hash(self):
        return file_hash(sorted(self.path.glob("paged_kv/**/*.o")))

    def programs_for(self, file):
        """Those of the same part first, each part's quickest first."""
        for part in ("batch_scheduler", "op_log", "kv_cache_manager"):
            if file.startswith(part):
                break
        return sorted(self.programs,
                      key=lambda program: part not in program.name)

    def try_mutant(self, file, number, new):
        """(compiles and differs, the program that fails, what failed)."""
        path = self.tree / "paged_kv" / file
        text = path.read_text()
        lines = text.splitlines()
        lines[number] = new
        path.write_text("\n".join(lines) + "\n")
        try:
            if not self.make(LIBRARIES):
                return False, None, None
            differs = self.library_hash() != self.hash
            if not differs and path.suffix == ".cc":
                return False, None, None
            any_differs = differs
            for program in self.programs_for(file):
                if not program.make():
                    return False, None, None
                # What only the tests include is in no library.
                if not differs and file_hash([program.path]) == program.hash:
                    continue
                any_differs = True
                if (failure := program.run()) is not None:
                    return True, program.name, failure
            return any_differs, None, None
        finally:
            path.write_text(text)


def mutants_of(path, mutate, scratch):
    """(file, line index, new line) of every mutant outside comments."""
    out = scratch / path.name
    out.mkdir()
    subprocess.run([mutate, str(path), "cpp", "--noCheck", "--mutantDir",
                    str(out)], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True, cwd=scratch)
    original = path.read_text().splitlines()
    found = set()
    for file in out.iterdir():
        for number, (old, new) in enumerate(
                zip(original, file.read_text().splitlines())):
            if old == new:
                continue
            code = old.split("//")[0].strip()
            if code and not code.startswith(("#", "namespace", "using")):
                found.add((number, new))
            break
    shutil.rmtree(out)
    return [(path.name, number, new) for number, new in sorted(found)]


def all_mutants(build, mutate, files, scratch):
    candidates = []
    for path in sorted((build.tree / "paged_kv").iterdir()):
        if path.suffix in (".cc", ".h") and re.search(files, path.name):
            candidates += mutants_of(path, mutate, scratch)
    return candidates


def place_again(build, result):
    """Where the line of an earlier survivor is now, None if it is gone."""
    path = build.tree / "paged_kv" / result["file"]
    if not path.exists():
        return None
    lines = path.read_text().splitlines()
    places = [n for n, line in enumerate(lines)
              if line.strip() == result["old"]]
    return min(places, key=lambda n: abs(n + 1 - result["line"]), default=None)


def try_again(build, results):
    """Runs the survivors among `results` again."""
    for result in results:
        if result["killed_by"] is not None:
            continue
        number = place_again(build, result)
        if number is None:
            print(f"{result['file']}:{result['line']} is gone", flush=True)
            continue
        _, program, failure = build.try_mutant(result["file"], number,
                                               result["new"])
        result.update(line=number + 1, killed_by=program, failure=failure)
        print(f"{result['file']}:{result['line']} "
              f"{failure or 'SURVIVED: ' + result['new']}", flush=True)


def sample(build, candidates, count, save):
    """Runs `count` mutants of `candidates`, in their order."""
    results = []
    for file, number, new in candidates:
        if len(results) == count:
            break
        old = (build.tree / "paged_kv" / file).read_text().splitlines()[number]
        counts, program, failure = build.try_mutant(file, number, new)
        if not counts:
            continue
        results.append({"file": file, "line": number + 1, "old": old.strip(),
                        "new": new.strip(), "killed_by": program,
                        "failure": failure})
        killed = sum(r["killed_by"] is not None for r in results)
        print(f"{len(results)}/{count} killed {killed}  {file}:{number + 1} "
              f"{failure or 'SURVIVED: ' + new.strip()}", flush=True)
        save(results)
    return results


def print_report(results):
    killed = sum(r["killed_by"] is not None for r in results)
    print(f"killed {killed} of {len(results)}, "
          f"{100.0 * killed / max(len(results), 1):.1f} %")
    for r in results:
        if r["killed_by"] is None:
            print(f"  {r['file']}:{r['line']}\n    - {r['old']}\n"
                  f"    + {r['new']}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutate", default="mutate", help="the command")
    parser.add_argument("--count", type=int, default=130)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", default=".",
                        help="regular expression: files to mutate")
    parser.add_argument("--tests", default=".",
                        help="regular expression: tests that may notice")
    parser.add_argument("--json", type=pathlib.Path,
                        help="write the results to this file")
    parser.add_argument("--again", type=pathlib.Path, metavar="JSON",
                        help="run the survivors of this report again and "
                        "bring it up to date")
    parser.add_argument("--scratch", type=pathlib.Path,
                        help="folder to work in, emptied first (default: a "
                        "temporary one); always the same, ccache helps")
    parser.add_argument("--jobs", type=int, default=2, help="compile jobs")
    args = parser.parse_args()
    if args.again is None and shutil.which(args.mutate) is None:
        parser.error(f"{args.mutate} not found: pip install universalmutator, "
                     "then pass --mutate=PATH")
    return args


@contextlib.contextmanager
def scratch_folder(path):
    if path is None:
        with tempfile.TemporaryDirectory(prefix="paged_kv_mutants_") as name:
            yield pathlib.Path(name)
        return
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    yield path.resolve()


def main():
    args = parse_arguments()
    report = {"schema_version": 2, "seed": args.seed, "mutants": []}
    target = args.again or args.json

    def save(results):
        report["mutants"] = results
        report["killed"] = sum(r["killed_by"] is not None for r in results)
        if target:
            target.write_text(json.dumps(report, indent=1) + "\n")

    with scratch_folder(args.scratch) as scratch:
        build = Build(scratch, args.tests, args.jobs)
        if args.again:
            report = json.loads(args.again.read_text())
            results = report["mutants"]
            try_again(build, results)
        else:
            candidates = all_mutants(build, args.mutate, args.files, scratch)
            print(f"{len(candidates)} mutants, seed {args.seed}", flush=True)
            random.Random(args.seed).shuffle(candidates)
            results = sample(build, candidates, args.count, save)
    save(results)
    print_report(results)


if __name__ == "__main__":
    main()

# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""The part that all scripts share which prove a whole area: prove_*.py.

Such a script has a list of steps. A step runs tests, scripts or the tool on a
bench and returns criteria: what was found beside what is demanded.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import typing

from commands import ROOT, gtest_properties, must


class Criterion(typing.NamedTuple):
    name: str
    figure: str
    aim: str
    met: bool


class Step(typing.NamedTuple):
    name: str
    run: typing.Callable
    threads: bool = False  # takes all jobs itself


class Bench:
    """Where things are, and how they are run."""

    def __init__(self, build, logs, jobs):
        self.build = build
        self.logs = logs
        self.jobs = jobs
        logs.mkdir(parents=True, exist_ok=True)

    def command(self, name, command, folder=ROOT, **environment):
        """Whether it succeeded; what it prints goes to a file of that name."""
        # As it is printed: some take long.
        with open(self.logs / f"{name}.log", "w") as log:
            return subprocess.run(
                [str(word) for word in command], cwd=folder, stdout=log,
                stderr=log, env={**os.environ, **environment}).returncode == 0

    def script(self, name, *options):
        """What a script of this folder writes to --json, None if it failed."""
        path = self.logs / f"{name}.json"
        path.unlink(missing_ok=True)
        self.command(name, [sys.executable, ROOT / f"scripts/{name}.py",
                            f"--json={path}", *options])
        return json.loads(path.read_text()) if path.exists() else None

    def programs(self, pattern):
        """{name: what CTest knows of it}."""
        listed = must(["ctest", "--test-dir", self.build, "-R", pattern,
                       "--show-only=json-v1"])
        return {test["name"]: test for test in json.loads(listed)["tests"]}

    def program(self, name, **environment):
        """What the tests of a program have recorded; None if one of them
        fails, is skipped or is not there. Run without CTest and its
        time-outs, but in the environment that it would give."""
        path = self.logs / f"{name}.json"
        path.unlink(missing_ok=True)
        test = self.programs(f"^{name}$").get(name)
        if test is None or "command" not in test:  # it was not built
            return None
        known = {each["name"]: each["value"] for each in test["properties"]}
        environment.update(pair.split("=", 1)
                           for pair in known.get("ENVIRONMENT", []))
        passed = self.command(name, [*test["command"],
                                     f"--gtest_output=json:{path}"],
                              known["WORKING_DIRECTORY"], **environment)
        if not passed or not path.exists():
            return None
        tests = gtest_properties(path)
        wanted = json.loads(path.read_text())["tests"]
        return tests if len(tests) == wanted > 0 else None


def recorded(tests, name):
    """The values of a property, of all tests that have it."""
    return [float(test[name]) for test in (tests or {}).values()
            if name in test]


def build_programs(bench, pattern, wanted, others=()):
    """Configures the release build if need be and builds the test programs that
    CTest lists under `pattern`, of which `wanted` have to be there, and the
    targets `others`."""
    configured = bench.build / "CMakeCache.txt"
    good = configured.exists() or bench.command(
        "configure", ["cmake", "--preset", "release", "-B", bench.build])
    programs = {name for name in (bench.programs(pattern) if good else {})
                if name.endswith("_test")}
    missing = sorted(set(wanted) - programs)
    good = good and bench.command(
        "build", ["cmake", "--build", bench.build, "-j", bench.jobs,
                  "--target", *sorted(programs), *others])
    figure = f"no {missing[0]}" if missing else f"{len(programs)} programs"
    return [Criterion("release build of the tests", figure, "builds",
                      good and not missing)]


def planted(name, what, wanted, bench):
    results = bench.script(name, f"--jobs={bench.jobs}") or []
    noticed = [r for r in results if r["test"] is not None]
    return results, Criterion(
        f"{what}: planted faults noticed", f"{len(noticed)} of {len(results)}",
        f"all, >= {wanted}", len(noticed) == len(results) >= wanted)


def passing(name, programs, bench):
    """All tests of these programs pass."""
    counts = [len(tests) if (tests := bench.program(program)) else 0
              for program in programs]
    failed = [p for p, count in zip(programs, counts) if count == 0]
    return [Criterion(name, f"fails: {failed[0]}" if failed
                      else f"{sum(counts)} tests", "pass", not failed)]


def run_steps(steps, bench):
    """[(step, its criteria, seconds)], with a line when each ends."""
    done = []

    def take(step):
        start = time.monotonic()
        criteria = step.run(bench)
        seconds = time.monotonic() - start
        met = all(criterion.met for criterion in criteria)
        done.append((step, criteria, seconds))
        print(f"[{len(done)}/{len(steps)}] {step.name}: "
              f"{'ok' if met else 'MISSED'}, {seconds:.0f} s",
              file=sys.stderr, flush=True)

    pending = list(steps)
    while pending:
        together = [pending.pop(0)]
        while pending and not together[0].threads and not pending[0].threads:
            together.append(pending.pop(0))
        print(f"... {', '.join(step.name for step in together)}",
              file=sys.stderr, flush=True)
        with concurrent.futures.ThreadPoolExecutor(bench.jobs) as pool:
            list(pool.map(take, together))
    return sorted(done, key=lambda one: steps.index(one[0]))


def main(description, steps, options=()):
    """Runs the steps that the command line names, prints their criteria and
    exits, with 0 if each is met. options: [(flag, help)] of paths that the
    bench gets as an attribute, None if it is not given."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build/release",
                        help="build folder; configured if it is not yet")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="",
                        help="regular expression in a step's name: "
                        + ", ".join(step.name for step in steps))
    for flag, text in options:
        parser.add_argument(flag, type=pathlib.Path, help=text)
    parser.add_argument("--logs", type=pathlib.Path,
                        help="folder for what each step prints")
    parser.add_argument("--json", type=pathlib.Path,
                        help="file for the results")
    args = parser.parse_args()
    steps = [step for step in steps if re.search(args.only, step.name)]
    if not steps:
        parser.error(f"no step has '{args.only}'")
    revision = must(["git", "-C", ROOT, "describe", "--always", "--dirty"]) \
        if (ROOT / ".git").exists() else "no repository"
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="paged_kv_proof_") as scratch:
        bench = Bench(args.build.resolve(),
                      (args.logs or pathlib.Path(scratch)).resolve(),
                      args.jobs)
        for flag, _ in options:
            name = flag.lstrip("-")
            setattr(bench, name, getattr(args, name))
        done = run_steps(steps, bench)
    seconds = time.monotonic() - start
    criteria = [c for _, of_step, _ in done for c in of_step]
    print("| Criterion | Figure | Aim | |\n| --- | ---: | ---: | --- |")
    for c in criteria:
        print(f"| {c.name} | {c.figure} | {c.aim} | "
              f"{'met' if c.met else '**missed**'} |")
    met = sum(criterion.met for criterion in criteria)
    print(f"\n{met} of {len(criteria)} met, {revision.strip()}, "
          f"{seconds:.0f} s")
    if args.json:
        args.json.write_text(json.dumps({
            "revision": revision.strip(), "seconds": round(seconds),
            "steps": {step.name: round(s) for step, _, s in done},
            "criteria": [c._asdict() for c in criteria]}, indent=1))
    sys.exit(0 if met == len(criteria) else 1)

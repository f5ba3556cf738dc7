# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Running other programs, and reading what GoogleTest says of its tests."""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, timeout=None, **kwargs):
    """The exit code, -1 if it took too long, and what was printed."""
    try:
        done = subprocess.run([str(word) for word in command],
                              capture_output=True, text=True,
                              errors="replace", timeout=timeout, **kwargs)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        printed = error.stdout or b""
        return -1, (printed if isinstance(printed, str)
                    else printed.decode(errors="replace"))


def must(command, **kwargs):
    """What it printed; ends this program if it fails."""
    code, output = run(command, **kwargs)
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{output}")
    return output


def failed_test(output, otherwise):
    """Of the output of GoogleTest: the first test that failed, or else the one
    that was running when the program ended."""
    failed = re.findall(r"\[  FAILED  \] ([\w/]+\.[\w/]+)", output)
    running = re.findall(r"\[ RUN      \] ([\w/]+\.[\w/]+)", output)
    return (failed or running or [otherwise])[0 if failed else -1]


def gtest_properties(path):
    """Of a file of --gtest_output=json: {test: {property: text}}, of tests that
    ran and passed."""
    tests = {}
    for suite in json.loads(pathlib.Path(path).read_text())["testsuites"]:
        for test in suite["testsuite"]:
            if test["result"] == "COMPLETED" and "failures" not in test:
                tests[f"{suite['name']}.{test['name']}"] = {
                    key: value for key, value in test.items()
                    if isinstance(value, str)}
    return tests

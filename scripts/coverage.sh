#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests with source-based coverage and prints, per file of the
# libraries, the lines and branches that they reach. HTML goes to
# build/coverage/html/.
#
#   scripts/coverage.sh [JOBS]

set -euo pipefail
cd "$(dirname "$0")/.."
readonly jobs="${1:-$(nproc)}"
readonly build=build/coverage
readonly profiles="${PWD}/${build}/profiles"

cmake --preset coverage
cmake --build --preset coverage -j "${jobs}"
rm -rf "${profiles}"
LLVM_PROFILE_FILE="${profiles}/%p.profraw" ctest --preset coverage -j "${jobs}"
find "${profiles}" -name '*.profraw' > "${build}/profiles.txt"
llvm-profdata-14 merge -sparse -f "${build}/profiles.txt" \
  -o "${build}/merged.profdata"

objects=()
for binary in "${build}"/bin/tests/* "${build}"/bin/examples/* \
  "${build}"/bin/pagedkv; do
  if [[ -f "${binary}" ]]; then
    objects+=(-object "${binary}")
  fi
done
common=("${objects[@]}" "-instr-profile=${build}/merged.profdata"
  '-ignore-filename-regex=(^/usr/|/tests/|/build/)')
llvm-cov-14 show "${common[@]}" -format=html -output-dir="${build}/html"
llvm-cov-14 report "${common[@]}" -show-functions=false
echo "coverage: ${build}/html/index.html"

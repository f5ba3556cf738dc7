#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzzers with libFuzzer and the address sanitizer and runs each for
# an equal share of the time, at least 5 s. Starts from tests/corpus/<fuzzer>/,
# keeps what it learns in build/fuzz/corpus/<fuzzer>/, and leaves an input that
# fails in build/fuzz/failures/<fuzzer>/.
#
#   scripts/fuzz.sh [SECONDS] [JOBS]

set -euo pipefail
cd "$(dirname "$0")/.."
readonly total_s="${1:-60}"
readonly jobs="${2:-$(nproc)}"

cmake --preset fuzz
cmake --build --preset fuzz -j "${jobs}"

shopt -s nullglob
fuzzers=(build/fuzz/bin/fuzzers/*)
if ((${#fuzzers[@]} == 0)); then
  echo "fuzz: no fuzzers were built" >&2
  exit 1
fi
share_s=$((total_s / ${#fuzzers[@]}))
((share_s >= 5)) || share_s=5

for fuzzer in "${fuzzers[@]}"; do
  name="$(basename "${fuzzer}")"
  learned="build/fuzz/corpus/${name}"
  failures="build/fuzz/failures/${name}"
  mkdir -p "${learned}" "${failures}"
  seeds=()
  if [[ -d "tests/corpus/${name}" ]]; then
    seeds=("tests/corpus/${name}")
  fi
  echo "fuzz: ${name}, ${share_s} s"
  log="build/fuzz/${name}.log"
  if ! PAGED_KV_SHARED_DIR="${PAGED_KV_SHARED_DIR:-$PWD/../shared}" \
    "${fuzzer}" -max_total_time="${share_s}" -timeout=10 -rss_limit_mb=4096 \
    -artifact_prefix="${failures}/" -print_final_stats=1 \
    "${learned}" "${seeds[@]}" > "${log}" 2>&1; then
    tail -n 60 "${log}" >&2
    echo "fuzz: ${name} FAILED; the input is in ${failures}/" >&2
    exit 1
  fi
  grep -E 'Done|stat::number_of_executed_units' "${log}" || true
done

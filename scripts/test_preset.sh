#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Configures, builds and tests one preset.
#
#   scripts/test_preset.sh PRESET [JOBS]

set -euo pipefail
cd "$(dirname "$0")/.."
readonly preset="${1:?usage: $0 PRESET [JOBS]}"
readonly jobs="${2:-$(nproc)}"

cmake --preset "${preset}"
cmake --build --preset "${preset}" -j "${jobs}"

run=()
if [[ "${preset}" == tsan ]] && setarch "$(uname -m)" -R true 2> /dev/null; then
  # Kernels that randomise more address bits than this compiler's thread
  # sanitizer expects make it stop at start-up ("unexpected memory mapping").
  run=(setarch "$(uname -m)" -R)
fi
"${run[@]}" ctest --preset "${preset}" -j "${jobs}"

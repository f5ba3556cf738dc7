#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs clang-tidy with .clang-tidy's checks over the libraries, the tool and the
# examples, with the dev preset's compile commands.
#
#   scripts/tidy.sh [JOBS]

set -euo pipefail
cd "$(dirname "$0")/.."
readonly jobs="${1:-$(nproc)}"

cmake --preset dev
run-clang-tidy-14 -clang-tidy-binary clang-tidy-14 -quiet -p build/dev \
  -extra-arg=-Wno-unknown-warning-option \
  -j "${jobs}" "^${PWD}/(paged_kv|attention|fpga_dma|benchmarks/tool|docs)/"

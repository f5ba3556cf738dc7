#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Rewrites every C++ source with clang-format 14, or with --check fails if one
# would change. One version, because versions disagree.
#
#   scripts/format.sh [--check]

set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
case "${1:-}" in
  "") ;;
  --check) mode=(--dry-run --Werror) ;;
  *)
    echo "usage: $0 [--check]" >&2
    exit 2
    ;;
esac

# By folder and not by `git ls-files`, so that it works in an unpacked archive.
find paged_kv attention fpga_dma tests benchmarks docs \
  -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cpp' \) -print0 |
  sort -z | xargs -0 clang-format-14 --style=file "${mode[@]}"

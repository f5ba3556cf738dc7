#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# The step that README.md shows is, word for word, the one between the marks in
# docs/examples/embed.cc, which is compiled and run.
#
#   tests/conventions/check_readme_example.sh [SOURCE_DIR]

set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

compiled="$(sed -n '/\/\/ \[README\]/,/\/\/ \[\/README\]/p' \
  docs/examples/embed.cc | sed '1d;$d;s/^    //')"
shown="$(sed -n '/^```cpp$/,/^```$/p' README.md | sed '1d;$d')"
if [[ -z "${compiled}" || "${compiled}" != "${shown}" ]]; then
  echo "README.md shows another step than docs/examples/embed.cc runs:" >&2
  diff <(echo "${compiled}") <(echo "${shown}") >&2 || true
  exit 1
fi

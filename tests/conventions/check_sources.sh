#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks what the compiler cannot: the direction of includes, the licence lines
# and the include guards. Prints every violation as file:line: message.
#
#   tests/conventions/check_sources.sh [ROOT]

set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

violations=0
# Reads "file:line:text" lines and reports each with the message.
report() {
  local message="$1" hit
  while IFS= read -r hit; do
    echo "${hit%%:*}:$(cut -d: -f2 <<< "${hit}"): ${message}"
    violations=$((violations + 1))
  done
}

# forbid FOLDER REGEX MESSAGE [grep arguments]: no #include of the folder's
# sources matches.
forbid() {
  local folder="$1" regex="$2" message="$3"
  shift 3
  report "${message}" < <(grep -rnE --include='*.h' --include='*.cc' \
    --include='*.cpp' "$@" "^ *# *include *[<\"]${regex}" "${folder}" || true)
}

forbid paged_kv '(attention|fpga_dma|tests|benchmarks)/' \
  'paged_kv includes only paged_kv, Abseil and a hash library'
forbid paged_kv '(gtest|benchmark|nlohmann|CLI|xrt)/' \
  'paged_kv includes only paged_kv, Abseil and a hash library'
forbid attention '(fpga_dma|tests|benchmarks)/' \
  'attention includes only paged_kv below it'
forbid fpga_dma '(tests|benchmarks)/' \
  'fpga_dma includes only attention and paged_kv below it'
# The engine of the example has a product of its own.
for folder in paged_kv fpga_dma benchmarks docs; do
  forbid "${folder}" 'hwy/' 'Highway is included in attention only' \
    --exclude-dir=engine
done
report 'Highway is included in sources and *-inl.h, not in headers' < <(
  grep -rnE '^ *# *include *["<]hwy/' --include='*.h' --exclude='*-inl.h' \
    attention || true)
forbid docs/examples '(tests|benchmarks)/' 'an example includes what users have'

mapfile -d '' sources < <(find paged_kv attention fpga_dma tests benchmarks \
  docs scripts cmake .ci -type f \( -name '*.h' -o -name '*.cc' \
  -o -name '*.cpp' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' \
  -o -name CMakeLists.txt -o -name run \) -print0 | sort -z)
for line in 'Copyright 2026 The PagedKV Authors' \
  'SPDX-License-Identifier: Apache-2.0'; do
  report "the line '${line}' is missing" < <(
    grep -LF "${line}" "${sources[@]}" | sed 's/$/:1:/')
done

for file in "${sources[@]}"; do
  # Highway's toggle guard lets *-inl.h be included once per target.
  if [[ "${file}" != *.h || "${file}" == *-inl.h ]]; then
    continue
  fi
  guard="${file#paged_kv/}"
  guard="${guard//[\/.-]/_}"
  guard="PAGED_KV_${guard^^}_"
  if ! grep -q "^#ifndef ${guard}\$" "${file}"; then
    report "the include guard is not ${guard}" <<< "${file}:1:"
  fi
done

if ((violations > 0)); then
  echo "${violations} violations"
  exit 1
fi

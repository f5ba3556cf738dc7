#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Plants one violation of each kind and expects check_sources.sh to find exactly
# these, and none in a clean tree.

set -euo pipefail
check="$(cd "$(dirname "$0")" && pwd)/check_sources.sh"
readonly check
tree="$(mktemp -d)"
readonly tree
trap 'rm -rf "${tree}"' EXIT
cd "${tree}"
mkdir -p paged_kv attention fpga_dma tests benchmarks docs/examples scripts \
  cmake .ci

readonly licence='// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0'
write() { printf '%s\n%s\n' "${licence}" "$2" > "$1"; }

write paged_kv/good.h $'#ifndef PAGED_KV_GOOD_H_\n#define PAGED_KV_GOOD_H_\n#endif'
write attention/good.cc $'#include "hwy/highway.h"\n#include "paged_kv/good.h"'
write attention/good-inl.h '#include "hwy/highway.h"'
if ! "${check}" .; then
  echo "a clean tree has violations"
  exit 1
fi

write paged_kv/a.cc '#include "attention/good.h"'
write paged_kv/b.cc '#include <hwy/highway.h>'
write paged_kv/c.cc '#include <gtest/gtest.h>'
write attention/d.cc '#include "fpga_dma/device.h"'
write attention/e.h $'#ifndef PAGED_KV_ATTENTION_E_H_\n#include "hwy/base.h"\n#endif'
write docs/examples/f.cc '#include "tests/support/x.h"'
write tests/g.h $'#ifndef G_H\n#define G_H\n#endif'
echo '// Copyright 2026 The PagedKV Authors' > benchmarks/h.cc

output="$("${check}" . || true)"
echo "${output}"
for file in paged_kv/a.cc:3 paged_kv/b.cc:3 paged_kv/c.cc:3 attention/d.cc:3 \
  attention/e.h:4 docs/examples/f.cc:3 tests/g.h:1 benchmarks/h.cc:1; do
  if ! grep -q "^${file}: " <<< "${output}"; then
    echo "not found: ${file}"
    exit 1
  fi
done
grep -q '^8 violations$' <<< "${output}"

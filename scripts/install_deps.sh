#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that PagedKV needs and that are missing. Says
# nothing and touches nothing if all are there.
#
#   scripts/install_deps.sh [build|model|ci|all]
#
#   build  (default) what `make demo` and `make test` need
#   model  what `make model` needs, and nothing else
#   ci     also what sanitizers, fuzzing and the format check need
#   all    also what coverage, clang-tidy, the instruction counts and the area
#          of RTL kernels need

set -euo pipefail

readonly BUILD_PACKAGES=(
  g++ make cmake ninja-build
  libabsl-dev libxxhash-dev libssl-dev libhwy-dev  # the libraries
  libisal-dev                                      # checksums of transfers
  libcli11-dev nlohmann-json3-dev gnuplot-nox      # the tool and its plots
  libpcre2-dev libdnnl-dev                         # the example engine
  libgtest-dev libbenchmark-dev                    # tests, benchmarks
  verilator                                        # tests of RTL kernels
)
# XRT drives FPGA cards. Debian has it for this architecture alone; everything
# else builds without it.
if [[ "$(dpkg --print-architecture 2> /dev/null)" == amd64 ]]; then
  readonly CARD_PACKAGES=(libxrt-dev uuid-dev)
else
  readonly CARD_PACKAGES=()
fi
readonly CI_PACKAGES=(clang-14 libclang-rt-14-dev llvm-14 clang-format-14)
readonly EXTRA_PACKAGES=(clang-tidy-14 valgrind yosys)

packages=("${BUILD_PACKAGES[@]}" "${CARD_PACKAGES[@]}")
case "${1:-build}" in
  build) ;;
  model) packages=(python3-pip ca-certificates) ;;
  ci) packages+=("${CI_PACKAGES[@]}") ;;
  all) packages+=("${CI_PACKAGES[@]}" "${EXTRA_PACKAGES[@]}") ;;
  *)
    echo "usage: $0 [build|model|ci|all]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "install_deps: this is not a Debian system; install these yourself" \
    "(Debian's names): ${packages[*]}" >&2
  echo "install_deps: then run make with PAGED_KV_SKIP_INSTALL=1" >&2
  exit 1
fi

is_installed() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2> /dev/null)" == \
    installed ]]
}

missing=()
for package in "${packages[@]}"; do
  is_installed "${package}" || missing+=("${package}")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo > /dev/null; then
    echo "install_deps: missing packages: ${missing[*]}" >&2
    echo "install_deps: neither root nor sudo; have an administrator run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "install_deps: installing ${missing[*]}"
"${as_root[@]}" apt-get update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install --yes --no-install-recommends "${missing[@]}"

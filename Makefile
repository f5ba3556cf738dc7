# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0

# PAGED_KV_SKIP_INSTALL=1 skips the look at installed packages.
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)

.PHONY: help
help:
	@echo "make demo      install what is missing, build, run the demo"
	@echo "make test      install what is missing, build, run the tests"
	@echo "make build     install what is missing, build"

.PHONY: build
build:
	cmake --preset release
	cmake --build build/release -j $(JOBS)

.PHONY: demo
demo: build
	build/release/bin/pagedkv demo

.PHONY: test
test: build
	ctest --test-dir build/release --output-on-failure -j $(JOBS)

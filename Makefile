# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# A front door to CMake: every target installs what it needs, configures, builds
# and runs. Anything else is in CMakePresets.json.
#
# PAGED_KV_SKIP_INSTALL=1 skips the look at installed packages, JOBS=n sets the
# number of parallel jobs.

.DEFAULT_GOAL := help
SHELL := /bin/bash
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
BENCH_FILTER ?= .
INSTALL_DEPS := $(if $(PAGED_KV_SKIP_INSTALL),true,scripts/install_deps.sh)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s%s\n", $$1, $$2}' \
	  $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## install what is missing and build the release preset
	@$(INSTALL_DEPS) build
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

.PHONY: demo
demo: build ## build, then show a short tour of the tool
	build/release/bin/pagedkv demo

.PHONY: model
model: ## fetch the language model of the demo and the tests (93 MB)
	@$(INSTALL_DEPS) model
	@scripts/fetch_model.sh

.PHONY: test
test: build ## build, then run every test
	ctest --preset release -j $(JOBS)

.PHONY: bench
bench: build ## build, then run the micro-benchmarks (BENCH_FILTER=regex)
	@for benchmark in build/release/bin/benchmarks/*; do \
	  $$benchmark --benchmark_filter='$(BENCH_FILTER)' || exit 1; done

.PHONY: asan
asan: ## all tests with the address and undefined-behaviour sanitizers
	@$(INSTALL_DEPS) ci
	scripts/test_preset.sh asan-ubsan $(JOBS)

.PHONY: tsan
tsan: ## the concurrent tests with the thread sanitizer
	@$(INSTALL_DEPS) ci
	scripts/test_preset.sh tsan $(JOBS)

.PHONY: fuzz
fuzz: ## run the fuzzers for FUZZ_SECONDS (60) in all
	@$(INSTALL_DEPS) ci
	scripts/fuzz.sh $(FUZZ_SECONDS) $(JOBS)

.PHONY: prove-kernels
prove-kernels: ## all proofs of the device kernels, at full length
	@$(INSTALL_DEPS) all
	scripts/prove_device_kernels.py --jobs=$(JOBS)

.PHONY: prove-card
prove-card: ## all proofs of the card, at full length, on boards without hardware
	@$(INSTALL_DEPS) ci
	scripts/prove_card.py --jobs=$(JOBS)

.PHONY: coverage
coverage: ## test coverage of the libraries, per file and as HTML
	@$(INSTALL_DEPS) ci
	scripts/coverage.sh $(JOBS)

.PHONY: format
format: ## rewrite the sources with clang-format
	@$(INSTALL_DEPS) ci
	scripts/format.sh

.PHONY: format-check
format-check: ## fail if clang-format would change a source
	@$(INSTALL_DEPS) ci
	scripts/format.sh --check

.PHONY: tidy
tidy: ## run clang-tidy over the libraries and the tool
	@$(INSTALL_DEPS) all
	scripts/tidy.sh $(JOBS)

.PHONY: clean
clean: ## remove build/
	rm -rf build

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_MACHINE_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_MACHINE_H_

#include <cstdint>
#include <string>

namespace paged_kv::tool {

// Bytes that a program may still take without swapping: what the system and,
// where there is one, the control group leave. UINT64_MAX if neither tells.
uint64_t AvailableMemoryBytes();

// "unknown processor" if the system does not tell.
std::string ProcessorName();

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_MACHINE_H_

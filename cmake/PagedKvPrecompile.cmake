# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# PAGED_KV_PRECOMPILE_HEADERS: what most sources of libraries and tests include is
# compiled once and not once per source. Sources then see more than they include,
# so a build without it has to hold as well. Not for optimised builds: GCC 12 no
# longer knows which headers are the system's, and warns of what it inlines there.

set(PAGED_KV_COMMON_HEADERS
    <algorithm> <cmath> <cstdint> <cstdlib> <cstring> <limits> <memory>
    <string> <utility> <vector>
    "<absl/container/flat_hash_map.h>" "<absl/status/status.h>"
    "<absl/status/statusor.h>" "<absl/strings/str_cat.h>"
    "<absl/strings/str_format.h>" "<absl/time/time.h>" "<absl/types/span.h>")

# Private: target paged_kv_precompiled_<kind> with the flags of that kind.
function(paged_kv_internal_add_precompiled kind)
  cmake_parse_arguments(PCH "" "" "HEADERS;DEPS" ${ARGN})
  set(target paged_kv_precompiled_${kind})
  set(source "${PROJECT_BINARY_DIR}/precompiled/${kind}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(${target} OBJECT "${source}")
  paged_kv_internal_set_flags(${target})
  target_link_libraries(
    ${target} PRIVATE ${PCH_DEPS} absl::flat_hash_map absl::span absl::status
                      absl::statusor absl::str_format absl::strings absl::time)
  target_precompile_headers(${target} PRIVATE ${PCH_HEADERS})
endfunction()

# Private: makes `target`, which has the flags of `kind`, include its headers.
function(paged_kv_internal_precompile target kind)
  if(NOT PAGED_KV_PRECOMPILE_HEADERS)
    return()
  endif()
  set(precompiled paged_kv_precompiled_${kind})
  if(NOT TARGET ${precompiled})
    if(kind STREQUAL "test")
      paged_kv_internal_add_precompiled(
        test HEADERS ${PAGED_KV_COMMON_HEADERS} "<gtest/gtest.h>" DEPS GTest::gtest)
      target_compile_options(${precompiled}
                             PRIVATE ${PAGED_KV_TEST_COMPILE_OPTIONS})
    else()
      paged_kv_internal_add_precompiled(library HEADERS ${PAGED_KV_COMMON_HEADERS})
      paged_kv_internal_set_library_flags(${precompiled})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()

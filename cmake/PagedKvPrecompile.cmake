# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# PAGED_KV_PRECOMPILE_HEADERS: compiles headers once and not once per source.
#   common  what most sources include, for libraries and for tests. Sources see
#           more than they include, so a build without it has to hold as well.
#   gtest   GoogleTest for the tests, all of which include it. Not with ccache,
#           which keeps nothing that was compiled with precompiled headers.

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
  if(PAGED_KV_PRECOMPILE_HEADERS STREQUAL "common")
    set(headers ${PAGED_KV_COMMON_HEADERS})
  elseif(PAGED_KV_PRECOMPILE_HEADERS STREQUAL "gtest"
         AND kind STREQUAL "test"
         AND NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
    set(headers "")
  else()
    return()
  endif()
  set(precompiled paged_kv_precompiled_${kind})
  if(NOT TARGET ${precompiled})
    if(kind STREQUAL "test")
      paged_kv_internal_add_precompiled(
        test HEADERS ${headers} "<gtest/gtest.h>" DEPS GTest::gtest)
      target_compile_options(${precompiled}
                             PRIVATE ${PAGED_KV_TEST_COMPILE_OPTIONS})
    else()
      paged_kv_internal_add_precompiled(library HEADERS ${headers})
      paged_kv_internal_set_library_flags(${precompiled})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()

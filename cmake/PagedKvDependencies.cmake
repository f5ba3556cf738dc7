# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Finds what PagedKV builds against. The installed libraries need the first four;
# the rest is for cards, the tool, the tests and the benchmarks.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(hwy CONFIG REQUIRED)

# xxHash is inlined (XXH_INLINE_ALL), so only its header matters, and only
# while PagedKV itself is compiled.
find_path(PAGED_KV_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
mark_as_advanced(PAGED_KV_XXHASH_INCLUDE_DIR)
add_library(paged_kv_xxhash INTERFACE)
target_include_directories(paged_kv_xxhash SYSTEM
                           INTERFACE "${PAGED_KV_XXHASH_INCLUDE_DIR}")
target_compile_definitions(paged_kv_xxhash INTERFACE XXH_INLINE_ALL)
if(PAGED_KV_SANITIZE)
  # With -Og, GCC inlines nothing that is called through a pointer.
  target_compile_definitions(paged_kv_xxhash INTERFACE XXH_NO_INLINE_HINTS=1)
endif()

if(PAGED_KV_BUILD_CARD)
  find_package(nlohmann_json REQUIRED)
  # ISA-L comes with a pkg-config file alone; two look-ups need no pkg-config.
  find_path(PAGED_KV_ISAL_INCLUDE_DIR isa-l/crc.h REQUIRED)
  find_library(PAGED_KV_ISAL_LIBRARY isal REQUIRED)
  mark_as_advanced(PAGED_KV_ISAL_INCLUDE_DIR PAGED_KV_ISAL_LIBRARY)
  add_library(paged_kv_isal INTERFACE)
  target_include_directories(paged_kv_isal SYSTEM
                             INTERFACE "${PAGED_KV_ISAL_INCLUDE_DIR}")
  target_link_libraries(paged_kv_isal INTERFACE "${PAGED_KV_ISAL_LIBRARY}")
endif()
if(PAGED_KV_BUILD_TOOL)
  find_package(CLI11 REQUIRED)
endif()
if(PAGED_KV_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(PAGED_KV_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
if(PAGED_KV_BUILD_EXAMPLES)
  # Debian's package has no CMake file.
  find_path(PAGED_KV_PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
  find_library(PAGED_KV_PCRE2_LIBRARY pcre2-8 REQUIRED)
  mark_as_advanced(PAGED_KV_PCRE2_INCLUDE_DIR PAGED_KV_PCRE2_LIBRARY)
  add_library(paged_kv_pcre2 INTERFACE)
  target_include_directories(paged_kv_pcre2 SYSTEM
                             INTERFACE "${PAGED_KV_PCRE2_INCLUDE_DIR}")
  target_compile_definitions(paged_kv_pcre2
                             INTERFACE PCRE2_CODE_UNIT_WIDTH=8)
  target_link_libraries(paged_kv_pcre2 INTERFACE "${PAGED_KV_PCRE2_LIBRARY}")

  # The example engine's linear layers. Found by hand: Debian's CMake file asks
  # for OpenCL, which we do not use. GCC's OpenMP is what oneDNN runs on there.
  find_path(PAGED_KV_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(PAGED_KV_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(PAGED_KV_ONEDNN_INCLUDE_DIR PAGED_KV_ONEDNN_LIBRARY)
  if(PAGED_KV_ONEDNN_INCLUDE_DIR AND PAGED_KV_ONEDNN_LIBRARY)
    add_library(paged_kv_onednn INTERFACE)
    target_include_directories(
      paged_kv_onednn SYSTEM INTERFACE "${PAGED_KV_ONEDNN_INCLUDE_DIR}")
    target_link_libraries(paged_kv_onednn
                          INTERFACE "${PAGED_KV_ONEDNN_LIBRARY}" gomp)
  else()
    message(
      WARNING "oneDNN was not found (Debian: libdnnl-dev), so the example "
              "engine and the commands that run models are left out")
  endif()
endif()

# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Decides what of the card's code can be built here, and says so.
#
#   PAGED_KV_HAVE_XRT            paged_kv::xrt_device, which drives a card
#   PAGED_KV_HAVE_EMULATED_CARD  the driver library of a card without hardware
#   PAGED_KV_XRT_GLUE_ARCHIVES   the archives that library takes objects from
#
# Everything else builds without either.

set(PAGED_KV_XRT AUTO CACHE STRING
    "Use the Xilinx Runtime: AUTO (where it is found), ON (required) or OFF")
set_property(CACHE PAGED_KV_XRT PROPERTY STRINGS AUTO ON OFF)

set(PAGED_KV_HAVE_XRT OFF)
set(PAGED_KV_HAVE_EMULATED_CARD OFF)

# The emulated card's driver takes the C++ objects that register a driver with
# XRT from Debian's static archives. They are part of XRT's inner interface,
# which changes with every release.
set(paged_kv_xrt_glue_version 2.13)

# Sets `out` to why the emulated card cannot be built, or to "".
function(paged_kv_internal_find_xrt_glue out)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(${out} "it needs Linux" PARENT_SCOPE)
    return()
  endif()
  if(NOT XRT_VERSION MATCHES "^${paged_kv_xrt_glue_version}(\\.|$)")
    set(${out} "it needs XRT ${paged_kv_xrt_glue_version}, this is\
 ${XRT_VERSION}" PARENT_SCOPE)
    return()
  endif()
  cmake_path(GET XRT_COREUTIL_LIBRARY PARENT_PATH folder)
  foreach(name IN ITEMS xrt_swemu xrt_core)
    find_library(PAGED_KV_${name}_ARCHIVE NAMES lib${name}.a HINTS "${folder}")
    mark_as_advanced(PAGED_KV_${name}_ARCHIVE)
    if(NOT PAGED_KV_${name}_ARCHIVE)
      set(${out} "lib${name}.a, which Debian's libxrt-dev has, is not in\
 ${folder}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(PAGED_KV_XRT_GLUE_ARCHIVES
      "${PAGED_KV_xrt_swemu_ARCHIVE};${PAGED_KV_xrt_core_ARCHIVE}" PARENT_SCOPE)
  set(${out} "" PARENT_SCOPE)
endfunction()

if(PAGED_KV_XRT STREQUAL "ON")
  find_package(XRT 2.13 REQUIRED)
elseif(NOT PAGED_KV_XRT STREQUAL "OFF")
  find_package(XRT 2.13 QUIET)
endif()

if(XRT_FOUND AND NOT PAGED_KV_XRT STREQUAL "OFF")
  set(PAGED_KV_HAVE_XRT ON)
  message(STATUS "PagedKV card: XRT ${XRT_VERSION} in ${XRT_INCLUDE_DIR}; "
                 "cards can be driven")
  paged_kv_internal_find_xrt_glue(paged_kv_xrt_missing)
  if(paged_kv_xrt_missing STREQUAL "")
    set(PAGED_KV_HAVE_EMULATED_CARD ON)
    message(STATUS "PagedKV card: the emulated card is built")
  else()
    message(STATUS "PagedKV card: no emulated card, because "
                   "${paged_kv_xrt_missing}")
  endif()
elseif(PAGED_KV_XRT STREQUAL "OFF")
  message(STATUS "PagedKV card: no XRT, because PAGED_KV_XRT is OFF; the "
                 "simulated device and everything else are built")
else()
  message(STATUS "PagedKV card: no XRT 2.13 or later (Debian: apt-get install "
                 "libxrt-dev uuid-dev); the simulated device and everything "
                 "else are built")
endif()

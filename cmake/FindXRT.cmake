# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# FindXRT
# -------
# The Xilinx Runtime: Debian's libxrt-dev (headers in /usr/include/xrt) or
# Xilinx's own package (/opt/xilinx/xrt). $XILINX_XRT, which Xilinx's setup.sh
# sets, comes first.
#
# Defines
#   XRT_FOUND, XRT_VERSION
#   XRT_INCLUDE_DIR, XRT_COREUTIL_LIBRARY
#   XRT::coreutil      the native API (xrt::device, xrt::bo, xrt::kernel)
#
# xrt.pc is not used: Debian's names a prefix that does not exist and adds
# -lxrt_core. That library is a driver, which XRT loads by itself at run time;
# linked into a program it registers a second one and the first device fails.

find_path(
  XRT_INCLUDE_DIR
  NAMES xrt/xrt_bo.h
  HINTS ENV XILINX_XRT
  PATHS /opt/xilinx/xrt
  PATH_SUFFIXES include/xrt include)

# The library that belongs to these headers: beside them, or else where the
# system keeps its libraries.
set(_xrt_prefix "")
if(XRT_INCLUDE_DIR)
  string(REGEX REPLACE "/include(/xrt)?/?$" "" _xrt_prefix "${XRT_INCLUDE_DIR}")
endif()
find_library(
  XRT_COREUTIL_LIBRARY
  NAMES xrt_coreutil
  HINTS "${_xrt_prefix}"
  PATH_SUFFIXES lib)
find_library(XRT_UUID_LIBRARY NAMES uuid)
find_path(XRT_UUID_INCLUDE_DIR NAMES uuid/uuid.h)
mark_as_advanced(XRT_INCLUDE_DIR XRT_COREUTIL_LIBRARY XRT_UUID_LIBRARY
                 XRT_UUID_INCLUDE_DIR)

# version.h has moved between releases; the library's file name has not.
set(XRT_VERSION "")
foreach(_xrt_header IN ITEMS version.h xrt/detail/version-slim.h
                             xrt/detail/version.h)
  if(NOT XRT_VERSION AND XRT_INCLUDE_DIR
     AND EXISTS "${XRT_INCLUDE_DIR}/${_xrt_header}")
    file(STRINGS "${XRT_INCLUDE_DIR}/${_xrt_header}" _xrt_line
         REGEX "xrt_build_version\\[\\]|XRT_BUILD_VERSION ")
    if(_xrt_line MATCHES "\"([0-9]+\\.[0-9]+(\\.[0-9]+)*)\"")
      set(XRT_VERSION "${CMAKE_MATCH_1}")
    endif()
  endif()
endforeach()
if(NOT XRT_VERSION AND XRT_COREUTIL_LIBRARY)
  file(REAL_PATH "${XRT_COREUTIL_LIBRARY}" _xrt_file)
  if(_xrt_file MATCHES "\\.so\\.([0-9]+(\\.[0-9]+)+)$")
    set(XRT_VERSION "${CMAKE_MATCH_1}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  XRT
  REQUIRED_VARS XRT_COREUTIL_LIBRARY XRT_INCLUDE_DIR XRT_UUID_LIBRARY
                XRT_UUID_INCLUDE_DIR
  VERSION_VAR XRT_VERSION
  REASON_FAILURE_MESSAGE
    "Debian and Ubuntu: apt-get install libxrt-dev uuid-dev")

if(XRT_FOUND AND NOT TARGET XRT::coreutil)
  find_package(Threads REQUIRED)
  add_library(XRT::coreutil UNKNOWN IMPORTED)
  # Imported include folders are system ones: XRT's headers warn at our level.
  set_target_properties(
    XRT::coreutil
    PROPERTIES IMPORTED_LOCATION "${XRT_COREUTIL_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES
               "${XRT_INCLUDE_DIR};${XRT_UUID_INCLUDE_DIR}"
               INTERFACE_LINK_LIBRARIES "${XRT_UUID_LIBRARY};Threads::Threads")
endif()
unset(_xrt_prefix)
unset(_xrt_header)
unset(_xrt_line)
unset(_xrt_file)

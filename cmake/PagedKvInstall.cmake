# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the libraries, their public headers and a CMake package. Headers go
# below one private root, so that "paged_kv/..." and "attention/..." never land
# bare in /usr/include.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/PagedKV")
install(TARGETS paged_kv_paged_kv paged_kv_batch_scheduler
                paged_kv_float_formats paged_kv_attention
        EXPORT PagedKVTargets)
if(PAGED_KV_BUILD_CARD)
  install(TARGETS paged_kv_card_kernels paged_kv_card_model paged_kv_fpga_dma
          EXPORT PagedKVTargets)
endif()
install(EXPORT PagedKVTargets NAMESPACE paged_kv:: DESTINATION "${package_dir}")
if(TARGET pagedkv)
  install(TARGETS pagedkv)
endif()

get_property(headers GLOBAL PROPERTY PAGED_KV_PUBLIC_HEADERS)
list(REMOVE_DUPLICATES headers)
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/pagedkv/${folder}")
endforeach()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/PagedKVConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/PagedKVConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/PagedKVConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/PagedKVConfig.cmake"
              "${PROJECT_BINARY_DIR}/PagedKVConfigVersion.cmake"
        DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}")

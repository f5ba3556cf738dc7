# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0

foreach(name IN ITEMS BUILD_DIR PROJECT_DIR EXAMPLES_DIR WORK_DIR GENERATOR
             CXX_COMPILER)
  if(NOT ${name})
    message(FATAL_ERROR "run.cmake needs -D${name}=...")
  endif()
endforeach()

file(REMOVE_RECURSE "${WORK_DIR}")
set(config_argument "")
if(BUILD_CONFIG)
  set(config_argument --config "${BUILD_CONFIG}")
endif()
execute_process(
  COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" ${config_argument}
          --prefix "${WORK_DIR}/prefix"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

# Nothing may land outside the private root.
file(GLOB include_roots RELATIVE "${WORK_DIR}/prefix/include"
     "${WORK_DIR}/prefix/include/*")
if(NOT include_roots STREQUAL "pagedkv")
  message(FATAL_ERROR "include/ holds '${include_roots}', not only 'pagedkv'")
endif()

execute_process(
  COMMAND
    "${CMAKE_COMMAND}" -S "${PROJECT_DIR}" -B "${WORK_DIR}/build"
    -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DEXAMPLES_DIR=${EXAMPLES_DIR}"
    -DCMAKE_BUILD_TYPE=Release COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK_DIR}/build"
                COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(cmake_bin "${CMAKE_COMMAND}" DIRECTORY)
execute_process(
  COMMAND "${cmake_bin}/ctest" --test-dir "${WORK_DIR}/build"
          --output-on-failure --no-tests=error COMMAND_ERROR_IS_FATAL ANY)

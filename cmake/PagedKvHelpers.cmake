# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# One way to declare each kind of target, so that flags, labels and output
# folders are decided here and nowhere else.

# Flags of the whole build: every object has to agree on them. A target so that
# a project that embeds PagedKV keeps its own flags.
add_library(paged_kv_build_flags INTERFACE)
if(PAGED_KV_SANITIZE)
  target_compile_options(
    paged_kv_build_flags
    INTERFACE -fsanitize=${PAGED_KV_SANITIZE} -fno-sanitize-recover=all
              -fno-omit-frame-pointer)
  target_link_options(paged_kv_build_flags
                      INTERFACE -fsanitize=${PAGED_KV_SANITIZE})
endif()
if(PAGED_KV_LIBFUZZER)
  target_compile_options(paged_kv_build_flags
                         INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(PAGED_KV_COVERAGE)
  target_compile_options(
    paged_kv_build_flags INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(paged_kv_build_flags INTERFACE -fprofile-instr-generate)
endif()

add_library(paged_kv_warnings INTERFACE)
target_compile_options(
  paged_kv_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion
                              -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION
                                            VERSION_LESS 13)
  # GCC 12 warns about "literal" + std::string, wrongly (GCC bug 105651).
  target_compile_options(paged_kv_warnings INTERFACE -Wno-restrict)
endif()
if(PAGED_KV_WERROR)
  target_compile_options(paged_kv_warnings INTERFACE -Werror)
endif()

# A ctest of a sanitised build may run this many times longer.
set(PAGED_KV_TEST_TIMEOUT_S 600)
if(PAGED_KV_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(PAGED_KV_TEST_TIMEOUT_S 1800)
endif()

# Private to the helpers: what every compiled target of ours gets.
function(paged_kv_internal_set_flags target)
  target_link_libraries(
    ${target} PRIVATE $<BUILD_INTERFACE:paged_kv_build_flags>
                      $<BUILD_INTERFACE:paged_kv_warnings>)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# Private: what libraries get besides.
function(paged_kv_internal_set_library_flags target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # Without this, GCC inlines no exported function of position-independent code,
  # not even within its own file: something might replace it at run time.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
endfunction()

include(PagedKvPrecompile)

# paged_kv_cc_library(NAME x [SRCS ...] [HDRS ...] [DEPS ...] [PRIVATE_DEPS ...]
#                     [PUBLIC_CXX17])
#
# Target paged_kv_x with the alias paged_kv::x. DEPS are those that the headers
# need. Without sources it is an INTERFACE library, so that a folder that holds
# only headers, or nothing yet, configures. PUBLIC_CXX17: users need C++17 only;
# otherwise they need C++20.
function(paged_kv_cc_library)
  cmake_parse_arguments(LIB "PUBLIC_CXX17" "NAME" "SRCS;HDRS;DEPS;PRIVATE_DEPS"
                        ${ARGN})
  set(target paged_kv_${LIB_NAME})
  set(user_standard cxx_std_20)
  if(LIB_PUBLIC_CXX17)
    set(user_standard cxx_std_17)
  endif()
  if(LIB_SRCS)
    add_library(${target} ${LIB_SRCS} ${LIB_HDRS})
    paged_kv_internal_set_flags(${target})
    set(scope PUBLIC)
    target_link_libraries(${target} PUBLIC ${LIB_DEPS} PRIVATE ${LIB_PRIVATE_DEPS})
    paged_kv_internal_set_library_flags(${target})
    paged_kv_internal_precompile(${target} library)
    # PRIVATE cxx_std_20 is set already; this one is what users inherit.
    target_compile_features(${target} INTERFACE ${user_standard})
  else()
    add_library(${target} INTERFACE ${LIB_HDRS})
    set(scope INTERFACE)
    target_link_libraries(${target} INTERFACE ${LIB_DEPS})
    target_compile_features(${target} INTERFACE ${user_standard})
  endif()
  target_include_directories(
    ${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pagedkv>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${LIB_NAME})
  add_library(paged_kv::${LIB_NAME} ALIAS ${target})
endfunction()

# Private: an executable of ours below bin/<kind>.
function(paged_kv_internal_executable target kind)
  cmake_parse_arguments(EXE "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${target} ${EXE_SRCS})
  paged_kv_internal_set_flags(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${EXE_DEPS})
  set_target_properties(
    ${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                         "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${kind}")
endfunction()

# What takes longest, in seconds of a release build on one core. CTest starts
# with these, lest the last one run alone while the other cores wait.
set(PAGED_KV_LONG_TESTS
    attention_attention_shapes_test=40 attention_attention_property_test=35
    benchmarks_card_run_test=30 benchmarks_scheduler_replay_simulation_test=25
    benchmarks_replay_hits_test=25 attention_append_kv_test=15
    benchmarks_demo_test=15 attention_shared_prefix_test=12
    attention_not_finite_test=12 engine_batching_test=12
    benchmarks_card_calibration_test=12 benchmarks_card_places_test=12
    fpga_dma_card_decode_test=11 serving_peak_memory_test=11
    engine_few_rows_test=10 consumer=10 kernels_decode_kernel_property_test=8)

# Private: registers a command with CTest, in a working folder of its own so
# that tests that write files can run side by side.
function(paged_kv_internal_add_ctest name)
  cmake_parse_arguments(T "" "" "COMMAND;LABELS" ${ARGN})
  set(work_dir "${PROJECT_BINARY_DIR}/test_work/${name}")
  file(MAKE_DIRECTORY "${work_dir}")
  add_test(NAME ${name} COMMAND ${T_COMMAND} WORKING_DIRECTORY "${work_dir}")
  set(environment
      "PAGED_KV_SHARED_DIR=${PAGED_KV_SHARED_DIR}"
      "PAGED_KV_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
      "TEST_TMPDIR=${work_dir}"
      "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"
      "UBSAN_OPTIONS=print_stacktrace=1"
      "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1")
  if(TARGET pagedkv)
    list(APPEND environment "PAGED_KV_TOOL=$<TARGET_FILE:pagedkv>")
  endif()
  set_tests_properties(
    ${name} PROPERTIES LABELS "${T_LABELS}" ENVIRONMENT "${environment}"
                       TIMEOUT ${PAGED_KV_TEST_TIMEOUT_S})
  set(long_test ${PAGED_KV_LONG_TESTS})
  list(FILTER long_test INCLUDE REGEX "^${name}=")
  if(long_test)
    string(REGEX REPLACE ".*=" "" cost "${long_test}")
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
endfunction()

# paged_kv_cc_test(NAME x SRCS ... DEPS ... LABELS ...): a GoogleTest binary
# that is one CTest test. Environment: PAGED_KV_SHARED_DIR, PAGED_KV_SOURCE_DIR,
# PAGED_KV_TOOL (path of the tool, if it is built), TEST_TMPDIR (an own folder).
function(paged_kv_cc_test)
  cmake_parse_arguments(TEST "" "NAME" "SRCS;DEPS;LABELS" ${ARGN})
  paged_kv_internal_executable(${TEST_NAME} tests SRCS ${TEST_SRCS}
                               DEPS ${TEST_DEPS} GTest::gtest GTest::gtest_main)
  target_compile_options(${TEST_NAME} PRIVATE ${PAGED_KV_TEST_COMPILE_OPTIONS})
  paged_kv_internal_precompile(${TEST_NAME} test)
  paged_kv_internal_add_ctest(${TEST_NAME} COMMAND ${TEST_NAME}
                              LABELS ${TEST_LABELS})
  if("concurrent" IN_LIST TEST_LABELS)
    set_property(GLOBAL APPEND PROPERTY PAGED_KV_CONCURRENT_TESTS ${TEST_NAME})
  endif()
endfunction()

# paged_kv_cc_benchmark(NAME x SRCS ... DEPS ...): a Google Benchmark binary and
# a CTest smoke run, which checks that every benchmark still works and measures
# nothing. A benchmark that is too big for that reads PAGED_KV_SMOKE=1.
function(paged_kv_cc_benchmark)
  cmake_parse_arguments(BENCH "" "NAME" "SRCS;DEPS" ${ARGN})
  paged_kv_internal_executable(
    ${BENCH_NAME} benchmarks SRCS ${BENCH_SRCS}
    DEPS ${BENCH_DEPS} benchmark::benchmark benchmark::benchmark_main)
  set(test_name ${BENCH_NAME}.smoke)
  paged_kv_internal_add_ctest(
    ${test_name} COMMAND ${BENCH_NAME} --benchmark_min_time=0.000001
    LABELS smoke)
  set_property(TEST ${test_name} APPEND PROPERTY ENVIRONMENT PAGED_KV_SMOKE=1)
endfunction()

# paged_kv_cc_fuzzer(NAME x SRCS ... DEPS ...): SRCS define
# LLVMFuzzerTestOneInput. With PAGED_KV_LIBFUZZER it is a libFuzzer binary, else
# the same source runs seeded inputs from a small main, so that it is always
# compiled and tested. Both also take tests/corpus/<NAME>/, if there is one.
function(paged_kv_cc_fuzzer)
  cmake_parse_arguments(FUZZ "" "NAME" "SRCS;DEPS" ${ARGN})
  set(corpus "${PROJECT_SOURCE_DIR}/tests/corpus/${FUZZ_NAME}")
  if(NOT IS_DIRECTORY "${corpus}")
    set(corpus "")
  endif()
  if(PAGED_KV_LIBFUZZER)
    paged_kv_internal_executable(${FUZZ_NAME} fuzzers SRCS ${FUZZ_SRCS}
                                 DEPS ${FUZZ_DEPS})
    target_link_options(${FUZZ_NAME} PRIVATE -fsanitize=fuzzer)
    set(arguments -seed=1 -runs=2000)
  else()
    paged_kv_internal_executable(
      ${FUZZ_NAME} fuzzers
      SRCS ${FUZZ_SRCS}
           "${PROJECT_SOURCE_DIR}/tests/fuzz_main/standalone_fuzz_main.cc"
      DEPS ${FUZZ_DEPS})
    set(arguments --seed=1 --runs=2000)
  endif()
  paged_kv_internal_add_ctest(
    ${FUZZ_NAME} COMMAND ${FUZZ_NAME} ${arguments} ${corpus} LABELS fuzz)
  set_property(GLOBAL APPEND PROPERTY PAGED_KV_FUZZERS ${FUZZ_NAME})
endfunction()

# paged_kv_cc_test_folder(DEPS ... [FUZZ_DEPS ...]): declares every test of the current folder
# from its file name:
#   *_test.cc            unit
#   *_property_test.cc   property
#   *_stress_test.cc     stress, concurrent
#   *_simulation_test.cc simulation
#   thread_safe*_test.cc also concurrent (what the thread sanitizer runs)
#   *_fuzz.cc            fuzz
# Targets and CTest names are <folder>_<file stem>. FUZZ_DEPS: what the fuzzers
# link instead of DEPS.
function(paged_kv_cc_test_folder)
  cmake_parse_arguments(FOLDER "" "" "DEPS;FUZZ_DEPS" ${ARGN})
  if(NOT FOLDER_FUZZ_DEPS)
    set(FOLDER_FUZZ_DEPS ${FOLDER_DEPS})
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  foreach(source IN LISTS tests)
    cmake_path(GET source STEM stem)
    set(labels unit)
    foreach(kind IN ITEMS property stress simulation)
      if(stem MATCHES "_${kind}_test$")
        set(labels ${kind})
      endif()
    endforeach()
    if(stem MATCHES "^thread_safe" OR stem MATCHES "_stress_test$")
      list(APPEND labels concurrent)
    endif()
    paged_kv_cc_test(NAME ${folder}_${stem} SRCS ${source} DEPS ${FOLDER_DEPS}
                     LABELS ${labels})
  endforeach()
  file(GLOB fuzzers CONFIGURE_DEPENDS *_fuzz.cc)
  foreach(source IN LISTS fuzzers)
    cmake_path(GET source STEM stem)
    paged_kv_cc_fuzzer(NAME ${folder}_${stem} SRCS ${source}
                       DEPS ${FOLDER_FUZZ_DEPS})
  endforeach()
endfunction()

# paged_kv_cc_benchmark_folder(DEPS ...): every *_benchmark.cc of the current
# folder, as target <folder>_<file stem>.
function(paged_kv_cc_benchmark_folder)
  cmake_parse_arguments(FOLDER "" "" "DEPS" ${ARGN})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  file(GLOB benchmarks CONFIGURE_DEPENDS *_benchmark.cc)
  foreach(source IN LISTS benchmarks)
    cmake_path(GET source STEM stem)
    paged_kv_cc_benchmark(NAME ${folder}_${stem} SRCS ${source}
                          DEPS ${FOLDER_DEPS})
  endforeach()
endfunction()

# paged_kv_public_headers(OUT roots...): the headers `roots` (relative to the
# project) and every project header that they include, directly or not. These
# are what an embedder sees: they are installed, and each must compile alone as
# C++17.
function(paged_kv_public_headers out)
  set(pending ${ARGN})
  set(found "")
  while(pending)
    list(POP_FRONT pending header)
    if(header IN_LIST found OR NOT EXISTS "${PROJECT_SOURCE_DIR}/${header}")
      continue()
    endif()
    list(APPEND found "${header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                                           "${PROJECT_SOURCE_DIR}/${header}")
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" lines
         REGEX "^#include \"[a-z_]+/[^\"]+\"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND pending "${included}")
    endforeach()
  endwhile()
  list(SORT found)
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

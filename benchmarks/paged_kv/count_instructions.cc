// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs one cost case for scripts/measure_flat_cost.py, which counts its
// instructions with valgrind's callgrind (instrumentation and collection off
// at the start).
//
//   count_instructions CASE BLOCKS BATCHES
//
// Prints the number of units that were counted. Only the runs are counted, not
// the making of the pool nor what comes before and after a batch.

#include <cstdio>
#include <cstdlib>

#include "benchmarks/paged_kv/cost_case.h"

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define PAGED_KV_HAVE_CALLGRIND 1
#endif
#endif
#ifndef PAGED_KV_HAVE_CALLGRIND
#define PAGED_KV_HAVE_CALLGRIND 0
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_TOGGLE_COLLECT
#endif

namespace paged_kv::benchmarks {
namespace {

int Main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s CASE BLOCKS BATCHES\ncases:", argv[0]);
    for (const NamedCostCase& named : AllCostCases()) {
      std::fprintf(stderr, " %s", named.name);
    }
    std::fprintf(stderr, "\n");
    return 2;
  }
  const NamedCostCase* named = FindCostCase(argv[1]);
  const long blocks = std::strtol(argv[2], nullptr, 10);
  const long batches = std::strtol(argv[3], nullptr, 10);
  if (named == nullptr || blocks < 1000 || blocks > 100'000'000 ||
      batches < 1) {
    std::fprintf(stderr, "unknown case, or less than 1000 blocks or 1 batch\n");
    return 2;
  }
  if (!PAGED_KV_HAVE_CALLGRIND) {
    std::fprintf(stderr, "built without valgrind/callgrind.h\n");
    return 1;
  }
  const auto cost_case = named->make(static_cast<uint32_t>(blocks));
  // Once without counting: the lazy binding of library calls.
  cost_case->Prepare();
  for (int i = 0; i < cost_case->batch(); ++i) cost_case->Run();
  cost_case->Finish();
  CALLGRIND_START_INSTRUMENTATION;
  for (long batch = 0; batch < batches; ++batch) {
    cost_case->Prepare();
    CALLGRIND_TOGGLE_COLLECT;
    for (int i = 0; i < cost_case->batch(); ++i) cost_case->Run();
    CALLGRIND_TOGGLE_COLLECT;
    cost_case->Finish();
  }
  CALLGRIND_STOP_INSTRUMENTATION;
  std::printf("%ld %s\n", batches * cost_case->batch() * cost_case->units(),
              named->unit);
  return 0;
}

}  // namespace
}  // namespace paged_kv::benchmarks

int main(int argc, char** argv) {
  return paged_kv::benchmarks::Main(argc, argv);
}

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzzer without libFuzzer: first the files named on the command line
// (folders: every file in them, in name order), then seeded random inputs. It
// takes no coverage feedback; it keeps the fuzzers compiled, and replays the
// inputs that once failed, with any compiler.
//
//   fuzzer [--seed=S] [--runs=N] [--max_bytes=B] [file or folder]...

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

struct Arguments {
  uint64_t seed = 1;
  uint64_t runs = 1000;
  uint64_t max_bytes = 4096;
  std::vector<std::filesystem::path> inputs;
};

// True if `argument` is --name=<number>; then *value holds the number.
bool ParseFlag(std::string_view argument, std::string_view name,
               uint64_t* value) {
  const std::string prefix = "--" + std::string(name) + "=";
  if (argument.substr(0, prefix.size()) != prefix) return false;
  const std::string digits(argument.substr(prefix.size()));
  char* end = nullptr;
  *value = std::strtoull(digits.c_str(), &end, 10);
  if (digits.empty() || *end != '\0') {
    std::fprintf(stderr, "not a number: %s\n", std::string(argument).c_str());
    std::exit(2);
  }
  return true;
}

Arguments ParseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (ParseFlag(argument, "seed", &arguments.seed) ||
        ParseFlag(argument, "runs", &arguments.runs) ||
        ParseFlag(argument, "max_bytes", &arguments.max_bytes)) {
      continue;
    }
    if (!std::filesystem::exists(argument)) {
      std::fprintf(stderr, "no such file or folder: %s\n", argv[i]);
      std::exit(2);
    }
    arguments.inputs.emplace_back(argument);
  }
  return arguments;
}

std::vector<std::filesystem::path> FilesIn(const std::filesystem::path& input) {
  if (!std::filesystem::is_directory(input)) return {input};
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(input)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void RunFile(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream),
                          std::istreambuf_iterator<char>()};
  // Named before it runs, so that a crash shows which input it was.
  std::fprintf(stderr, "input %s (%zu bytes)\n", file.c_str(), bytes.size());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                         bytes.size());
}

// The seed of the random input that is running, for the message below.
volatile uint64_t current_seed = 0;

// Says how to repeat the input that crashed. A sanitizer that ends the process
// itself does not come through here: repeat from the last "seed" line.
extern "C" void ReportSeedAndStop(int signal) {
  std::fprintf(stderr, "failed: repeat with --seed=%llu --runs=1\n",
               static_cast<unsigned long long>(current_seed));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Each input depends on (seed, run) alone.
void RunRandom(const Arguments& arguments) {
  std::vector<uint8_t> bytes;
  for (uint64_t run = 0; run < arguments.runs; ++run) {
    current_seed = arguments.seed + run;
    std::mt19937_64 random(current_seed);
    // Short inputs are as likely as long ones: the size is log-uniform.
    const uint64_t limit =
        std::max<uint64_t>(1, arguments.max_bytes >> (random() % 12));
    bytes.resize(random() % (limit + 1));
    // A third of the inputs use few distinct values, which reaches deeper into
    // decoders that read small enumerations.
    const uint64_t values = random() % 3 == 0 ? 1 + random() % 8 : 256;
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(random() % values);
    }
    if (run % 100 == 0) {
      std::fprintf(stderr, "seed %llu\n",
                   static_cast<unsigned long long>(current_seed));
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = ParseArguments(argc, argv);
  for (const auto& input : arguments.inputs) {
    for (const auto& file : FilesIn(input)) RunFile(file);
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL}) {
    std::signal(signal, ReportSeedAndStop);
  }
  RunRandom(arguments);
  std::fprintf(stderr, "done: %llu random inputs\n",
               static_cast<unsigned long long>(arguments.runs));
  return 0;
}

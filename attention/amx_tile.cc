// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/amx_tile_internal.h"

#if PAGED_KV_HAS_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace paged_kv::attention::internal {

#if PAGED_KV_HAS_AMX

namespace {

bool HasAmxBf16() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  // The kernels look bytes up with it; there is no processor with tiles that
  // lacks it.
  constexpr unsigned kAvx512Vbmi = 1u << 1;
  if ((ecx & kAvx512Vbmi) == 0) return false;
  constexpr unsigned kAmxBf16 = 1u << 22;
  constexpr unsigned kAmxTile = 1u << 24;
  constexpr unsigned kAmxInt8 = 1u << 25;
  constexpr unsigned kAll = kAmxBf16 | kAmxTile | kAmxInt8;
  return (edx & kAll) == kAll;
}

// Linux 5.16 and later, Documentation/x86/xstate.rst.
bool AskForTileData() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// What ldtilecfg reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace

bool CanUseAmxBf16() {
  static const bool can = HasAmxBf16() && AskForTileData();
  return can;
}

AmxTiles::AmxTiles(size_t rows) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    config.row_bytes[t] = kAmxTileRowBytes;
    config.rows[t] = static_cast<uint8_t>(t < 5 ? rows : kAmxTileRows);
  }
  asm volatile("ldtilecfg %0" : : "m"(config));
}

AmxTiles::~AmxTiles() { asm volatile("tilerelease"); }

#else

bool CanUseAmxBf16() { return false; }

#endif  // PAGED_KV_HAS_AMX

}  // namespace paged_kv::attention::internal

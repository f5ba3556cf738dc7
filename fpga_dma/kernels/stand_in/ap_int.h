// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the Vitis HLS header of this name where the kernels are built
// for the host: as much of ap_uint as they use. ap_int.h of the HLS
// arbitrary-precision types (Xilinx, Apache-2.0) works in its place.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_AP_INT_H_
#define PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_AP_INT_H_

#include <cstdint>

// An unsigned integer of kBits bits, kept in words of 32, lowest first. Ranges
// are whole words.
template <int kBits>
class alignas(kBits / 8) ap_uint {
  static_assert(kBits % 32 == 0, "whole words");

 public:
  class WordReference {
   public:
    explicit WordReference(uint32_t* word) : word_(word) {}
    WordReference& operator=(uint32_t value) {
      *word_ = value;
      return *this;
    }

   private:
    uint32_t* word_;
  };
  class WordValue {
   public:
    explicit WordValue(uint32_t word) : word_(word) {}
    uint32_t to_uint() const { return word_; }

   private:
    uint32_t word_;
  };

  // Holds anything at first, in hardware as in the Vitis header. Anything but
  // 0, so that nothing works by luck.
  ap_uint() {
    for (uint32_t& word : words_) word = 0xA5A5A5A5u;
  }
  // The value 0: no kernel needs another.
  ap_uint(int /*zero*/) : words_{} {}  // NOLINT(google-explicit-constructor)

  // REQUIRES: low is a multiple of 32 and high = low + 31 < kBits.
  WordReference range(int /*high*/, int low) {
    return WordReference(words_ + low / 32);
  }
  WordValue range(int /*high*/, int low) const {
    return WordValue(words_[low / 32]);
  }

 private:
  uint32_t words_[kBits / 32];
};

#endif  // PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_AP_INT_H_

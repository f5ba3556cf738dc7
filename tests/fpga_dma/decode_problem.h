// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A decode step of random sequences on a simulated card, and what the host's
// kernel makes of it.

#ifndef PAGED_KV_TESTS_FPGA_DMA_DECODE_PROBLEM_H_
#define PAGED_KV_TESTS_FPGA_DMA_DECODE_PROBLEM_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "attention/float_formats.h"
#include "attention/paged_decode.h"
#include "fpga_dma/decode/card_decode.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/transfer_rig.h"

namespace paged_kv::fpga_dma {

struct DecodeSpec {
  uint32_t kv_heads = 4;
  uint32_t group = 7;
  uint32_t head_dim = 128;
  uint32_t block_tokens = 16;
  uint32_t stripes = 1;
  uint32_t splits = 1;
  uint32_t resident_percent = 100;
  std::vector<uint32_t> tokens;
  uint64_t seed = 1;
  FaultPlanOptions faults;
  absl::Span<const KernelSpec> kernels = Kernels();
  // What is not on the card is sent there, but for last blocks.
  bool streamed = false;
};

inline constexpr uint32_t kLayers = 3;

// A step of random sequences, some of whose blocks are on the card.
class DecodeProblem {
 public:
  explicit DecodeProblem(const DecodeSpec& spec)
      : spec_(spec), rig_(Options(spec)) {
    FillPages();
    const uint32_t heads = spec.kv_heads * spec.group;
    blocks_.indptr = {0};
    uint32_t next = 0;
    std::vector<PageTransfer> up;
    for (uint32_t tokens : spec.tokens) {
      const uint32_t n = (tokens + spec.block_tokens - 1) / spec.block_tokens;
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t host = next++;
        const bool resident = rig_.Below(100) < spec.resident_percent;
        // Splits take turns; within one, pages come in any order.
        const uint32_t per_split = rig_.pool().num_pages() / spec.splits;
        const uint32_t split = i % spec.splits;
        const uint32_t device = split * per_split + (host * 7 + 3) % per_split;
        blocks_.host_pages.push_back(resident ? 0xDEADu : host);
        const uint32_t elsewhere =
            spec.streamed && i + 1 < n ? kStreamedPage : kNoDevicePage;
        blocks_.device_pages.push_back(resident ? device : elsewhere);
        all_host_.push_back(static_cast<int32_t>(host));
        if (resident) up.push_back(Up(host, device, {0, kLayers}));
      }
      blocks_.indptr.push_back(static_cast<int32_t>(next));
      blocks_.last_page_tokens.push_back(
          tokens == 0
              ? 0
              : static_cast<int32_t>((tokens - 1) % spec.block_tokens) + 1);
    }
    if (!up.empty()) uploaded_ = rig_.Move(up).status;
    for (size_t i = 0; i < spec.tokens.size() * heads * spec.head_dim; ++i) {
      q_.push_back(attention::Bf16ToF32(attention::F32ToBf16(Uniform())));
    }
    options_.query_heads = heads;
    options_.host_bytes_per_second = 20e9;
  }

  TransferRig& rig() { return rig_; }
  DecodeBlocks& blocks() { return blocks_; }
  CardDecodeOptions& options() { return options_; }
  const std::vector<float>& q() const { return q_; }
  // Whether the blocks of the card got there.
  const absl::Status& uploaded() const { return uploaded_; }

  std::unique_ptr<CardDecode> Create() {
    return CardDecode::Create(&rig_.tracker(), &rig_.pool(), rig_.host(),
                              options_)
        .value();
  }

  // The host's kernel over all pages, where they are all still.
  std::vector<float> Reference(uint32_t layer) {
    std::vector<int32_t> first(spec_.tokens.size());
    PageTable table;
    table.indptr = blocks_.indptr;
    table.page_indices = all_host_;
    table.last_page_tokens = blocks_.last_page_tokens;
    table.first_token = first;
    table.block_tokens = static_cast<int32_t>(spec_.block_tokens);
    std::vector<float> out(q_.size());
    attention::SerialFor serial;
    EXPECT_TRUE(attention::PagedDecode(
                    {rig_.host(), layer, table, options_.query_heads, q_}, {},
                    {absl::MakeSpan(out), {}}, serial)
                    .ok());
    return out;
  }

  double MaxError(const std::vector<float>& got, uint32_t layer) {
    const std::vector<float> want = Reference(layer);
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const double error = std::fabs(double{got[i]} - double{want[i]});
      if (!(error <= worst)) worst = error;  // a NaN is an error
    }
    return worst;
  }

 private:
  static RigOptions Options(const DecodeSpec& spec) {
    RigOptions options;
    options.shape.layers = kLayers;
    options.shape.kv_heads = spec.kv_heads;
    options.shape.head_dim = spec.head_dim;
    options.shape.block_tokens = spec.block_tokens;
    uint32_t blocks = 1;
    for (uint32_t t : spec.tokens) {
      blocks += (t + spec.block_tokens - 1) / spec.block_tokens;
    }
    options.host_pages = blocks;
    // A prime number of pages per split, so that (7 h + 3) never collides.
    options.device_pages = 211 * spec.splits;
    options.stripes = spec.stripes;
    options.splits = spec.splits;
    options.seed = spec.seed;
    options.faults = spec.faults;
    options.kernels = spec.kernels;
    options.limits.base = absl::Milliseconds(5);
    options.limits.kernel = absl::Milliseconds(20);
    return options;
  }

  float Uniform() {
    return static_cast<float>(rig_.Below(2001)) / 1000.0f - 1.0f;
  }

  // bf16 numbers everywhere, NaN in no slot: the card masks by length.
  void FillPages() {
    auto* bytes = static_cast<uint8_t*>(rig_.host().layout.base);
    const auto n = static_cast<size_t>(rig_.host().layout.page_stride) *
                   rig_.host().num_pages / 2;
    for (size_t i = 0; i < n; ++i) {
      const uint16_t bits = attention::F32ToBf16(Uniform());
      std::memcpy(bytes + 2 * i, &bits, 2);
    }
  }

  const DecodeSpec spec_;
  TransferRig rig_;
  DecodeBlocks blocks_;
  std::vector<int32_t> all_host_;
  absl::Status uploaded_;
  std::vector<float> q_;
  CardDecodeOptions options_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_DECODE_PROBLEM_H_

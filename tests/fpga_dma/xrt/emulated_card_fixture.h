// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_FPGA_DMA_XRT_EMULATED_CARD_FIXTURE_H_
#define PAGED_KV_TESTS_FPGA_DMA_XRT_EMULATED_CARD_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/device.h"
#include "fpga_dma/emulated_card/card_design.h"
#include "fpga_dma/xrt_device.h"

namespace paged_kv::fpga_dma {

using Variables = std::map<std::string, std::string>;

// The variables that describe the emulated card, set for the life of this
// object. XRT and its driver read them when a card is opened.
class CardEnvironment {
 public:
  explicit CardEnvironment(const Variables& variables) : variables_(variables) {
    for (const auto& [name, value] : variables_) {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~CardEnvironment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }
  CardEnvironment(const CardEnvironment&) = delete;
  CardEnvironment& operator=(const CardEnvironment&) = delete;

 private:
  const Variables variables_;
};

inline void WriteFile(const std::string& path, absl::Span<const char> bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(stream.good()) << path;
}

// An emulated card behind the unmodified XRT.
class EmulatedCardTest : public ::testing::Test {
 protected:
  // Opens a card of this board; `variables` without PAGEDKV_CARD_BOARD.
  void Open(const std::string& board_name, Variables variables = {}) {
    device_.reset();
    auto board = BuiltinBoard(board_name);
    ASSERT_TRUE(board.ok()) << board.status();
    board_ = *board;
    auto content = PackCardXclbin(board_);
    ASSERT_TRUE(content.ok()) << content.status();
    xclbin_ = ::testing::TempDir() + "/" + board_name + ".xclbin";
    WriteFile(xclbin_, *content);
    variables["PAGEDKV_CARD_BOARD"] = board_name;
    environment_.reset();
    environment_ = std::make_unique<CardEnvironment>(variables);
    XrtDeviceOptions options;
    options.xclbin = xclbin_;
    options.reset_limit = std::chrono::seconds(10);
    auto device = OpenXrtDevice(options);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  SlabId MakeSlab(BankId bank, uint64_t bytes, SlabKind kind) {
    const auto slab = device_->CreateSlab(bank, bytes, kind);
    EXPECT_TRUE(slab.ok()) << slab.status();
    return slab.ok() ? *slab : SlabId(0);
  }
  absl::Span<std::byte> Image(SlabId slab) {
    const auto image = device_->HostImage(slab);
    EXPECT_TRUE(image.ok()) << image.status();
    return image.ok() ? *image : absl::Span<std::byte>();
  }

  // Waits for one started operation and returns how it ended.
  Completion Finish(const absl::StatusOr<OpId>& started) {
    EXPECT_TRUE(started.ok()) << started.status();
    Completion completion;
    if (!started.ok()) return completion;
    const auto count =
        device_->Poll(absl::InfiniteFuture(), absl::MakeSpan(&completion, 1));
    EXPECT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(completion.op, *started);
    return completion;
  }
  // All that is reported until nothing is pending or `deadline`.
  std::vector<Completion> FinishAll(
      size_t expected, absl::Time deadline = absl::InfiniteFuture()) {
    std::vector<Completion> all;
    while (all.size() < expected) {
      Completion batch[3];
      const auto count = device_->Poll(deadline, absl::MakeSpan(batch));
      EXPECT_TRUE(count.ok()) << count.status();
      if (!count.ok() || *count == 0) break;
      all.insert(all.end(), batch, batch + *count);
    }
    return all;
  }

  static void FillRandom(uint64_t seed, absl::Span<std::byte> bytes) {
    std::mt19937_64 random(seed);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }

  Board board_;
  std::string xclbin_;
  std::unique_ptr<CardEnvironment> environment_;
  std::unique_ptr<Device> device_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_TESTS_FPGA_DMA_XRT_EMULATED_CARD_FIXTURE_H_

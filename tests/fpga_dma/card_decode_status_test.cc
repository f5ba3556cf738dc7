// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer whose kernels do not say that they did all of it is no result.

#include <cstring>
#include <string>
#include <vector>

#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/decode_problem.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

// What a compute unit does instead of its work. Its outputs are zeros then,
// which is what the host's image of them holds, too: nothing but the status
// word tells.
enum class Lie {
  kNone,
  kDoesNothing,   // the status word stays as it was sent
  kReportsError,  // of its second item
  kStopsEarly,    // with one item left
  kOldWork,       // does the work of another launch
  kRunsTwice,     // and adds to what it has added already
};

Lie lie = Lie::kNone;
int lying_launches = 0;  // that are still to come

absl::Status LyingDecode(absl::Span<const BoundArgument> arguments) {
  if (lie != Lie::kNone && lying_launches > 0) {
    --lying_launches;
    const auto at = [&](PagedDecodeArgument which) {
      return arguments[static_cast<size_t>(which)].memory.data();
    };
    WorkListHeader header;
    std::memcpy(&header, at(PagedDecodeArgument::kWork), sizeof(header));
    KernelStatus status{};
    status.items_done = header.num_items;
    status.tag = header.tag;
    status.launches = 1;
    switch (lie) {
      case Lie::kNone:
      case Lie::kDoesNothing:
        return absl::OkStatus();
      case Lie::kReportsError:
        status.code = KernelError::kPageIndex;
        status.item = 1;
        break;
      case Lie::kStopsEarly:
        --status.items_done;
        break;
      case Lie::kOldWork:
        --status.tag;
        break;
      case Lie::kRunsTwice:
        status.launches = 2;
        break;
    }
    std::memcpy(at(PagedDecodeArgument::kStatus), &status, sizeof(status));
    return absl::OkStatus();
  }
  return FindKernel("paged_decode")->run(arguments);
}

std::vector<KernelSpec> LyingKernels() {
  std::vector<KernelSpec> kernels(Kernels().begin(), Kernels().end());
  for (KernelSpec& kernel : kernels) {
    if (kernel.id == KernelId::kPagedDecode) kernel.run = LyingDecode;
  }
  return kernels;
}

class CardDecodeStatusTest : public testing::TestWithParam<Lie> {
 protected:
  CardDecodeStatusTest() : kernels_(LyingKernels()) {
    lie = GetParam();
    lying_launches = 0;
    spec_.stripes = 2;
    spec_.head_dim = 32;
    spec_.tokens = {48, 33, 5};
    spec_.seed = TestSeed(1);
    spec_.kernels = kernels_;
  }
  ~CardDecodeStatusTest() override { lie = Lie::kNone; }

  const std::vector<KernelSpec> kernels_;
  DecodeSpec spec_;
  attention::SerialFor serial_;
};

TEST_P(CardDecodeStatusTest, IsTriedAgain) {
  for (const uint32_t resident : {100u, 60u}) {
    spec_.resident_percent = resident;
    spec_.streamed = resident < 100;
    DecodeProblem problem(spec_);
    ASSERT_TRUE(problem.uploaded().ok());
    const auto decode = problem.Create();
    ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
    lying_launches = 1;
    std::vector<float> out(problem.q().size(), NAN);
    const absl::Status status =
        decode->Attend(0, problem.q(), {absl::MakeSpan(out), {}}, serial_);
    // An error in the lists would be there again, so that is not tried.
    if (GetParam() == Lie::kReportsError) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      continue;
    }
    EXPECT_EQ(lying_launches, 0);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_LE(problem.MaxError(out, 0), 1e-3);
    problem.rig().ExpectNoMisuse();
  }
}

TEST_P(CardDecodeStatusTest, IsReportedInTheEnd) {
  DecodeProblem problem(spec_);
  ASSERT_TRUE(problem.uploaded().ok());
  const auto decode = problem.Create();
  ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
  lying_launches = 1 << 20;
  std::vector<float> out(problem.q().size(), 7.0f);
  absl::Status status =
      decode->Attend(1, problem.q(), {absl::MakeSpan(out), {}}, serial_);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("paged_decode"), std::string::npos) << status;
  for (float value : out) ASSERT_EQ(value, 7.0f);
  // It is the kernel's fault alone: the next launch is as good as ever.
  lying_launches = 0;
  status = decode->Attend(1, problem.q(), {absl::MakeSpan(out), {}}, serial_);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_LE(problem.MaxError(out, 1), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Lies, CardDecodeStatusTest,
                         testing::Values(Lie::kDoesNothing, Lie::kReportsError,
                                         Lie::kStopsEarly, Lie::kOldWork,
                                         Lie::kRunsTwice));

}  // namespace
}  // namespace paged_kv::fpga_dma

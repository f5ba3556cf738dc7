// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/decode/decode_costs.h"

#include <initializer_list>

#include "gtest/gtest.h"

namespace paged_kv::fpga_dma {
namespace {

// 10 us + a byte per ns each way, launches of 50 us, a card that reads 4 bytes
// per ns, a host that reads 2.
DecodeRates EasyRates() {
  DecodeRates rates;
  rates.upload_setup = absl::Microseconds(10);
  rates.download_setup = absl::Microseconds(10);
  rates.upload_bytes_per_second = 1e9;
  rates.download_bytes_per_second = 1e9;
  rates.channels = 2;
  rates.launch = absl::Microseconds(50);
  rates.card_bytes_per_second = 4e9;
  rates.host_bytes_per_second = 2e9;
  return rates;
}

DecodeDemand EasyDemand(uint64_t resident, uint64_t absent, uint64_t tail) {
  DecodeDemand demand;
  demand.layers = 3;
  demand.slabs = 4;
  demand.kv_resident = resident;
  demand.kv_absent = absent;
  demand.kv_tail = tail;
  demand.inputs = 5000;
  demand.outputs = 2000;
  return demand;
}

double Us(absl::Duration time) { return absl::ToDoubleMicroseconds(time); }

TEST(DecodeCostsTest, TheHostReadsItAll) {
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kHost, EasyRates(),
                                  EasyDemand(100000, 200000, 4000))),
                   3 * 152.0);
}

TEST(DecodeCostsTest, CardAndHostWorkAtOnce) {
  // Up 15 us, down twice 12 us; between them 50 + 100 us of the card and 2 us
  // of the host.
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kHybrid, EasyRates(),
                                  EasyDemand(400000, 0, 4000))),
                   3 * (15 + 150 + 24.0));
  // 302 us of the host.
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kHybrid, EasyRates(),
                                  EasyDemand(400000, 600000, 4000))),
                   3 * (15 + 302 + 24.0));
  DecodeDemand once = EasyDemand(400000, 0, 4000);
  once.readings = 1;
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kHybrid, EasyRates(), once)),
                   3 * (15 + 150 + 12.0));
  // Nothing on the card: no launch.
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kHybrid, EasyRates(),
                                  EasyDemand(0, 600000, 4000))),
                   3 * 302.0);
}

TEST(DecodeCostsTest, ArithmeticIsABoundToo) {
  DecodeRates rates = EasyRates();
  rates.card_flops = 14e9;
  DecodeDemand demand = EasyDemand(400000, 0, 0);
  demand.group_heads = 7;
  EXPECT_DOUBLE_EQ(Us(CardTime(rates, 7, 400000)), 200);
  EXPECT_DOUBLE_EQ(Us(CardTime(rates, 1, 400000)), 100);
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kHybrid, rates, demand)),
                   3 * (15 + 250 + 24.0));
}

TEST(DecodeCostsTest, StreamingIsADoubleBuffer) {
  // A layer is sent in 10 + 600 us; the card takes 15 + 50 + 150 + 24.
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kStreamed, EasyRates(),
                                  EasyDemand(0, 600000, 4000))),
                   610 + 239 + 2 * 610.0);
  // With pages on the card there is a launch more, and the card is slower than
  // the link: 15 + 100 + 250 + 24 against 110.
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kStreamed, EasyRates(),
                                  EasyDemand(900000, 100000, 4000))),
                   110 + 389 + 2 * 389.0);
  // One channel hides no setups.
  DecodeRates rates = EasyRates();
  rates.channels = 1;
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kStreamed, rates,
                                  EasyDemand(0, 600000, 4000))),
                   640 + 239 + 2 * 640.0);
  // A host that packs slower than the link.
  rates = EasyRates();
  rates.host_bytes_per_second = 0.5e9;
  EXPECT_DOUBLE_EQ(Us(PredictStep(DecodePath::kStreamed, rates,
                                  EasyDemand(0, 600000, 4000))),
                   1200 + 239 + 2 * 1200.0);
}

TEST(DecodeCostsTest, TheChoiceIsTheLeast) {
  DecodeRates rates = EasyRates();
  // A launch costs more than so little.
  EXPECT_EQ(ChoosePath(rates, EasyDemand(10000, 0, 0)), DecodePath::kHost);
  EXPECT_EQ(ChoosePath(rates, EasyDemand(4000000, 0, 0)), DecodePath::kHybrid);
  EXPECT_EQ(ChoosePath(rates, EasyDemand(4000000, 4000000, 0)),
            DecodePath::kHybrid);
  // A host far slower than the link.
  rates.host_bytes_per_second = 0.1e9;
  rates.upload_bytes_per_second = 4e9;
  EXPECT_EQ(ChoosePath(rates, EasyDemand(4000000, 1000, 0)),
            DecodePath::kHybrid);
  rates.host_bytes_per_second = 1.5e9;
  rates.upload_bytes_per_second = 100e9;
  rates.card_bytes_per_second = 1000e9;
  EXPECT_EQ(ChoosePath(rates, EasyDemand(4000000, 4000000, 0)),
            DecodePath::kHybrid);
  for (uint64_t resident : {0u, 1000000u}) {
    for (uint64_t absent : {0u, 50000u, 5000000u}) {
      const DecodeDemand demand = EasyDemand(resident, absent, 1000);
      const DecodePath chosen = ChoosePath(rates, demand);
      for (DecodePath path :
           {DecodePath::kHost, DecodePath::kHybrid, DecodePath::kStreamed}) {
        EXPECT_LE(PredictStep(chosen, rates, demand),
                  PredictStep(path, rates, demand));
      }
    }
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma

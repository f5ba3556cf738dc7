// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_report.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

using fpga_dma::BankInfo;
using fpga_dma::ComputeUnitInfo;
using fpga_dma::DeviceInfo;

std::string Size(uint64_t bytes) {
  constexpr uint64_t kGib = uint64_t{1} << 30;
  if (bytes % kGib == 0) return absl::StrCat(bytes / kGib, " GiB");
  return absl::StrCat(bytes >> 20, " MiB");
}

// "32 x 256 MiB (HBM[0] to HBM[31])", one entry per run of equal banks.
std::string Banks(const DeviceInfo& info) {
  std::vector<std::string> runs;
  for (size_t first = 0; first < info.banks.size();) {
    size_t end = first + 1;
    while (end < info.banks.size() &&
           info.banks[end].bytes == info.banks[first].bytes) {
      ++end;
    }
    const std::string names = end - first == 1
                                  ? info.banks[first].name
                                  : absl::StrCat(info.banks[first].name, " to ",
                                                 info.banks[end - 1].name);
    runs.push_back(absl::StrCat(
        end - first, " x ", Size(info.banks[first].bytes), " (", names, ")"));
    first = end;
  }
  return absl::StrJoin(runs, ", ");
}

// "16 paged_decode, 4 kv_append".
std::string Units(const DeviceInfo& info) {
  std::map<std::string, size_t> counts;
  for (const ComputeUnitInfo& unit : info.compute_units) ++counts[unit.kernel];
  std::vector<std::string> parts;
  for (const auto& [kernel, count] : counts) {
    parts.push_back(absl::StrCat(count, " ", kernel));
  }
  return absl::StrJoin(parts, ", ");
}

double Microseconds(absl::Duration time) {
  return absl::ToDoubleMicroseconds(time);
}

std::string Cost(const AffineCost& cost) {
  return absl::StrFormat("%.2f us + bytes / %.2f GB/s",
                         Microseconds(cost.setup), cost.bytes_per_second / 1e9);
}

nlohmann::ordered_json CostJson(const AffineCost& cost) {
  return {{"setup_us", Microseconds(cost.setup)},
          {"bytes_per_second", cost.bytes_per_second}};
}

}  // namespace

std::string CardText(const OpenedCard& card, const CardCalibration& costs) {
  const DeviceInfo& info = card.device->info();
  std::string text = absl::StrFormat(
      "card      %s, %s; times are %s\n"
      "memory    %s\n"
      "units     %s\n"
      "channels  %u per direction\n"
      "upload    %s\n"
      "download  %s\n"
      "launch    %.2f us\n\n",
      info.name, card.driver, info.modelled ? "modelled" : "measured",
      Banks(info), Units(info), info.channels, Cost(costs.upload),
      Cost(costs.download), Microseconds(costs.launch));
  Table table({"compute unit", "pages in", "reads GB/s"});
  double sum = 0.0;
  for (const BankRate& rate : costs.banks) {
    table.Add({rate.unit, rate.bank,
               absl::StrFormat("%.2f", rate.bytes_per_second / 1e9)});
    sum += rate.bytes_per_second;
  }
  table.Add({"all", "", absl::StrFormat("%.2f", sum / 1e9)});
  absl::StrAppend(&text, table.Text());
  return text;
}

nlohmann::ordered_json CardJson(const OpenedCard& card,
                                const CalibrationOptions& options,
                                const CardCalibration& costs) {
  const DeviceInfo& info = card.device->info();
  nlohmann::ordered_json json = {{"schema_version", kJsonSchemaVersion},
                                 {"command", "card"},
                                 {"seed", options.seed},
                                 {"repeats", options.repeats},
                                 {"card", info.name},
                                 {"driver", card.driver},
                                 {"modelled", info.modelled},
                                 {"channels", info.channels},
                                 {"upload", CostJson(costs.upload)},
                                 {"download", CostJson(costs.download)},
                                 {"launch_us", Microseconds(costs.launch)}};
  for (const BankInfo& bank : info.banks) {
    json["banks"].push_back({{"name", bank.name}, {"bytes", bank.bytes}});
  }
  for (const BankRate& rate : costs.banks) {
    json["reads"].push_back({{"unit", rate.unit},
                             {"bank", rate.bank},
                             {"bytes_per_second", rate.bytes_per_second}});
  }
  return json;
}

}  // namespace paged_kv::tool

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/card/card_churn.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

constexpr double kKib = 1024.0;

}  // namespace

std::string CardChurnText(const CardChurn& churn) {
  std::string text = absl::StrFormat(
      "churn     %s: %s requests, %s of them sampled twice, %s steps\n"
      "pages     %s, %u stripes x %u splits; %s copied on write, %s answers "
      "given up for want of pages\n"
      "banks     the busiest reads %s more than the idlest; at most 5 %% more "
      "in %s of the steps\n\n",
      churn.trace, Grouped(churn.requests), Grouped(churn.forks),
      Grouped(churn.steps), Grouped(churn.pages), churn.stripes, churn.splits,
      Grouped(churn.copies), Grouped(churn.preempted),
      Percent(churn.BankSpread()),
      Percent(churn.read_steps == 0 ? 0.0
                                    : static_cast<double>(churn.even_steps) /
                                          static_cast<double>(churn.read_steps),
              1));
  Table table({"free pages", "pages/descriptor", "KiB/descriptor", "gain"});
  const auto add = [&](const char* name, double bytes, double gain) {
    table.Add(
        {name,
         absl::StrFormat("%.2f", bytes / static_cast<double>(churn.page_bytes)),
         absl::StrFormat("%.0f", bytes / kKib),
         absl::StrFormat("%.2fx", gain)});
  };
  add("last in, first out", churn.LifoBytesPerDescriptor(), 1.0);
  add("by extents", churn.BytesPerDescriptor(), churn.DescriptorGain());
  absl::StrAppend(&text, table.Text());
  return text;
}

nlohmann::ordered_json CardChurnJson(const CardChurn& churn) {
  return {{"trace", churn.trace},
          {"requests", churn.requests},
          {"forks", churn.forks},
          {"copies_on_write", churn.copies},
          {"preempted", churn.preempted},
          {"steps", churn.steps},
          {"pages", churn.pages},
          {"stripes", churn.stripes},
          {"splits", churn.splits},
          {"page_bytes_per_slab", churn.page_bytes},
          {"bytes_per_descriptor", churn.BytesPerDescriptor()},
          {"lifo_bytes_per_descriptor", churn.LifoBytesPerDescriptor()},
          {"descriptor_gain", churn.DescriptorGain()},
          {"bank_spread", churn.BankSpread()},
          {"read_steps", churn.read_steps},
          {"even_read_steps", churn.even_steps},
          {"kv_read_per_bank", churn.kv_read}};
}

}  // namespace paged_kv::tool

#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Plants faults where pages move to a card, and sees whether a test notices.

Each fault is one small edit of the transfer queue, of what runs it, of decoding
on a card, or of the device tier of paged_kv/. It is built into a copy of the
tree, and the tests of that part run until one fails; one that does not end is a
failure, too. A fault whose text is no longer in its file is an error: change it
along with the code.

  scripts/planted_transfer_faults.py                # all, as a Markdown table
  scripts/planted_transfer_faults.py --only cancel  # those whose area or name
                                                    # match
"""

from fault_planting import Fault, cmake_bench, main

# The tests of an area, in the order in which they are tried.
CARD_TESTS = [
    "fpga_dma_transfer_queue_test",
    "fpga_dma_transfer_grouping_test",
    "fpga_dma_transfer_faults_test",
    "fpga_dma_transfer_queue_simulation_test",
    "fpga_dma_fault_suite_simulation_test",
]
DECODE_TESTS = ["fpga_dma_card_decode_test",
                "fpga_dma_card_decode_status_test"]
TIER_TESTS = [
    "paged_kv_device_tier_test",
    "paged_kv_device_tier_cases_test",
    "paged_kv_device_tier_property_test",
    "paged_kv_batch_scheduler_swap_test",
    "paged_kv_batch_scheduler_swap_simulation_test",
]
TESTS = {"decode": DECODE_TESTS, "tier": TIER_TESTS}

# A healthy test takes a few seconds; one that waits for ever is noticed.
SECONDS = 120

QUEUE = "fpga_dma/transfers/transfer_queue.cc"
RUN = "fpga_dma/transfers/transfer_queue_run.cc"
BUNDLE = "fpga_dma/transfers/transfer_bundle.cc"
ORDER = "fpga_dma/transfers/transfer_order.cc"
PIECES = "fpga_dma/transfers/ready_pieces.cc"
LISTS = "fpga_dma/transfers/scatter_list.cc"
COPY = "fpga_dma/transfers/page_copy.cc"
SUMS = "fpga_dma/transfers/page_checksums.cc"
TRACKER = "fpga_dma/operation_tracker.cc"
DECODE = "fpga_dma/decode/*.cc"

# (area, what is wrong, file or pattern, old text, new text)
FAULTS = [
    ("order", "a write overtakes the read before it", ORDER,
     "if (host && !writes && !earlier_writes) continue;",
     "if (!earlier_writes) continue;"),
    ("order", "a read overtakes the write before it", ORDER,
     "if (host && !writes && !earlier_writes) continue;",
     "if (!writes) continue;"),
    ("order", "what reads a page that failed runs", ORDER,
     "{item, !writes && earlier_writes && !covered}", "{item, false}"),
    ("order", "an old failure spoils what a later write made good", ORDER,
     "{item, !writes && earlier_writes && !covered}",
     "{item, !writes && earlier_writes}"),
    ("order", "the least urgent go first", RUN,
     "const auto priority = static_cast<TransferPriority>(p);",
     "const auto priority =\n"
     "        static_cast<TransferPriority>(kTransferPriorities - 1 - p);"),
    ("abort", "a cancelled page is free while it moves", QUEUE,
     "if (item.waiting + item.under_way > 0) continue;",
     "if (item.waiting + (item.cancelled ? 0 : item.under_way) > 0) continue;"),
    ("abort", "a cancelled page loses its place in the order", QUEUE,
     "if (item.ready) stopped.push_back(index);", "stopped.push_back(index);"),
    ("abort", "a cancelled transfer counts as arrived", RUN,
     "item.cancelled ? absl::CancelledError(\"cancelled\") : status;",
     "item.cancelled ? absl::OkStatus() : status;"),
    ("checksum", "what arrived is not compared", BUNDLE,
     "wrong[i] = sum->known && checksum != sum->checksum;", "wrong[i] = 0;"),
    ("checksum", "a page without a checksum is read once", BUNDLE,
     "if (std::count(unknown.begin(), unknown.end(), 1) > 0) {", "if (false) {"),
    ("checksum", "scattered pages are not compared", BUNDLE,
     "return context_->verify_scattered ? Stage::kGather : Stage::kReadStatus;",
     "return Stage::kReadStatus;"),
    ("checksum", "work lists are not compared", BUNDLE,
     "if (sum == lists_sum_) return", "if (sum == lists_sum_ || true) return"),
    ("checksum", "a checksum outlives what a kernel wrote", QUEUE,
     "  checksums_.SetWritten(device_page, layers);\n", ""),
    ("checksum", "what a kernel wrote is noted of one stripe", SUMS,
     "size_t{layers.count} * stripes_", "size_t{layers.count}"),
    ("checksum", "half an upload leaves the old checksum", BUNDLE,
     "      checksums.SetLost(piece.device_page, layer, s);\n", ""),
    ("kernel", "a launch that failed counts", LISTS,
     "if (std::memcmp(&status, &expected, sizeof(expected)) == 0) {",
     "if (std::memcmp(&status, &expected, sizeof(expected)) == 0 ||\n"
     "      true) {"),
    ("retry", "nothing is tried again", BUNDLE,
     "attempts_ >= context_->max_attempts", "attempts_ >= 1"),
    ("retry", "it is tried for ever", BUNDLE,
     "attempts_ >= context_->max_attempts", "false"),
    ("fence", "a bundle ends with its first failure", BUNDLE,
     "if (!ops_.empty()) return absl::nullopt;\n  return stage_status_;",
     "if (!ops_.empty() && stage_status_.ok()) return absl::nullopt;\n"
     "  return stage_status_;"),
    ("fence", "the last staging slab is not kept for decodes", RUN,
     "rings_[ring].num_free() > kept;", "rings_[ring].num_free() > 0;"),
    ("reset", "checksums outlive a reset", RUN,
     "  checksums_.SetAllLost();\n", ""),
    ("reset", "an upload of before a reset counts", BUNDLE,
     "          generation_ != context_->tracker->generation()) {\n"
     "        status = absl::DataLossError",
     "          false) {\n        status = absl::DataLossError"),
    ("reset", "a download of before a reset makes the page known", BUNDLE,
     "const bool current = generation_ == context_->tracker->generation();",
     "const bool current = true;"),
    ("reset", "somebody else's reset goes unnoticed", TRACKER,
     "lost = lost || absl::IsDataLoss(completion.status);", ""),
    ("reset", "a reset that failed counts", TRACKER,
     "for (uint32_t i = 1; !reset.ok() && i < limits_.max_resets; ++i) {",
     "reset = absl::OkStatus();\n"
     "  for (uint32_t i = 1; !reset.ok() && i < limits_.max_resets; ++i) {"),
    ("reset", "a dead card is reset for ever", TRACKER,
     "resets_in_a_row_ > limits_.max_resets", "false"),
    ("timeout", "a hang is waited for", TRACKER,
     "  for (const Lane& lane : lanes_) {\n"
     "    if (lane.queue.empty()) continue;\n"
     "    earliest = std::min(",
     "  for (const Lane& lane : lanes_) {\n"
     "    if (true) continue;\n"
     "    earliest = std::min("),
    ("timeout", "a late operation is given up without a reset", TRACKER,
     "        Reset(absl::StrCat(\"operation \", op.value(), \" hangs\")).Ignore"
     "Error();\n        return ended;",
     "        End({op, absl::DeadlineExceededError(\"late\"), now, now});\n"
     "        return ended;"),
    ("timeout", "a completion that is lost is waited for", TRACKER,
     "        ++timeouts_;\n"
     "        End({op, absl::DeadlineExceededError(\"the device has lost it\"),",
     "        lane.head_since = now;\n        break;\n"
     "        End({op, absl::DeadlineExceededError(\"the device has lost it\"),"),
    ("bounds", "a host page behind the last", QUEUE,
     "if (page.host_page >= context_.host.num_pages) {",
     "if (page.host_page > context_.host.num_pages) {"),
    ("bounds", "a device page behind the last", "fpga_dma/device_pool.cc",
     "if (page >= num_pages()", "if (page > num_pages()"),
    ("bounds", "more pages than the queue has room for", QUEUE,
     "if (pages.size() > free_items_.size()) {", "if (false) {"),
    ("grouping", "pieces that are no neighbours share an extent", PIECES,
     "it->offset == run.back().end() &&", "it->offset >= run.back().end() &&"),
    ("grouping", "an extent as long as it comes", PIECES,
     "             bytes + it->bytes <= max_bytes;", "             true;"),
    ("grouping", "more than a staging slab holds", PIECES,
     "if (i > 0 && bytes + it->bytes > limits.staging_bytes) break;", ""),
    ("grouping", "more runs than a list holds", PIECES,
     "if (pack.size() == limits.max_packed_pieces) break;", ""),
    ("stripe", "every stripe gets the first heads", COPY,
     "const uint32_t first = geometry.FirstHead(stripe);",
     "const uint32_t first = geometry.FirstHead(0);"),
    ("stripe", "a run is scattered to the page of another split", BUNDLE,
     "runs.push_back({geometry.Slot(piece.device_page),",
     "runs.push_back({piece.device_page,"),
    ("stripe", "padding goes up as it was", COPY,
     "  std::memset(to + bytes, 0, geometry.LayerStride(stripe) - bytes);\n",
     ""),
    ("decode", "kernels may read something else than was sent", DECODE,
     "if (Checksum(0, at_.status) != inputs) {", "if (false) {"),
    ("decode", "outputs count that were made of pages sent again", DECODE,
     "if (stream_.Spoiled(layer) != spoiled) {", "if (false) {"),
    ("decode", "outputs that were read early are not compared", DECODE,
     "at_.early == at_.end || Checksum(at_.early, at_.end) == early",
     "true"),
    ("decode", "outputs count before their pages are read back", DECODE,
     "  PAGED_KV_RETURN_IF_ERROR(AwaitStream(layer, /*verified=*/true));\n",
     ""),
    ("decode", "outputs are not verified", DECODE,
     "if (options_.verify_outputs) {", "if (false) {"),
    ("decode", "status words are not looked at", DECODE,
     "  return CheckStatusWords();\n}", "  return absl::OkStatus();\n}"),
    ("decode", "outputs of before a reset count", DECODE,
     "if (tracker_->generation() == generation_) return", "return"),
    ("decode", "a page behind the last", DECODE,
     ": device >= pool_->num_pages()) {", ": false) {"),
    ("tier", "a block is freed while it moves", "paged_kv/block_lifecycle.cc",
     "if (tier != nullptr && tier->InTransfer(block)) {", "if (false) {"),
    ("tier", "no fence for pages of steps in flight",
     "paged_kv/device_tier.cc", "  if (step_list != kNoList) {",
     "  if (false) {"),
    ("tier", "a page without an owner keeps its transfer's state",
     "paged_kv/device_tier.cc",
     "  if (entry.transfer != PageTransfer::kNone) {\n"
     "    SetState(&entry, DevicePageState::kMoving);",
     "  if (false) {\n    SetState(&entry, DevicePageState::kMoving);"),
    ("tier", "a download that failed makes the page clean",
     "paged_kv/device_tier.cc",
     "  if (moved) entry.dirty = false;\n", "  entry.dirty = false;\n"),
    ("tier", "what the device wrote is not dirty", "paged_kv/residency.cc",
     "        tier.MarkDirty(tier.PageOf(table[i]));\n",
     "        (void)tier.PageOf(table[i]);\n"),
    ("tier", "a stale page survives a write in host memory",
     "paged_kv/residency.cc", "        tier.Drop(table[i]);\n", ""),
    ("tier", "surviving pages count as room", "paged_kv/tier_swap.cc",
     "tier.available(split) - state.split_reused[i];",
     "tier.available(split);"),
    ("tier", "content is evicted while it is written back",
     "paged_kv/tier_swap.cc",
     "if (blocks.state(block) == BlockState::kCached) blocks.HoldBack();",
     "(void)blocks;"),
    ("tier", "a hand-off does not wait for its step", "paged_kv/tier_swap.cc",
     "          transfer.after_step = StepId(sequence.last_step);\n", ""),
    ("tier", "who was to get a page that failed stays seated",
     "paged_kv/tier_swap.cc",
     "        UnseatFrom(state, slot, i * group.block_tokens);\n", ""),
    ("tier", "an old name ends a new transfer", "paged_kv/tier_swap.cc",
     "NameOf(*state, pool_number, page) != id ||", ""),
    ("tier", "a hit that only the device has is not fetched",
     "paged_kv/step_commit.cc",
     "  StartDownloads(state, entry.slot, &record->transfers);\n", ""),
    ("tier", "a copy is made of a page that is still arriving",
     "paged_kv/residency.cc",
     "  PAGED_KV_RETURN_IF_ERROR(CheckArrived(state, slot));\n", ""),
    ("tier", "a step writes to a page that moves", "paged_kv/residency.cc",
     "if (!state->TierOf(pool)->InTransfer(table[i])) continue;", "continue;"),
    ("tier", "a sequence leaves under its step", "paged_kv/tier_swap.cc",
     "if (!IsOnDevice(sequence) || sequence.last_step <= state->retired_step) {",
     "if (true) {"),
]


if __name__ == "__main__":
    main(__doc__,
         [Fault(area, name, [(pattern, old, new)])
          for area, name, pattern, old, new in FAULTS],
         cmake_bench(lambda fault: TESTS.get(fault.area, CARD_TESTS),
                     SECONDS))

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/simulated_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::testing {
namespace {

// A value that no manager writes into an array.
constexpr int32_t kUntouched = -77;

}  // namespace

SimulatedEngine::SimulatedEngine(const ReferenceKvCache& model) {
  for (uint32_t p = 0; p < model.pools(); ++p) {
    memory_.emplace_back(model.pool(p).written().size(), 0);
  }
}

std::string SimulatedEngine::Load(const KvCacheManager& manager,
                                  const ReferenceKvCache& model, StepId step,
                                  uint64_t first_write) {
  Work work;
  if (!spare_.empty()) {
    work = std::move(spare_.back());
    spare_.pop_back();
  }
  ++loads_;
  work.step = step;
  work.first_write = first_write;
  work.groups.resize(model.groups().size());
  const absl::StatusOr<StepView> view = manager.View(step);
  if (!view.ok()) return "no view of a step that was just committed";
  work.copies.assign(view->copies.begin(), view->copies.end());
  std::string error;
  for (uint32_t g = 0; g < model.groups().size() && error.empty(); ++g) {
    error = LoadGroup(manager, model, *view, g, &work);
  }
  loaded_.push_back(std::move(work));
  return error;
}

// Fills the arrays of one group and looks at what describes them.
std::string SimulatedEngine::Export(const KvCacheManager& manager,
                                    const ReferenceGroup& group,
                                    const StepView& view, uint32_t g,
                                    Work* work) {
  GroupTables& got = work->groups[g];
  const absl::StatusOr<PageTableSize> sizes =
      manager.TableSize(work->step, GroupId(g));
  if (!sizes.ok() || sizes->sequences != view.sequences.size()) {
    return "size of the page table is not known";
  }
  const size_t rows = sizes->sequences;
  got.indptr.assign(rows + 1, kUntouched);
  got.pages.assign(sizes->pages, kUntouched);
  got.last_page_tokens.assign(rows, kUntouched);
  got.first_token.assign(rows, kUntouched);
  const absl::StatusOr<PageTable> table = manager.ExportPageTable(
      work->step, GroupId(g),
      {absl::MakeSpan(got.indptr), absl::MakeSpan(got.pages),
       absl::MakeSpan(got.last_page_tokens), absl::MakeSpan(got.first_token)});
  if (!table.ok()) return absl::StrCat("export: ", table.status().ToString());
  if (table->block_tokens != static_cast<int32_t>(group.block_tokens) ||
      table->sink_pages != static_cast<int32_t>(group.sink_blocks) ||
      table->num_sequences() != rows) {
    return "page table describes itself wrongly";
  }
  uint64_t slot_rows = 0;
  for (size_t i = 0; i < rows; ++i) {
    slot_rows += view.sequences[i].Rows().value();
    if (table->SequenceTokens(i) != view.sequences[i].Context().value()) {
      return absl::StrCat("row ", i, " says it has ", table->SequenceTokens(i),
                          " tokens");
    }
  }
  got.slots.assign(slot_rows, kUntouched);
  const absl::Status status = manager.ExportSlotMapping(
      work->step, GroupId(g), absl::MakeSpan(got.slots));
  return status.ok() ? "" : absl::StrCat("slot mapping: ", status.ToString());
}

// Compares a row with the model's table, from the page and slot where it
// begins, which it moves behind it, and notes what a kernel has to read.
std::string SimulatedEngine::CheckRow(const ReferenceKvCache& model,
                                      const PlannedSequence& part, uint32_t g,
                                      size_t i, RowStart* at,
                                      GroupTables* got) {
  const ReferenceGroup& group = model.groups()[g];
  const uint32_t size = group.block_tokens;
  const std::vector<uint64_t>& written = model.pool(group.pool).written();
  const ReferenceSequence* sequence = model.Find(part.id);
  PAGED_KV_CHECK(sequence != nullptr);
  const ReferenceTable& table = sequence->tables[g];
  const uint32_t context = part.Context().value();
  if (got->indptr[i] != static_cast<int32_t>(at->page)) {
    return absl::StrCat("indptr of row ", i, " is ", got->indptr[i]);
  }
  for (uint32_t logical = 0; logical * size < context; ++logical) {
    const uint32_t block = table.blocks[logical];
    if (block == kNoReferenceBlock) continue;
    if (at->page >= got->pages.size() ||
        got->pages[at->page] != static_cast<int32_t>(block)) {
      return absl::StrCat("page ", at->page, " of row ", i, " is not block ",
                          block);
    }
    ++at->page;
    const uint32_t filled = std::min(size, context - logical * size);
    const auto first = written.begin() + ptrdiff_t{block} * size;
    got->reads.insert(got->reads.end(), first, first + filled);
  }
  const uint32_t last = (context - 1) % size + 1;
  const uint32_t first_token =
      table.first > group.sink_blocks ? table.first * size : 0;
  if (got->last_page_tokens[i] != static_cast<int32_t>(last) ||
      got->first_token[i] != static_cast<int32_t>(first_token)) {
    return absl::StrCat(
        "row ", i, " of context ", context, " has ", got->last_page_tokens[i],
        " tokens in its last page and first_token ", got->first_token[i]);
  }
  for (uint32_t pos = part.first_new.value(); pos < context; ++pos) {
    const int64_t slot = int64_t{table.blocks[pos / size]} * size + pos % size;
    if (got->slots[at->slot] != slot) {
      return absl::StrCat("slot of position ", pos, " of row ", i, " is ",
                          got->slots[at->slot], ", not ", slot);
    }
    ++at->slot;
  }
  return "";
}

std::string SimulatedEngine::LoadGroup(const KvCacheManager& manager,
                                       const ReferenceKvCache& model,
                                       const StepView& view, uint32_t g,
                                       Work* work) {
  std::string error = Export(manager, model.groups()[g], view, g, work);
  GroupTables& got = work->groups[g];
  got.reads.clear();
  RowStart at;
  const size_t rows = view.sequences.size();
  for (size_t i = 0; i < rows && error.empty(); ++i) {
    error = CheckRow(model, view.sequences[i], g, i, &at, &got);
  }
  if (!error.empty()) return error;
  if (at.page != got.pages.size() ||
      got.indptr[rows] != static_cast<int32_t>(at.page)) {
    return absl::StrCat("page table ends at ", got.indptr[rows], ", not ",
                        at.page);
  }
  // The padded form is the same data: looked at now and then.
  return loads_ % 8 == 0 ? CheckPadded(manager, view, g, *work) : "";
}

std::string SimulatedEngine::CheckPadded(const KvCacheManager& manager,
                                         const StepView& view, uint32_t g,
                                         const Work& work) {
  const GroupTables& csr = work.groups[g];
  const size_t rows = view.sequences.size();
  const size_t needed = manager.TableSize(work.step, GroupId(g))->pages_per_row;
  const size_t width = needed + loads_ / 8 % 2;
  padded_.assign(rows * width, kUntouched);
  tokens_.assign(rows, kUntouched);
  first_token_.assign(rows, kUntouched);
  PaddedPageTableBuffers buffers;
  buffers.page_indices = absl::MakeSpan(padded_);
  buffers.tokens = absl::MakeSpan(tokens_);
  buffers.first_token = absl::MakeSpan(first_token_);
  buffers.width = static_cast<int32_t>(width);
  buffers.padding = 5;
  if (const absl::Status status =
          manager.ExportPaddedPageTable(work.step, GroupId(g), buffers);
      !status.ok()) {
    return absl::StrCat("padded export: ", status.ToString());
  }
  size_t widest = 0;
  for (size_t i = 0; i < rows; ++i) {
    const auto pages = static_cast<size_t>(csr.indptr[i + 1] - csr.indptr[i]);
    widest = std::max(widest, pages);
    for (size_t j = 0; j < width; ++j) {
      const int32_t expected =
          j < pages ? csr.pages[static_cast<size_t>(csr.indptr[i]) + j] : 5;
      if (padded_[i * width + j] != expected) {
        return absl::StrCat("padded page ", j, " of row ", i, " is ",
                            padded_[i * width + j], ", not ", expected);
      }
    }
    if (tokens_[i] !=
            static_cast<int32_t>(view.sequences[i].Context().value()) ||
        first_token_[i] != csr.first_token[i]) {
      return absl::StrCat("padded row ", i, " has ", tokens_[i],
                          " tokens from ", first_token_[i], " on");
    }
  }
  return widest == needed
             ? ""
             : absl::StrCat("widest row has ", widest, " pages, not ", needed);
}

std::string SimulatedEngine::Run(const ReferenceKvCache& model) {
  PAGED_KV_CHECK(!loaded_.empty());
  Work work = std::move(loaded_.front());
  loaded_.pop_front();
  std::string error;
  for (const BlockCopy& copy : work.copies) {
    const ReferenceGroup& group = model.groups()[copy.group.value()];
    std::vector<uint64_t>& memory = memory_[group.pool];
    std::copy_n(
        memory.begin() + ptrdiff_t{copy.source.value()} * group.block_tokens,
        copy.filled_tokens,
        memory.begin() + ptrdiff_t{copy.target.value()} * group.block_tokens);
  }
  for (uint32_t g = 0; g < work.groups.size(); ++g) {
    const GroupTables& tables = work.groups[g];
    const uint32_t size = model.groups()[g].block_tokens;
    std::vector<uint64_t>& memory = memory_[model.groups()[g].pool];
    uint64_t write = work.first_write;
    for (int64_t slot : tables.slots) {
      memory[static_cast<size_t>(slot)] = write++;
    }
    size_t read = 0;
    for (size_t i = 0; i + 1 < tables.indptr.size(); ++i) {
      for (int32_t p = tables.indptr[i]; p < tables.indptr[i + 1]; ++p) {
        const bool last = p + 1 == tables.indptr[i + 1];
        const auto filled =
            last ? static_cast<uint32_t>(tables.last_page_tokens[i]) : size;
        const uint64_t* slots =
            memory.data() +
            int64_t{tables.pages[static_cast<size_t>(p)]} * size;
        for (uint32_t s = 0; s < filled; ++s, ++read) {
          if (slots[s] == tables.reads[read] || !error.empty()) continue;
          error = absl::StrCat(
              "step ", work.step.value(), ", group ", g, ", row ", i, ": slot ",
              s, " of page ", tables.pages[static_cast<size_t>(p)],
              " holds write ", slots[s], ", not ", tables.reads[read]);
        }
      }
    }
  }
  spare_.push_back(std::move(work));
  return error;
}

}  // namespace paged_kv::testing

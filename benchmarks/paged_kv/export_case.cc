// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <vector>

#include "benchmarks/paged_kv/manager_case.h"
#include "paged_kv/check.h"

namespace paged_kv::benchmarks {
namespace {

// The page tables of a step in flight that has one token for each of 256
// sequences.
class ExportCase final : public ManagerCase {
 public:
  explicit ExportCase(uint32_t blocks)
      : ManagerCase(blocks),
        indptr_(kSequences + 1),
        page_indices_(kSequences * kBlocks),
        last_page_tokens_(kSequences),
        first_token_(kSequences) {
    MakeNewPrompts(kSequences, kBlocks * kBlockTokens);
    std::vector<StepRequest> requests;
    for (int i = 0; i < kSequences; ++i) {
      const Admission admission =
          manager().Allocate(Prompt(i).first((kBlocks - 1) * kBlockTokens));
      manager().Retire(admission.step);
      requests.push_back(StepRequest::Extend(
          admission.id, Prompt(i).subspan((kBlocks - 1) * kBlockTokens, 1)));
    }
    step_ = manager().Step(requests);
  }

  int units() const override { return kSequences; }
  void Run() override {
    PageTableBuffers buffers;
    buffers.indptr = absl::MakeSpan(indptr_);
    buffers.page_indices = absl::MakeSpan(page_indices_);
    buffers.last_page_tokens = absl::MakeSpan(last_page_tokens_);
    buffers.first_token = absl::MakeSpan(first_token_);
    const auto table =
        manager().cache().ExportPageTable(step_, GroupId(0), buffers);
    PAGED_KV_CHECK(table.ok() &&
                   table->page_indices.size() == kSequences * kBlocks);
  }

 private:
  static constexpr int kSequences = 256;
  static constexpr uint32_t kBlocks = 3;

  StepId step_;
  std::vector<int32_t> indptr_;
  std::vector<int32_t> page_indices_;
  std::vector<int32_t> last_page_tokens_;
  std::vector<int32_t> first_token_;
};

}  // namespace

std::unique_ptr<CostCase> MakeExport(uint32_t blocks) {
  return std::make_unique<ExportCase>(blocks);
}

}  // namespace paged_kv::benchmarks

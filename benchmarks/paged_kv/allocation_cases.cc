// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <vector>

#include "benchmarks/paged_kv/manager_case.h"
#include "paged_kv/check.h"

namespace paged_kv::benchmarks {
namespace {

// An unknown prompt from admission to its end; every block evicts one.
class PrefillCase final : public ManagerCase {
 public:
  PrefillCase(uint32_t blocks, int prompt_blocks)
      : ManagerCase(blocks), prompt_blocks_(prompt_blocks) {}

  int batch() const override { return prompt_blocks_ == 1 ? 64 : 4; }
  int units() const override { return prompt_blocks_; }
  void Prepare() override {
    MakeNewPrompts(batch(),
                   static_cast<uint32_t>(prompt_blocks_) * kBlockTokens);
    next_ = 0;
  }
  void Run() override {
    const Admission admission = manager().Allocate(Prompt(next_++));
    manager().Retire(admission.step);
    manager().Free(admission.id);
  }

 private:
  int prompt_blocks_;
  int next_ = 0;
};

class FreeCase final : public ManagerCase {
 public:
  using ManagerCase::ManagerCase;

  int units() const override { return kBlocks; }
  void Prepare() override {
    MakeNewPrompts(batch(), kBlocks * kBlockTokens);
    for (int i = 0; i < batch(); ++i) {
      const Admission admission = manager().Allocate(Prompt(i));
      manager().Retire(admission.step);
      living_.push_back(admission.id);
    }
  }
  void Run() override {
    manager().Free(living_.back());
    living_.pop_back();
  }

 private:
  static constexpr int kBlocks = 8;
  std::vector<SequenceId> living_;
};

// A child's first token after a fork in the middle of a block copies it.
class ForkAndWriteCase final : public ManagerCase {
 public:
  explicit ForkAndWriteCase(uint32_t blocks) : ManagerCase(blocks) {
    MakeNewPrompts(1, kBlockTokens + kBlockTokens / 2);
    const Admission admission = manager().Allocate(Prompt(0));
    manager().Retire(admission.step);
    parent_ = admission.id;
  }
  void Run() override {
    const auto child = manager().cache().Fork(parent_);
    PAGED_KV_CHECK(child.ok());
    const TokenId token = 7;
    const StepRequest request = StepRequest::Extend(*child, {&token, 1});
    manager().Retire(manager().Step({&request, 1}));
    manager().Free(*child);
  }

 private:
  SequenceId parent_;
};

}  // namespace

std::unique_ptr<CostCase> MakePrefill(uint32_t blocks) {
  return std::make_unique<PrefillCase>(blocks, 64);
}

std::unique_ptr<CostCase> MakeAllocateFree(uint32_t blocks) {
  return std::make_unique<PrefillCase>(blocks, 1);
}

std::unique_ptr<CostCase> MakeFree(uint32_t blocks) {
  return std::make_unique<FreeCase>(blocks);
}

std::unique_ptr<CostCase> MakeForkAndWrite(uint32_t blocks) {
  return std::make_unique<ForkAndWriteCase>(blocks);
}

}  // namespace paged_kv::benchmarks

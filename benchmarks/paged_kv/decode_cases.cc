// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <vector>

#include "benchmarks/paged_kv/manager_case.h"

namespace paged_kv::benchmarks {
namespace {

// Sequences of one full block that grow by kBlockTokens tokens in a batch, one
// a run; the first of them takes a block, the last one fills it.
class GrowingCase : public ManagerCase {
 public:
  GrowingCase(uint32_t blocks, int sequences)
      : ManagerCase(blocks), sequences_(sequences) {}

  void Prepare() override {
    MakeNewPrompts(sequences_, 2 * kBlockTokens);
    for (int i = 0; i < sequences_; ++i) {
      const Admission admission =
          manager().Allocate(Prompt(i).first(kBlockTokens));
      manager().Retire(admission.step);
      living_.push_back(admission.id);
    }
    position_ = kBlockTokens;
    next_ = 0;
  }
  void Finish() override {
    for (SequenceId id : living_) manager().Free(id);
    living_.clear();
  }

 protected:
  int sequences() const { return sequences_; }
  // The next token of sequence i.
  StepRequest Extend(int i) {
    return StepRequest::Extend(living_[static_cast<size_t>(i)],
                               Prompt(i).subspan(position_, 1));
  }

  uint32_t position_ = 0;
  int next_ = 0;

 private:
  int sequences_;
  std::vector<SequenceId> living_;
};

class AppendCase final : public GrowingCase {
 public:
  explicit AppendCase(uint32_t blocks) : GrowingCase(blocks, 64) {}
  int batch() const override { return sequences() * int{kBlockTokens}; }
  void Run() override {
    const StepRequest request = Extend(next_);
    manager().Retire(manager().Step({&request, 1}));
    if (++next_ < sequences()) return;
    next_ = 0;
    ++position_;
  }
};

class DecodeStepCase final : public GrowingCase {
 public:
  explicit DecodeStepCase(uint32_t blocks) : GrowingCase(blocks, 256) {
    requests_.reserve(static_cast<size_t>(sequences()));
  }
  int batch() const override { return kBlockTokens; }
  int units() const override { return sequences(); }
  void Run() override {
    requests_.clear();
    for (int i = 0; i < sequences(); ++i) requests_.push_back(Extend(i));
    manager().Retire(manager().Step(requests_));
    ++position_;
  }

 private:
  std::vector<StepRequest> requests_;
};

}  // namespace

std::unique_ptr<CostCase> MakeAppend(uint32_t blocks) {
  return std::make_unique<AppendCase>(blocks);
}

std::unique_ptr<CostCase> MakeDecodeStep(uint32_t blocks) {
  return std::make_unique<DecodeStepCase>(blocks);
}

}  // namespace paged_kv::benchmarks

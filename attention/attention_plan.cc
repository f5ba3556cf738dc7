// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/attention_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attention/aligned_buffer_internal.h"
#include "attention/attend_internal.h"
#include "attention/plan_checks_internal.h"
#include "attention/shared_prefix_internal.h"
#include "attention/split_merge_internal.h"
#include "attention/work_partition_internal.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::attention {

using internal::AlignedFloats;
using internal::AttendCall;
using internal::AttendFunction;
using internal::AttendTask;
using internal::ManyRowsKernel;
using internal::ScratchLayout;
using internal::SequenceQueries;
using internal::SharedPrefix;
using internal::SplitRows;
using internal::WorkItem;
using internal::WorkPartition;

namespace {

AttendFunction FindVectorKernel(DType dtype, Isa isa) {
  switch (dtype) {
    case DType::kF32:
      return internal::AttendF32(isa);
    case DType::kF16:
      return internal::AttendF16(isa);
    case DType::kBF16:
      return internal::AttendBf16(isa);
    case DType::kFp8E4M3:
      return internal::AttendFp8(isa);
    case DType::kInt8:
      return internal::AttendInt8(isa);
  }
  return nullptr;
}

ManyRowsKernel FindTileKernel(const BlockShape& shape) {
  switch (shape.dtype) {
    case DType::kBF16:
      return internal::AttendBf16Amx(shape);
    case DType::kFp8E4M3:
    case DType::kInt8:
      return internal::Attend8BitsAmx(shape);
    case DType::kF32:
    case DType::kF16:
      break;
  }
  return {};
}

ManyRowsKernel FindManyRowsKernel(const BlockShape& shape, Isa isa) {
  if (isa == Isa::kAmxBf16) return FindTileKernel(shape);
  if (isa == Isa::kAvx512Dl && shape.dtype == DType::kInt8) {
    return internal::AttendInt8Dot(shape);
  }
  return {};
}

// Kernels by the number of an item's rows.
struct Kernels {
  Kernels(const BlockShape& shape, Isa isa)
      : vectors(FindVectorKernel(shape.dtype, isa)),
        many_rows(FindManyRowsKernel(shape, isa)) {}

  AttendFunction For(const WorkItem& item) const {
    const bool many =
        many_rows.function != nullptr && item.num_rows >= many_rows.min_rows;
    return many ? many_rows.function : vectors;
  }

  AttendFunction vectors;
  ManyRowsKernel many_rows;
};

absl::Status CheckCommon(const KvPages& pages, uint32_t query_heads,
                         const PageTable& table,
                         const AttentionOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(Validate(pages));
  PAGED_KV_RETURN_IF_ERROR(Validate(options));
  PAGED_KV_RETURN_IF_ERROR(internal::CheckKernelShape(pages.shape));
  PAGED_KV_RETURN_IF_ERROR(internal::CheckHeads(pages.shape, query_heads));
  return internal::CheckPageTable(pages, table);
}

}  // namespace

class AttentionPlan::Impl {
 public:
  // Everything is checked.
  Impl(const KvPages& pages, uint32_t query_heads, const PageTable& table,
       const std::vector<SequenceQueries>& queries,
       const AttentionOptions& options, Isa isa)
      : isa_(isa), kernels_(pages.shape, isa) {
    PAGED_KV_CHECK(kernels_.vectors != nullptr);
    const BlockShape& shape = pages.shape;
    call_.pages = pages;
    call_.table = table;
    call_.query_heads = query_heads;
    call_.group = query_heads / shape.kv_heads;
    const double scale = options.scale != 0.0f
                             ? double{options.scale}
                             : 1.0 / std::sqrt(double{1} * shape.head_dim);
    // Softmax works on powers of two; under a soft cap the factor for that
    // comes after the tanh.
    call_.score_scale = static_cast<float>(options.soft_cap == 0.0f
                                               ? scale * std::numbers::log2e
                                               : scale / options.soft_cap);
    call_.soft_cap = options.soft_cap;
    call_.window = options.window;
    call_.sink_tokens = options.window == 0 ? 0 : options.sink_tokens;
    call_.causal = options.causal;
    for (const SequenceQueries& sequence : queries) {
      total_queries_ += sequence.num_queries;
    }
    // A window may hide a prefix from some of those who share it.
    const std::vector<SharedPrefix> shared =
        options.share_prefixes && options.window == 0
            ? internal::FindSharedPrefixes(table, queries)
            : std::vector<SharedPrefix>();
    partition_ = internal::PartitionWork(queries, shared, shape.kv_heads,
                                         call_.group, options);
    call_.shared_queries = partition_.shared_queries.data();
    call_.partial_rows = partition_.partial_rows;
    ReservePartials();
  }

  int64_t total_queries() const { return total_queries_; }
  Isa isa() const { return isa_; }

  absl::Status Run(const KvPages& pages, uint32_t layer,
                   absl::Span<const float> q, const AttentionOutputs& outputs,
                   ParallelFor& parallel) {
    PAGED_KV_RETURN_IF_ERROR(CheckRun(pages, layer, q, outputs));
    call_.pages.layout = pages.layout;
    call_.layer = layer;
    call_.q = q.data();
    call_.out = outputs.out.data();
    call_.lse = outputs.lse.empty() ? nullptr : outputs.lse.data();

    const ScratchLayout layout(call_.pages.shape);
    const size_t workers = parallel.num_workers();
    scratch_.Reserve(workers * layout.total);
    const size_t kv_heads = call_.pages.shape.kv_heads;
    const size_t num_tasks = partition_.items.size() * kv_heads;
    parallel.Run(num_tasks, [&](size_t task, size_t worker) {
      PAGED_KV_CHECK(worker < workers);
      // Workers that keep step take every workers-th task.
      const size_t next = task + workers;
      const AttendTask current = Task(task);
      kernels_.For (*current.item)(call_, current,
                                   next < num_tasks ? Task(next) : AttendTask(),
                                   scratch_.data() + worker * layout.total);
    });
    if (partition_.splits.empty()) return absl::OkStatus();
    parallel.Run(partition_.splits.size() * kv_heads, [&](size_t task, size_t) {
      const SplitRows& split = partition_.splits[task / kv_heads];
      internal::MergeSplits(call_, split,
                            absl::MakeConstSpan(partition_.parts)
                                .subspan(split.first_part, split.num_parts),
                            static_cast<uint32_t>(task % kv_heads));
    });
    return absl::OkStatus();
  }

 private:
  AttendTask Task(size_t task) const {
    const size_t kv_heads = call_.pages.shape.kv_heads;
    return {&partition_.items[task / kv_heads],
            static_cast<uint32_t>(task % kv_heads)};
  }

  void ReservePartials() {
    const BlockShape& shape = call_.pages.shape;
    const size_t rows =
        static_cast<size_t>(partition_.partial_rows) * shape.kv_heads;
    const size_t stride = internal::OutputStride(shape);
    partials_.Reserve(rows * (stride + 2));
    call_.partial_out = partials_.data();
    call_.partial_reference = partials_.data() + rows * stride;
    call_.partial_sum = call_.partial_reference + rows;
  }

  absl::Status CheckRun(const KvPages& pages, uint32_t layer,
                        absl::Span<const float> q,
                        const AttentionOutputs& outputs) const {
    const BlockShape& shape = call_.pages.shape;
    PAGED_KV_RETURN_IF_ERROR(Validate(pages));
    if (!(pages.shape == shape)) {
      return absl::InvalidArgumentError(
          "the pages have another shape than those of the plan");
    }
    if (pages.num_pages < call_.pages.num_pages) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there are ", pages.num_pages, " pages, but the plan was made for ",
          call_.pages.num_pages));
    }
    if (layer >= shape.layers) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer is ", layer, ", but pages hold ", shape.layers));
    }
    const size_t rows = static_cast<size_t>(total_queries_) * call_.query_heads;
    PAGED_KV_RETURN_IF_ERROR(internal::CheckArray(
        "q", q.data(), q.size(), rows * shape.head_dim, alignof(float)));
    PAGED_KV_RETURN_IF_ERROR(
        internal::CheckArray("out", outputs.out.data(), outputs.out.size(),
                             rows * shape.VHeadDim(), alignof(float)));
    if (outputs.lse.empty()) return absl::OkStatus();
    return internal::CheckArray("lse", outputs.lse.data(), outputs.lse.size(),
                                rows, alignof(float));
  }

  Isa isa_;
  Kernels kernels_;
  AttendCall call_;  // what changes from layer to layer is set by Run()
  WorkPartition partition_;
  int64_t total_queries_ = 0;
  AlignedFloats partials_;
  AlignedFloats scratch_;  // one ScratchLayout per worker
};

absl::StatusOr<AttentionPlan> AttentionPlan::ForDecode(
    const KvPages& pages, uint32_t query_heads, const PageTable& table,
    const AttentionOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(CheckCommon(pages, query_heads, table, options));
  std::vector<SequenceQueries> queries(table.num_sequences());
  for (size_t i = 0; i < queries.size(); ++i) {
    SequenceQueries& sequence = queries[i];
    sequence.sequence = static_cast<uint32_t>(i);
    sequence.num_queries = 1;
    sequence.first_query = static_cast<int64_t>(i);
    sequence.num_tokens = table.SequenceTokens(i);
    sequence.first_position = sequence.num_tokens - 1;
    if (sequence.num_tokens == 0) continue;
    PAGED_KV_RETURN_IF_ERROR(
        internal::CheckWindow(table, i, sequence.first_position, options));
  }
  PAGED_KV_ASSIGN_OR_RETURN(const Isa isa, ResolveIsa(options.isa));
  return AttentionPlan(
      std::make_unique<Impl>(pages, query_heads, table, queries, options, isa));
}

absl::StatusOr<AttentionPlan> AttentionPlan::ForPrefill(
    const KvPages& pages, uint32_t query_heads, const PageTable& table,
    absl::Span<const int32_t> qo_indptr, const AttentionOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(CheckCommon(pages, query_heads, table, options));
  PAGED_KV_RETURN_IF_ERROR(internal::CheckQueries(table, qo_indptr));
  std::vector<SequenceQueries> queries;
  queries.reserve(table.num_sequences());
  for (size_t i = 0; i < table.num_sequences(); ++i) {
    SequenceQueries sequence;
    sequence.sequence = static_cast<uint32_t>(i);
    sequence.num_queries = qo_indptr[i + 1] - qo_indptr[i];
    sequence.first_query = qo_indptr[i];
    sequence.num_tokens = table.SequenceTokens(i);
    sequence.first_position = sequence.num_tokens - sequence.num_queries;
    if (sequence.num_queries == 0) continue;
    PAGED_KV_RETURN_IF_ERROR(
        internal::CheckWindow(table, i, sequence.first_position, options));
    queries.push_back(sequence);
  }
  PAGED_KV_ASSIGN_OR_RETURN(const Isa isa, ResolveIsa(options.isa));
  return AttentionPlan(
      std::make_unique<Impl>(pages, query_heads, table, queries, options, isa));
}

AttentionPlan::AttentionPlan(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
AttentionPlan::AttentionPlan(AttentionPlan&&) noexcept = default;
AttentionPlan& AttentionPlan::operator=(AttentionPlan&&) noexcept = default;
AttentionPlan::~AttentionPlan() = default;

int64_t AttentionPlan::total_queries() const { return impl_->total_queries(); }
Isa AttentionPlan::isa() const { return impl_->isa(); }

absl::Status AttentionPlan::Run(const KvPages& pages, uint32_t layer,
                                absl::Span<const float> q,
                                const AttentionOutputs& outputs,
                                ParallelFor& parallel) {
  return impl_->Run(pages, layer, q, outputs, parallel);
}

}  // namespace paged_kv::attention

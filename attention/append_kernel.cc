// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/simd_targets_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/append_kernel.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention/append_internal.h"
#include "attention/quantize_to_8_bits-inl.h"
#include "attention/round_to_16_bits-inl.h"
#include "attention/tile_transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

// Writes the rows of one KV head. `to` addresses are aligned to elements only.
class Appender {
 public:
  explicit Appender(const AppendTask& task)
      : task_(task), stored_(task.pages->shape.dtype) {}

  void Run() const {
    const PageLayout& layout = task_.pages->layout;
    const BlockShape& shape = task_.pages->shape;
    if (layout.k_order == KOrder::kTiled16) {
      AppendTiledKeys();
    } else {
      AppendRows(task_.k, 0, KTokenStride(*task_.pages), shape.head_dim,
                 KDataBytes(shape));
    }
    AppendRows(task_.v, layout.kv_stride, VTokenStride(*task_.pages),
               shape.VHeadDim(), VDataBytes(shape));
  }

 private:
  const uint8_t* InputRow(const KvRows& rows, size_t token) const {
    return static_cast<const uint8_t*>(rows.data) +
           static_cast<int64_t>(token) * rows.token_stride +
           task_.kv_head * rows.head_stride;
  }

  uint8_t* KeySlice(int64_t slot) const {
    const KvPages& pages = *task_.pages;
    const auto page = static_cast<uint32_t>(slot / pages.shape.block_tokens);
    return static_cast<uint8_t*>(pages.layout.base) +
           KSliceOffset(pages.layout, page, task_.layer, task_.kv_head);
  }

  // The scale of an input row of `dim` elements; 1 for dtypes without scales.
  float ScaleOf(const KvRows& rows, size_t token, size_t dim) const {
    if (!HasScales(stored_)) return 1.0f;
    if (rows.scales != nullptr) return *RowScale(rows, token, task_.kv_head);
    const auto* row = reinterpret_cast<const float*>(InputRow(rows, token));
    return QuantizationScale(stored_, LargestMagnitude(row, dim));
  }

  // Stores the scale of a token in a slice with `data` bytes before its scales.
  void StoreScale(float scale, int64_t token, Bytes data,
                  uint8_t* slice) const {
    if (!HasScales(stored_)) return;
    constexpr int64_t kBytes = sizeof(scale);
    std::memcpy(slice + data.value() + token * kBytes, &scale, kBytes);
  }

  // Stores `count` elements of an input row.
  void Convert(const uint8_t* from, DType dtype, size_t count, float scale,
               uint8_t* to) const {
    const auto* row = reinterpret_cast<const float*>(from);
    if (dtype == stored_) {
      std::memcpy(to, from, count * ElementBytes(stored_));
    } else if (stored_ == DType::kBF16) {
      RoundToBf16(row, count, reinterpret_cast<uint16_t*>(to));
    } else if (stored_ == DType::kF16) {
      RoundToF16(row, count, reinterpret_cast<uint16_t*>(to));
    } else if (stored_ == DType::kFp8E4M3) {
      QuantizeRow<E4m3Encoder>(row, count, scale, to);
    } else {
      QuantizeRow<Int8Encoder>(row, count, scale, to);
    }
  }

  // V, and K in plain order.
  void AppendRows(const KvRows& rows, int64_t slice_offset,
                  int64_t token_stride, size_t dim, Bytes data) const {
    const int64_t block_tokens = task_.pages->shape.block_tokens;
    for (size_t i = 0; i < task_.slot_mapping.size(); ++i) {
      const int64_t slot = task_.slot_mapping[i];
      if (slot < 0) continue;
      const int64_t token = slot % block_tokens;
      uint8_t* slice = KeySlice(slot) + slice_offset;
      const float scale = ScaleOf(rows, i, dim);
      Convert(InputRow(rows, i), rows.dtype, dim, scale,
              slice + token * token_stride);
      StoreScale(scale, token, data, slice);
    }
  }

  void AppendTiledKeys() const {
    const absl::Span<const int64_t> slots = task_.slot_mapping;
    for (size_t i = 0; i < slots.size();) {
      if (slots[i] < 0) {
        ++i;
        continue;
      }
      // Neighbouring slots of one tile go together.
      const int64_t lane = slots[i] % kTileTokens;
      size_t run = 1;
      while (lane + static_cast<int64_t>(run) < kTileTokens &&
             i + run < slots.size() &&
             slots[i + run] == slots[i] + static_cast<int64_t>(run)) {
        ++run;
      }
      AppendToTile(i, run, static_cast<size_t>(lane));
      i += run;
    }
  }

  // Tokens first .. first + run - 1 into lanes from `lane` on of one tile, a
  // strip of dims at a time so that converted rows stay in a small buffer.
  void AppendToTile(size_t first, size_t run, size_t lane) const {
    const BlockShape& shape = task_.pages->shape;
    const int64_t slot = task_.slot_mapping[first];
    const size_t element = ElementBytes(stored_);
    const size_t row_bytes = shape.head_dim * element;
    const int64_t token = slot % shape.block_tokens;
    const auto tile_index = static_cast<size_t>(token) / kTileTokens;
    uint8_t* slice = KeySlice(slot);
    uint8_t* tile = slice + tile_index * kTileTokens * row_bytes;
    const size_t input_element = ElementBytes(task_.k.dtype);

    float scales[kTileTokens];
    for (size_t t = 0; t < run; ++t) {
      scales[t] = ScaleOf(task_.k, first + t, shape.head_dim);
      StoreScale(scales[t], token + static_cast<int64_t>(t), KDataBytes(shape),
                 slice);
    }

    alignas(64) uint8_t converted[kTileTokens][kStripBytes];
    const uint8_t* rows[kTileTokens];
    for (size_t offset = 0; offset < row_bytes; offset += kStripBytes) {
      const size_t bytes = std::min(kStripBytes, row_bytes - offset);
      for (size_t t = 0; t < run; ++t) {
        const uint8_t* from =
            InputRow(task_.k, first + t) + offset / element * input_element;
        if (task_.k.dtype == stored_) {
          rows[t] = from;
        } else {
          Convert(from, task_.k.dtype, bytes / element, scales[t],
                  converted[t]);
          rows[t] = converted[t];
        }
      }
      uint8_t* to = tile + offset / kUnitBytes * kTileRowBytes;
      if (run == kTileTokens) {
        TransposeToTile(rows, bytes / kUnitBytes, to, nullptr);
      } else {
        ScatterUnits(rows, run, bytes / kUnitBytes, to + lane * kUnitBytes);
      }
    }
  }

  static void ScatterUnits(const uint8_t* const* rows, size_t run,
                           size_t num_units, uint8_t* to) {
    for (size_t u = 0; u < num_units; ++u) {
      for (size_t t = 0; t < run; ++t) {
        std::memcpy(to + u * kTileRowBytes + t * kUnitBytes,
                    rows[t] + u * kUnitBytes, kUnitBytes);
      }
    }
  }

  static constexpr size_t kStripBytes = 256;

  const AppendTask& task_;
  const DType stored_;
};

void AppendTokens(const AppendTask& task) { Appender(task).Run(); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paged_kv::attention::internal {

AppendFunction FindAppendKernel(Isa isa) {
  return PAGED_KV_FUNCTION_FOR_ISA(AppendTokens, isa);
}

}  // namespace paged_kv::attention::internal
#endif  // HWY_ONCE

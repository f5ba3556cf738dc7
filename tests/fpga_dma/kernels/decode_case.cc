// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fpga_dma/kernels/decode_case.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <tuple>

namespace paged_kv::fpga_dma {
namespace {

constexpr uint16_t kNanBf16 = 0x7FC0;
// Beats between the slices of a page and behind the last one: nothing reads
// them.
constexpr uint32_t kGapBeats = 3;

uint16_t RandomBf16(std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  float value = normal(random);
  switch (random() % 64) {
    case 0:
      value = 0.0f;
      break;
    case 1:
      value *= 1e-20f;  // counts as 0
      break;
    case 2:
      value *= 8.0f;
      break;
    default:
      break;
  }
  return Bf16OfFloat(value);
}

// Rows with the range of RandomBf16, and some of its extremes.
float RandomScale(std::mt19937_64& random) {
  const float scale =
      std::uniform_real_distribution<float>(0.2f, 1.5f)(random) / 127.0f;
  switch (random() % 64) {
    case 0:
      return 1.17549435e-38f;  // 2^-126, the smallest; counts as 0
    case 1:
      return 1e-12f * scale;
    case 2:
      return 8.0f * scale;
    default:
      return scale;
  }
}

uint32_t Below(std::mt19937_64& random, uint32_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

}  // namespace

float FloatOfBf16(uint16_t stored) {
  const uint32_t bits = uint32_t{stored} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint16_t Bf16OfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

DecodeCase::DecodeCase(const DecodeShape& s)
    : shape(s),
      page_stride_beats(s.slices * (s.slice_beats() + kGapBeats)),
      kv(size_t{s.num_pages} * page_stride_beats * kBeatBytes),
      work((1 + size_t{s.num_items}) * kBeatBytes),
      table(size_t{s.table_entries} * sizeof(uint32_t)),
      queries(size_t{s.num_items} * s.group_heads * RowBeats(s.head_dim) *
              kBeatBytes),
      out(size_t{s.num_items} * (s.group_heads * OutRowBeats(s.head_dim) + 1) *
          kBeatBytes),
      status(kBeatBytes) {
  WorkListHeader header = {};
  header.magic = kWorkListMagic;
  header.kernel = KernelId::kPagedDecode;
  header.num_items = s.num_items;
  header.tag = 77;
  work.Set(0, header);
  status.Set(0, KernelStatus{});
}

void DecodeCase::FillScales(std::mt19937_64& random) {
  for (uint32_t page = 0; page < shape.num_pages; ++page) {
    for (uint32_t slice = 0; slice < shape.slices; ++slice) {
      const uint32_t slice_beat = slice * (shape.slice_beats() + kGapBeats);
      for (uint32_t slot = 0; slot < shape.block_tokens; ++slot) {
        kv.Set(KeyScaleByte(page, slice_beat, slot) / 4, RandomScale(random));
        kv.Set(ValueScaleByte(page, slice_beat, slot) / 4, RandomScale(random));
      }
    }
  }
}

void DecodeCase::Fill(std::mt19937_64& random) {
  if (shape.int8()) {
    for (size_t i = 0; i < kv.size() / 8; ++i) kv.Set(i, random());
    FillScales(random);
  } else {
    for (size_t i = 0; i < kv.size() / 2; ++i) kv.Set(i, RandomBf16(random));
  }
  for (size_t i = 0; i < queries.size() / 2; ++i) {
    queries.Set(i, RandomBf16(random));
  }
  for (uint32_t i = 0; i < shape.table_entries; ++i) {
    table.Set(i, Below(random, shape.num_pages));
  }
}

void DecodeCase::PoisonUnused() {
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> used;
  for (uint32_t i = 0; i < shape.num_items; ++i) {
    const DecodeItem item = Item(i);
    for (uint32_t token = 0; token < item.num_tokens; ++token) {
      uint32_t page, slot;
      Place(item, token, &page, &slot);
      used.emplace(page, item.slice_beat, slot);
    }
  }
  CardMemory poisoned(kv.size());
  for (size_t i = 0; i < kv.size() / 2; ++i) poisoned.Set(i, kNanBf16);
  const CardMemory live = kv;
  std::memcpy(kv.data(), poisoned.data(), kv.size());
  const auto restore = [&](size_t byte, size_t bytes) {
    std::memcpy(kv.data() + byte, live.data() + byte, bytes);
  };
  const uint32_t element_bytes = KvElementBytes(shape.element);
  for (const auto& [page, slice_beat, slot] : used) {
    for (uint32_t d = 0; d < shape.head_dim; ++d) {
      restore(KeyByte(page, slice_beat, slot, d), element_bytes);
      restore(ValueByte(page, slice_beat, slot, d), element_bytes);
    }
    if (!shape.int8()) continue;
    restore(KeyScaleByte(page, slice_beat, slot), sizeof(float));
    restore(ValueScaleByte(page, slice_beat, slot), sizeof(float));
  }
}

void DecodeCase::SetItem(uint32_t index, const DecodeItem& item) {
  work.Set(1 + size_t{index}, item);
}
DecodeItem DecodeCase::Item(uint32_t index) const {
  return work.Get<DecodeItem>(1 + size_t{index});
}

DecodeItem DecodeCase::NewItem(uint32_t index) const {
  const uint32_t out_beats = shape.group_heads * OutRowBeats(shape.head_dim);
  DecodeItem item = {};
  item.table_step = 1;
  item.num_tokens = 1;
  item.query_beat = index * shape.group_heads * RowBeats(shape.head_dim);
  item.out_beat = index * out_beats;
  item.lse_beat = shape.num_items * out_beats + index;
  item.scale = 0.25f;
  return item;
}

size_t DecodeCase::SliceByte(uint32_t page, uint32_t slice_beat) const {
  return (size_t{page} * page_stride_beats + slice_beat) * kBeatBytes;
}
size_t DecodeCase::DataBytes() const {
  return size_t{shape.block_tokens} * shape.head_dim *
         KvElementBytes(shape.element);
}
size_t DecodeCase::KeyByte(uint32_t page, uint32_t slice_beat, uint32_t slot,
                           uint32_t dim) const {
  const size_t bytes = KvElementBytes(shape.element);
  const size_t per_word = 4 / bytes;
  return SliceByte(page, slice_beat) + slot / 16 * 16 * shape.head_dim * bytes +
         dim / per_word * 64 + slot % 16 * 4 + dim % per_word * bytes;
}
size_t DecodeCase::ValueByte(uint32_t page, uint32_t slice_beat, uint32_t slot,
                             uint32_t dim) const {
  return SliceByte(page, slice_beat) +
         size_t{shape.slice_beats()} / 2 * kBeatBytes +
         (size_t{slot} * shape.head_dim + dim) * KvElementBytes(shape.element);
}
size_t DecodeCase::KeyScaleByte(uint32_t page, uint32_t slice_beat,
                                uint32_t slot) const {
  return SliceByte(page, slice_beat) + DataBytes() + size_t{slot} * 4;
}
size_t DecodeCase::ValueScaleByte(uint32_t page, uint32_t slice_beat,
                                  uint32_t slot) const {
  return ValueByte(page, slice_beat, 0, 0) + DataBytes() + size_t{slot} * 4;
}

float DecodeCase::Element(size_t byte) const {
  return shape.int8() ? static_cast<float>(kv.Get<int8_t>(byte))
                      : FloatOfBf16(kv.Get<uint16_t>(byte / 2));
}
float DecodeCase::Key(uint32_t page, uint32_t slice_beat, uint32_t slot,
                      uint32_t dim) const {
  return Element(KeyByte(page, slice_beat, slot, dim));
}
float DecodeCase::Value(uint32_t page, uint32_t slice_beat, uint32_t slot,
                        uint32_t dim) const {
  return Element(ValueByte(page, slice_beat, slot, dim));
}
float DecodeCase::KeyScale(uint32_t page, uint32_t slice_beat,
                           uint32_t slot) const {
  return shape.int8() ? kv.Get<float>(KeyScaleByte(page, slice_beat, slot) / 4)
                      : 1.0f;
}
float DecodeCase::ValueScale(uint32_t page, uint32_t slice_beat,
                             uint32_t slot) const {
  return shape.int8()
             ? kv.Get<float>(ValueScaleByte(page, slice_beat, slot) / 4)
             : 1.0f;
}
float DecodeCase::Query(uint32_t query_beat, uint32_t head,
                        uint32_t dim) const {
  return FloatOfBf16(queries.Get<uint16_t>(
      (size_t{query_beat} + head * RowBeats(shape.head_dim)) * 32 + dim));
}

void DecodeCase::Place(const DecodeItem& item, uint32_t token, uint32_t* page,
                       uint32_t* slot) const {
  const uint32_t position = item.first_slot + token;
  *slot = position % shape.block_tokens;
  *page = table.Get<uint32_t>(item.table_begin +
                              position / shape.block_tokens * item.table_step);
}

std::vector<BoundArgument> DecodeCase::Arguments() {
  return {kv.Bind(),
          work.Bind(),
          table.Bind(),
          queries.Bind(),
          out.Bind(),
          status.Bind(),
          BindScalar(work.size() / kBeatBytes - 1),
          BindScalar(shape.table_entries),
          BindScalar(queries.size() / kBeatBytes),
          BindScalar(out.size() / kBeatBytes),
          BindScalar(shape.num_pages),
          BindScalar(page_stride_beats),
          BindScalar(static_cast<uint32_t>(shape.element)),
          BindScalar(shape.head_dim),
          BindScalar(shape.group_heads),
          BindScalar(shape.block_tokens)};
}

absl::Status DecodeCase::Run(const KernelEntryPoints& build) {
  status.Set(0, KernelStatus{});
  return RunKernel(build, KernelId::kPagedDecode, Arguments());
}

DecodeCase RandomDecodeCase(KvElement element, std::mt19937_64& random) {
  constexpr uint32_t kHeadDims[] = {8, 16, 32, 64, 128};
  constexpr uint32_t kBlocks[] = {16, 16, 32, 48, 128};
  DecodeShape shape;
  shape.element = element;
  shape.head_dim = kHeadDims[Below(random, 5)];
  shape.group_heads = 1 + Below(random, kMaxGroupHeads);
  shape.block_tokens = kBlocks[Below(random, 5)];
  shape.num_pages = 1 + Below(random, 12);
  shape.slices = 1 + Below(random, 3);
  shape.table_entries = 1 + Below(random, 16);
  shape.num_items = 1 + Below(random, 4);
  DecodeCase result(shape);
  result.Fill(random);
  for (uint32_t i = 0; i < shape.num_items; ++i) {
    DecodeItem item = result.NewItem(i);
    item.table_step = 1 + Below(random, 3);
    item.table_begin = Below(random, shape.table_entries);
    item.first_slot =
        Below(random, 2) == 0 ? 0 : Below(random, shape.block_tokens);
    item.slice_beat =
        Below(random, shape.slices) * (shape.slice_beats() + kGapBeats);
    const uint32_t pages =
        (shape.table_entries - 1 - item.table_begin) / item.table_step + 1;
    const uint32_t room = pages * shape.block_tokens - item.first_slot;
    item.num_tokens = 1 + Below(random, std::min(room, 160u));
    item.scale = std::uniform_real_distribution<float>(0.0f, 0.5f)(random);
    result.SetItem(i, item);
  }
  return result;
}

}  // namespace paged_kv::fpga_dma

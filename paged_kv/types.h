// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Strong types for ids and counts. Adding an id to an id, or passing a token
// count where a block count is meant, does not compile.

#ifndef PAGED_KV_TYPES_H_
#define PAGED_KV_TYPES_H_

#include <cstdint>
#include <ostream>
#include <utility>

namespace paged_kv {

// An opaque name. Ids of one kind compare and order; they do no arithmetic.
template <typename Tag, typename Rep>
class StrongId {
 public:
  using rep = Rep;

  constexpr StrongId() = default;
  explicit constexpr StrongId(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }

  friend constexpr bool operator==(StrongId a, StrongId b) {
    return a.value_ == b.value_;
  }
  friend constexpr bool operator!=(StrongId a, StrongId b) {
    return a.value_ != b.value_;
  }
  friend constexpr bool operator<(StrongId a, StrongId b) {
    return a.value_ < b.value_;
  }
  friend std::ostream& operator<<(std::ostream& os, StrongId id) {
    return os << +id.value_;
  }
  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_{0};
};

// A quantity of one unit. Quantities of the same unit add, subtract and
// compare; scaling takes a plain number.
template <typename Tag, typename Rep>
class StrongCount {
 public:
  using rep = Rep;

  constexpr StrongCount() = default;
  explicit constexpr StrongCount(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }

  constexpr StrongCount& operator+=(StrongCount other) {
    value_ = static_cast<Rep>(value_ + other.value_);
    return *this;
  }
  constexpr StrongCount& operator-=(StrongCount other) {
    value_ = static_cast<Rep>(value_ - other.value_);
    return *this;
  }
  friend constexpr StrongCount operator+(StrongCount a, StrongCount b) {
    return a += b;
  }
  friend constexpr StrongCount operator-(StrongCount a, StrongCount b) {
    return a -= b;
  }
  friend constexpr StrongCount operator*(StrongCount a, Rep n) {
    return StrongCount(static_cast<Rep>(a.value_ * n));
  }
  friend constexpr bool operator==(StrongCount a, StrongCount b) {
    return a.value_ == b.value_;
  }
  friend constexpr bool operator!=(StrongCount a, StrongCount b) {
    return a.value_ != b.value_;
  }
  friend constexpr bool operator<(StrongCount a, StrongCount b) {
    return a.value_ < b.value_;
  }
  friend constexpr bool operator<=(StrongCount a, StrongCount b) {
    return a.value_ <= b.value_;
  }
  friend constexpr bool operator>(StrongCount a, StrongCount b) {
    return a.value_ > b.value_;
  }
  friend constexpr bool operator>=(StrongCount a, StrongCount b) {
    return a.value_ >= b.value_;
  }
  friend std::ostream& operator<<(std::ostream& os, StrongCount n) {
    return os << +n.value_;
  }

 private:
  Rep value_{0};
};

// A token's id in the model's vocabulary. Raw: engines hold arrays of them.
using TokenId = int32_t;

// A block of one pool; also the index of its page in host memory.
using BlockId = StrongId<struct BlockIdTag, uint32_t>;
// A block-table entry without a block (released by a window).
inline constexpr BlockId kNoBlock{0xFFFFFFFFu};

// A sequence. The low half is a slot that is reused, the high half a
// generation that is not, so that a stale id is NotFound, not a stranger.
using SequenceId = StrongId<struct SequenceIdTag, uint64_t>;

// Index of a layer group in KvCacheOptions::groups.
using GroupId = StrongId<struct GroupIdTag, uint32_t>;

// A committed step. Steps are numbered from 1 in commit order.
using StepId = StrongId<struct StepIdTag, uint64_t>;

// Names the content of a prefix chunk for the life of the manager; never
// reused, so a comparison cannot be fooled by a recycled block or sequence.
using ContentSerial = StrongId<struct ContentSerialTag, uint64_t>;

// A set of blocks kept from eviction by KvCacheManager::Pin.
using PinId = StrongId<struct PinIdTag, uint64_t>;

using BlockCount = StrongCount<struct BlockCountTag, uint32_t>;
using TokenCount = StrongCount<struct TokenCountTag, uint32_t>;
using Bytes = StrongCount<struct BytesTag, uint64_t>;

// A token's place in its sequence, from 0.
using TokenPos = StrongId<struct TokenPosTag, uint32_t>;

}  // namespace paged_kv

#endif  // PAGED_KV_TYPES_H_

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_EXP2_INL_H_
#undef PAGED_KV_ATTENTION_EXP2_INL_H_
#else
#define PAGED_KV_ATTENTION_EXP2_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 2^x for x <= 64, as a softmax needs it: 0 for x < -126, -infinity included;
// NaN for NaN; exactly 1 for 0. Relative error below 2e-7: x = n + f with n
// whole and |f| <= 1/2, a minimax polynomial of degree 6 for 2^f (relative
// error 1.9e-9) times 2^n.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^23 + 127 leaves n + 127 in the low bits of the sum, which
  // are the exponent field of 2^n.
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V sum = hn::Add(x, magic);
  const V f = hn::Sub(x, hn::Sub(sum, magic));
  V p = hn::Set(d, 1.534581242594868e-4f);
  p = hn::MulAdd(p, f, hn::Set(d, 1.3399930903688073e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 9.618489071726799e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550328642129898e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022646248340607e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931471824645996e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, sum)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(p, power));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle

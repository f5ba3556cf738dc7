// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_STATUS_MACROS_H_
#define PAGED_KV_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function if `expr` is not OK.
#define PAGED_KV_RETURN_IF_ERROR(expr)                                  \
  do {                                                                  \
    if (::absl::Status paged_kv_status = (expr); !paged_kv_status.ok()) \
      return paged_kv_status;                                           \
  } while (false)

#define PAGED_KV_MACRO_CONCAT_INNER(a, b) a##b
#define PAGED_KV_MACRO_CONCAT(a, b) PAGED_KV_MACRO_CONCAT_INNER(a, b)

// Evaluates `expr` (an absl::StatusOr<T>), returns its error or moves the
// value into `lhs`, which may declare a variable.
#define PAGED_KV_ASSIGN_OR_RETURN(lhs, expr) \
  PAGED_KV_ASSIGN_OR_RETURN_IMPL(            \
      PAGED_KV_MACRO_CONCAT(paged_kv_statusor_, __LINE__), lhs, expr)
#define PAGED_KV_ASSIGN_OR_RETURN_IMPL(statusor, lhs, expr) \
  auto statusor = (expr);                                   \
  if (!statusor.ok()) return statusor.status();             \
  lhs = std::move(statusor).value()

#endif  // PAGED_KV_STATUS_MACROS_H_

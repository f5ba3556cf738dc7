// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// XRT throws; the rest of PagedKV returns statuses.

#ifndef PAGED_KV_FPGA_DMA_XRT_GUARD_H_
#define PAGED_KV_FPGA_DMA_XRT_GUARD_H_

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace paged_kv::fpga_dma {

// The status of a call that failed with `error` (an errno value, as drivers
// return them).
inline absl::Status FromErrno(int error, const std::string& message) {
  switch (error) {
    case ENODEV:
    case ENXIO:
    case ESHUTDOWN:
    case EBUSY:
      return absl::UnavailableError(message);
    case ENOMEM:
    case ENOSPC:
      return absl::ResourceExhaustedError(message);
    case EINVAL:
      return absl::InvalidArgumentError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ETIMEDOUT:
    case ETIME:
      return absl::DeadlineExceededError(message);
    default:
      return absl::InternalError(message);
  }
}

// Runs `action`, which returns a status, and turns what it throws into one
// that begins with `what`.
template <typename Action>
absl::Status Guard(const std::string& what, Action action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    // XRT 2.13 throws this when the driver cannot allocate a buffer.
    return absl::ResourceExhaustedError(absl::StrCat(what, ": out of memory"));
  } catch (const std::system_error& error) {
    return FromErrno(std::abs(error.code().value()),
                     absl::StrCat(what, ": ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat(what, ": unknown exception"));
  }
}

// As Guard, for an action that returns nothing.
template <typename Action>
absl::Status GuardVoid(const std::string& what, Action action) {
  return Guard(what, [&] {
    action();
    return absl::OkStatus();
  });
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_XRT_GUARD_H_

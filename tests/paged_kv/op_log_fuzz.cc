// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes are a log, good or bad: ReplayOpLog must answer, not crash. Random
// bytes rarely have a right checksum, so most inputs are taken as payloads and
// framed rightly.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "paged_kv/check.h"
#include "paged_kv/op_log.h"
#include "paged_kv/op_log_format.h"
#include "paged_kv/op_log_framing.h"
#include "tests/support/lockstep_replay.h"

namespace paged_kv {
namespace {

std::string SmallHeader(uint8_t choice) {
  KvCacheOptions options;
  options.groups.resize(1 + choice % 2);
  for (LayerGroup& group : options.groups) group.shape.block_tokens = 2;
  options.groups[0].window = choice / 2 % 5;
  options.host_blocks = BlockCount(8);
  options.max_sequences = 4;
  options.max_tokens_per_sequence = 32;
  options.event_capacity = 4;
  return internal::EncodeOptions(options);
}

// Cuts payloads of a length that the input says and frames them. Without a
// small header the first one is the options.
std::string FramePayloads(absl::string_view bytes, bool small_header,
                          uint8_t choice) {
  std::string log;
  uint64_t number = 0;
  if (small_header) {
    log = internal::FrameRecord(number++, SmallHeader(choice));
  }
  while (!bytes.empty()) {
    const auto size = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    const absl::string_view payload = bytes.substr(0, size);
    bytes.remove_prefix(payload.size());
    log += internal::FrameRecord(number++, payload);
  }
  return log;
}

void Replay(absl::string_view log) {
  ReplayOptions options;
  options.max_metadata_bytes = 16 << 20;
  const auto manager = ReplayOpLog(log, options);
  if (!manager.ok()) return;
  PAGED_KV_CHECK((*manager)->CheckInvariants().ok());
  // A log that replays agrees with the model, too, unless it has a device tier.
  const auto lockstep = testing::ReplayInLockstep(log);
  if ((*manager)->options().device.pages.value() > 0) {
    PAGED_KV_CHECK(absl::IsUnimplemented(lockstep.status()));
    return;
  }
  PAGED_KV_CHECK(lockstep.ok() && lockstep->violation.empty());
  PAGED_KV_CHECK(lockstep->fingerprint == (*manager)->Fingerprint());
}

}  // namespace
}  // namespace paged_kv

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2,
                                size - 2);
  switch (data[0] % 4) {
    case 0:
      paged_kv::Replay(bytes);
      break;
    case 1:
      paged_kv::Replay(
          paged_kv::FramePayloads(bytes, /*small_header=*/false, 0));
      break;
    default:
      paged_kv::Replay(
          paged_kv::FramePayloads(bytes, /*small_header=*/true, data[1]));
      break;
  }
  return 0;
}

// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver interface of XRT 2.13 (xrt.h) over emulated
// cards. XRT loads this library as $XILINX_XRT/lib/libxrt_core.so.2 in the
// place of the one for PCIe cards. What registers it with XRT are objects from
// Debian's static archives, see CMakeLists.txt; they call the functions here.

#include <xclbin.h>
#include <xrt.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fpga_dma/emulated_card/card.h"
#include "fpga_dma/emulated_card/card_options.h"
#include "fpga_dma/emulated_card/command_queue.h"
#include "fpga_dma/emulated_card/xcl_driver.h"
#include "fpga_dma/xclbin/xclbin_file.h"

// Exported by libxrt_coreutil and declared in none of its public headers.
namespace xrt_core {
class device {
 public:
  void register_axlf(const axlf* design);
};
std::shared_ptr<device> get_userpf_device(void* handle, unsigned int index);
}  // namespace xrt_core

namespace paged_kv::fpga_dma {
namespace {

// A card while any handle to it is open.
struct OpenCard {
  explicit OpenCard(std::unique_ptr<Card> opened)
      : card(std::move(opened)), commands(card.get()) {}
  ~OpenCard() { card->Reset(); }  // ends what hangs; the threads can be joined

  std::unique_ptr<Card> card;
  CommandQueue commands;
};

// What XRT gets as an xclDeviceHandle.
struct Handle {
  std::shared_ptr<OpenCard> open;
  std::shared_ptr<xrt_core::device> core;
};

std::mutex handles_mutex;
std::map<unsigned, std::weak_ptr<OpenCard>>& OpenCards() {
  static auto* const cards = new std::map<unsigned, std::weak_ptr<OpenCard>>;
  return *cards;
}
std::map<const void*, OpenCard*>& Handles() {
  static auto* const handles = new std::map<const void*, OpenCard*>;
  return *handles;
}

Card& CardOf(xclDeviceHandle handle) {
  return *static_cast<Handle*>(handle)->open->card;
}

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "emulated card: %s\n",
               std::string(status.message()).c_str());
}

std::shared_ptr<OpenCard> OpenCardOf(unsigned index) {
  std::shared_ptr<OpenCard> open = OpenCards()[index].lock();
  if (open != nullptr) return open;
  auto options = ReadCardOptions(ProcessVariable);
  if (!options.ok()) {
    Complain(options.status());
    return nullptr;
  }
  auto card = Card::Create(*std::move(options));
  if (!card.ok()) {
    Complain(card.status());
    return nullptr;
  }
  open = std::make_shared<OpenCard>(*std::move(card));
  OpenCards()[index] = open;
  return open;
}

unsigned CardCount() {
  const auto count = ReadCardCount(ProcessVariable);
  if (count.ok()) return *count;
  Complain(count.status());
  return 0;
}

int Load(xclDeviceHandle handle, const axlf* design) {
  const auto* bytes = reinterpret_cast<const char*>(design);
  auto file = xclbin::XclbinFile::Parse(
      std::vector<char>(bytes, bytes + design->m_header.m_length), "design");
  absl::Status status = file.status();
  if (status.ok()) status = CardOf(handle).LoadDesign(*file);
  if (status.ok()) return 0;
  Complain(status);
  return absl::IsUnavailable(status) ? -ENODEV : -EINVAL;
}

unsigned Allocate(xclDeviceHandle handle, void* host, uint64_t bytes,
                  unsigned flags) {
  Card::BufferRequest request;
  request.bytes = bytes;
  request.flags = flags;
  request.host = static_cast<std::byte*>(host);
  const uint64_t kind = flags & ~XRT_BO_FLAGS_MEMIDX_MASK;
  request.with_host = kind != XCL_BO_FLAGS_DEV_ONLY;
  int error = 0;
  uint32_t buffer = XRT_NULL_BO;
  if (kind == XCL_BO_FLAGS_HOST_ONLY || kind == XCL_BO_FLAGS_P2P) {
    error = -EOPNOTSUPP;  // boards have no host memory bank and no window
  } else {
    if (kind != XCL_BO_FLAGS_EXECBUF) {
      request.bank =
          BankId(static_cast<uint32_t>(flags & XRT_BO_FLAGS_MEMIDX_MASK));
    }
    error = CardOf(handle).AllocateBuffer(request, &buffer);
  }
  if (error == 0) return buffer;
  errno = -error;
  return XRT_NULL_BO;
}

}  // namespace

Card* FindCard(const void* handle) {
  std::lock_guard<std::mutex> lock(handles_mutex);
  const auto found = Handles().find(handle);
  return found == Handles().end() ? nullptr : found->second->card.get();
}

}  // namespace paged_kv::fpga_dma

using paged_kv::fpga_dma::CardOf;
using paged_kv::fpga_dma::DmaDirection;
using paged_kv::fpga_dma::Handle;

// ---- What the registration glue wants ----

// By their mangled names, since they are members of a class in no header: the
// glue asks them for properties of a software emulation.
extern "C" void* PagedKvHandleCheck(void* handle) __asm__(
    "_ZN12xclcpuemhal29CpuemShim11handleCheckEPv");
extern "C" int PagedKvDeviceQuery(void* handle, int key) __asm__(
    "_ZN12xclcpuemhal29CpuemShim11deviceQueryEN8xrt_core5query8key_typeE");
void* PagedKvHandleCheck(void* handle) { return handle; }
int PagedKvDeviceQuery(void* /*handle*/, int /*key*/) { return 0; }

int xclCloseExportHandle(xclBufferExportHandle) { return 0; }
int xclInternalResetDevice(xclDeviceHandle handle, xclResetKind) {
  return CardOf(handle).Reset();
}
int xclUpdateSchedulerStat(xclDeviceHandle) { return 0; }
int xclCmaEnable(xclDeviceHandle, bool, uint64_t) { return -EOPNOTSUPP; }

extern "C" {

// ---- Cards ----

unsigned xclProbe() { return paged_kv::fpga_dma::CardCount(); }

xclDeviceHandle xclOpen(unsigned index, const char*, xclVerbosityLevel) {
  if (index >= paged_kv::fpga_dma::CardCount()) return nullptr;
  auto handle = std::make_unique<Handle>();
  {
    std::lock_guard<std::mutex> lock(paged_kv::fpga_dma::handles_mutex);
    handle->open = paged_kv::fpga_dma::OpenCardOf(index);
    if (handle->open == nullptr) return nullptr;
    paged_kv::fpga_dma::Handles()[handle.get()] = handle->open.get();
  }
  handle->core = xrt_core::get_userpf_device(handle.get(), index);
  return handle.release();
}

void xclClose(xclDeviceHandle opaque) {
  std::unique_ptr<Handle> handle(static_cast<Handle*>(opaque));
  std::lock_guard<std::mutex> lock(paged_kv::fpga_dma::handles_mutex);
  paged_kv::fpga_dma::Handles().erase(opaque);
}

int xclGetDeviceInfo2(xclDeviceHandle handle, xclDeviceInfo2* info) {
  const auto& board = CardOf(handle).board();
  std::memset(info, 0, sizeof(*info));
  std::snprintf(info->mName, sizeof(info->mName), "pagedkv_emulated_%s",
                board.name.c_str());
  info->mDataAlignment = 4096;
  info->mDDRSize = board.total_bytes();
  info->mDDRBankCount = static_cast<uint16_t>(board.banks.size());
  for (auto& clock : info->mOCLFrequency) {
    clock = static_cast<uint16_t>(board.clock_hz / 1e6);
  }
  return 0;
}

int xclLoadXclBin(xclDeviceHandle handle, const axlf* design) {
  if (const int error = paged_kv::fpga_dma::Load(handle, design); error != 0) {
    return error;
  }
  static_cast<Handle*>(handle)->core->register_axlf(design);
  return 0;
}

// Every process may use every unit: there is one process.
int xclOpenContext(xclDeviceHandle, const xuid_t, unsigned, bool) { return 0; }
int xclCloseContext(xclDeviceHandle, const xuid_t, unsigned) { return 0; }

int xclReClock2(xclDeviceHandle, unsigned short, const uint16_t*) {
  return -EOPNOTSUPP;
}
int xclP2pEnable(xclDeviceHandle, bool, bool) { return -EOPNOTSUPP; }

// ---- Buffers ----

xclBufferHandle xclAllocBO(xclDeviceHandle handle, size_t bytes, int,
                           unsigned flags) {
  return paged_kv::fpga_dma::Allocate(handle, nullptr, bytes, flags);
}

xclBufferHandle xclAllocUserPtrBO(xclDeviceHandle handle, void* host,
                                  size_t bytes, unsigned flags) {
  return paged_kv::fpga_dma::Allocate(handle, host, bytes, flags);
}

void xclFreeBO(xclDeviceHandle handle, xclBufferHandle buffer) {
  CardOf(handle).FreeBuffer(buffer);
}

void* xclMapBO(xclDeviceHandle handle, xclBufferHandle buffer, bool) {
  const auto found = CardOf(handle).Buffer(buffer);
  return found == nullptr ? nullptr : found->host;
}

int xclUnmapBO(xclDeviceHandle, xclBufferHandle, void*) { return 0; }

int xclSyncBO(xclDeviceHandle handle, xclBufferHandle buffer,
              xclBOSyncDirection direction, size_t bytes, size_t offset) {
  return CardOf(handle).Transfer(buffer,
                                 direction == XCL_BO_SYNC_BO_TO_DEVICE
                                     ? DmaDirection::kUpload
                                     : DmaDirection::kDownload,
                                 offset, bytes);
}

int xclCopyBO(xclDeviceHandle handle, xclBufferHandle target,
              xclBufferHandle source, size_t bytes, size_t target_offset,
              size_t source_offset) {
  return CardOf(handle).Copy(target, target_offset, source, source_offset,
                             bytes);
}

int xclGetBOProperties(xclDeviceHandle handle, xclBufferHandle buffer,
                       xclBOProperties* properties) {
  const auto found = CardOf(handle).Buffer(buffer);
  if (found == nullptr) return -EINVAL;
  properties->handle = buffer;
  properties->flags = found->flags;
  properties->size = found->bytes;
  properties->paddr = found->address;
  return 0;
}

xclBufferExportHandle xclExportBO(xclDeviceHandle, xclBufferHandle) {
  return XRT_NULL_BO_EXPORT;
}
xclBufferHandle xclImportBO(xclDeviceHandle, xclBufferExportHandle, unsigned) {
  return XRT_NULL_BO;
}

// ---- Commands ----

int xclExecBuf(xclDeviceHandle handle, xclBufferHandle buffer) {
  return static_cast<Handle*>(handle)->open->commands.Submit(buffer);
}

int xclExecWait(xclDeviceHandle handle, int limit_ms) {
  const bool happened =
      static_cast<Handle*>(handle)->open->commands.WaitForEvent(
          std::chrono::milliseconds(limit_ms));
  return happened ? 1 : 0;
}

// ---- Raw access: XRT's scheduler is the only way to the units ----

int xclRegRead(xclDeviceHandle, uint32_t, uint32_t, uint32_t*) {
  return -EOPNOTSUPP;
}
int xclRegWrite(xclDeviceHandle, uint32_t, uint32_t, uint32_t) {
  return -EOPNOTSUPP;
}
size_t xclRead(xclDeviceHandle, xclAddressSpace, uint64_t, void*, size_t) {
  return 0;
}
size_t xclWrite(xclDeviceHandle, xclAddressSpace, uint64_t, const void*,
                size_t) {
  return 0;
}
ssize_t xclUnmgdPread(xclDeviceHandle, unsigned, void*, size_t, uint64_t) {
  return -EOPNOTSUPP;
}
ssize_t xclUnmgdPwrite(xclDeviceHandle, unsigned, const void*, size_t,
                       uint64_t) {
  return -EOPNOTSUPP;
}

}  // extern "C"

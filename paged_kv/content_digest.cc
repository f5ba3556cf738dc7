// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/content_digest.h"

#include <openssl/evp.h>

#include "paged_kv/check.h"

namespace paged_kv::internal {

struct DigestChain::Context {
  EVP_MD* sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX* hash = EVP_MD_CTX_new();

  Context() { PAGED_KV_CHECK(sha256 != nullptr && hash != nullptr); }
  ~Context() {
    EVP_MD_CTX_free(hash);
    EVP_MD_free(sha256);
  }

  void Start() {
    PAGED_KV_CHECK(EVP_DigestInit_ex2(hash, sha256, nullptr) == 1);
  }
  void Add(const void* data, size_t bytes) {
    PAGED_KV_CHECK(EVP_DigestUpdate(hash, data, bytes) == 1);
  }
  void AddU32(uint32_t value) {
    const uint8_t bytes[4] = {
        static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8),
        static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 24)};
    Add(bytes, sizeof(bytes));
  }
  ContentDigest Finish() {
    ContentDigest digest;
    unsigned int bytes = 0;
    PAGED_KV_CHECK(EVP_DigestFinal_ex(hash, digest.data(), &bytes) == 1);
    PAGED_KV_CHECK(bytes == digest.size());
    return digest;
  }
};

DigestChain::DigestChain() : context_(std::make_unique<Context>()) {}
DigestChain::~DigestChain() = default;

ContentDigest DigestChain::Root(absl::string_view domain) {
  context_->Start();
  context_->Add(domain.data(), domain.size());
  return context_->Finish();
}

ContentDigest DigestChain::Extend(const ContentDigest& parent,
                                  absl::string_view extras,
                                  absl::Span<const TokenId> tokens) {
  context_->Start();
  context_->Add(parent.data(), parent.size());
  // The length keeps extras from being read as tokens.
  context_->AddU32(static_cast<uint32_t>(extras.size()));
  context_->Add(extras.data(), extras.size());
  for (TokenId token : tokens) context_->AddU32(static_cast<uint32_t>(token));
  return context_->Finish();
}

}  // namespace paged_kv::internal

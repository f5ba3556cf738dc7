// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Two plain models of a prefix cache that serves one request after the other,
// to check replays against. They share no code with the tool or the manager,
// not even the reader of the trace.
//
// The rules are those that the manager documents:
//   - a block is found if it and every block before it is in the cache, and at
//     least one token of a prompt is left to compute;
//   - a request takes free blocks first, then the least recently used one;
//   - when a request ends, its blocks go to the young end of the list, the
//     last one first; a block that is not full goes to the free ones instead;
//   - of two copies of the same content only the younger one stays.

#ifndef PAGED_KV_TESTS_BENCHMARKS_NAIVE_PREFIX_CACHES_H_
#define PAGED_KV_TESTS_BENCHMARKS_NAIVE_PREFIX_CACHES_H_

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace paged_kv::tool {

struct NaiveRequest {
  uint32_t prompt = 0;
  uint32_t output = 0;
  std::vector<uint32_t> ids;  // one per `NaiveTrace::id_tokens`
};

struct NaiveTrace {
  uint32_t id_tokens = 512;
  std::vector<NaiveRequest> requests;
};

inline NaiveTrace ReadMooncake(const std::string& path) {
  NaiveTrace trace;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    trace.requests.push_back(
        {json["input_length"], json["output_length"], json["hash_ids"]});
  }
  return trace;
}

struct NaiveHits {
  uint64_t prompt_tokens = 0;
  uint64_t hit_tokens = 0;
  std::vector<uint32_t> per_request;
};

// An endless cache: a trie of blocks. REQUIRES: block_tokens divides
// id_tokens, so that a block is named by its first token.
inline NaiveHits EndlessTrie(const NaiveTrace& trace, uint32_t block_tokens) {
  // (node, id, place within the id's tokens) -> node. Generated tokens are
  // unique, so blocks that hold one are never found and need no node.
  std::unordered_map<uint64_t, uint32_t> children;
  const uint64_t places = trace.id_tokens / block_tokens;
  uint64_t ids = 0;
  for (const NaiveRequest& r : trace.requests) {
    for (const uint32_t id : r.ids) ids = std::max<uint64_t>(ids, id + 1);
  }
  NaiveHits hits;
  uint32_t nodes = 1;
  for (const NaiveRequest& r : trace.requests) {
    uint32_t node = 0;
    uint32_t hit = 0;
    bool missed = false;
    for (uint32_t end = block_tokens; end <= r.prompt; end += block_tokens) {
      const uint32_t begin = end - block_tokens;
      const uint64_t key =
          (node * ids + r.ids[begin / trace.id_tokens]) * places +
          begin % trace.id_tokens / block_tokens;
      const auto [it, is_new] = children.emplace(key, nodes);
      if (is_new) ++nodes;
      missed = missed || is_new;
      if (!missed && end < r.prompt) hit = end;
      node = it->second;
    }
    hits.prompt_tokens += r.prompt;
    hits.hit_tokens += hit;
    hits.per_request.push_back(hit);
  }
  return hits;
}

// A bounded cache with a least-recently-used list, for any block size.
class NaiveLru {
 public:
  NaiveLru(const NaiveTrace& trace, uint32_t block_tokens, size_t blocks)
      : trace_(trace), block_tokens_(block_tokens), free_(blocks) {}

  NaiveHits Serve() {
    NaiveHits hits;
    const size_t capacity = free_;
    for (const NaiveRequest& r : trace_.requests) {
      const uint32_t total = r.prompt + r.output;
      const size_t needed = (total + block_tokens_ - 1) / block_tokens_;
      if (needed > capacity) {  // never fits
        hits.per_request.push_back(0);
        continue;
      }
      const std::vector<int> contents = Contents(r);
      size_t found = 0;
      while (found < (r.prompt - 1) / block_tokens_ &&
             position_.count(contents[found]) != 0) {
        ++found;
      }
      for (size_t i = 0; i < found; ++i) Remove(contents[i]);
      for (size_t i = found; i < needed; ++i) Take();
      for (size_t i = needed; i-- > 0;) {
        if (i >= total / block_tokens_) {
          ++free_;  // not full
        } else {
          if (position_.count(contents[i]) != 0) {
            Remove(contents[i]);
            ++free_;
          }
          position_[contents[i]] = list_.insert(list_.end(), contents[i]);
        }
      }
      hits.prompt_tokens += r.prompt;
      hits.hit_tokens += found * block_tokens_;
      hits.per_request.push_back(static_cast<uint32_t>(found * block_tokens_));
    }
    return hits;
  }

 private:
  // Names of the full blocks' contents, prefix included.
  std::vector<int> Contents(const NaiveRequest& r) {
    std::vector<int> contents;
    int name = -1;
    for (uint32_t end = block_tokens_; end <= r.prompt + r.output;
         end += block_tokens_) {
      if (end > r.prompt || r.ids.empty()) {
        name = next_name_++;  // holds a token that exists only once
      } else {
        // The block's tokens as (id, first, count) runs.
        std::vector<uint32_t> runs;
        for (uint32_t at = end - block_tokens_; at < end;) {
          const uint32_t first = at % trace_.id_tokens;
          const uint32_t count = std::min(trace_.id_tokens - first, end - at);
          runs.insert(runs.end(), {r.ids[at / trace_.id_tokens], first, count});
          at += count;
        }
        const auto [it, is_new] = names_.try_emplace({name, runs}, next_name_);
        if (is_new) ++next_name_;
        name = it->second;
      }
      contents.push_back(name);
    }
    return contents;
  }

  void Remove(int content) {
    list_.erase(position_[content]);
    position_.erase(content);
  }

  void Take() {
    if (free_ > 0) {
      --free_;
    } else {
      Remove(list_.front());
    }
  }

  const NaiveTrace& trace_;
  const uint32_t block_tokens_;
  size_t free_;
  int next_name_ = 0;
  std::map<std::pair<int, std::vector<uint32_t>>, int> names_;
  std::list<int> list_;  // oldest first
  std::unordered_map<int, std::list<int>::iterator> position_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_TESTS_BENCHMARKS_NAIVE_PREFIX_CACHES_H_

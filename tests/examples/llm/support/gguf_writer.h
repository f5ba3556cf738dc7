// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes GGUF files byte by byte after the specification (docs/gguf.md of
// ggml), right or wrong as a test wants them.

#ifndef PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_GGUF_WRITER_H_
#define PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_GGUF_WRITER_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace paged_kv::llm {

template <typename T>
std::string LittleEndian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string GgufString(const std::string& text) {
  return LittleEndian(uint64_t{text.size()}) + text;
}

class GgufWriter {
 public:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> shape;  // the contiguous dimension first
    uint32_t type = 0;
    std::string data;
    uint64_t offset = 0;  // set by Finish unless fixed
    bool fixed_offset = false;
  };

  uint32_t version = 3;
  uint64_t alignment = 32;
  std::vector<Tensor> tensors;

  // `value` as it lies in the file, after its type.
  void AddRaw(const std::string& key, uint32_t type, const std::string& value) {
    metadata_ += GgufString(key) + LittleEndian(type) + value;
    ++keys_;
  }
  void Add(const std::string& key, uint32_t value) {
    AddRaw(key, 4, LittleEndian(value));
  }
  void Add(const std::string& key, float value) {
    AddRaw(key, 6, LittleEndian(value));
  }
  void Add(const std::string& key, bool value) {
    AddRaw(key, 7, std::string(1, value ? '\x01' : '\0'));
  }
  void Add(const std::string& key, const std::string& value) {
    AddRaw(key, 8, GgufString(value));
  }
  void Add(const std::string& key, const char* value) {
    Add(key, std::string(value));
  }
  void Add(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = LittleEndian(uint32_t{8});
    bytes += LittleEndian(uint64_t{values.size()});
    for (const std::string& value : values) bytes += GgufString(value);
    AddRaw(key, 9, bytes);
  }
  void Add(const std::string& key, const std::vector<float>& values) {
    AddArray(key, 6, values);
  }
  void Add(const std::string& key, const std::vector<int32_t>& values) {
    AddArray(key, 5, values);
  }

  void AddTensor(const std::string& name, std::vector<uint64_t> shape,
                 uint32_t type, std::string data) {
    tensors.push_back({name, std::move(shape), type, std::move(data)});
  }
  void AddF32(const std::string& name, std::vector<uint64_t> shape,
              const std::vector<float>& values) {
    std::string data(values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), values.data(), data.size());
    AddTensor(name, std::move(shape), 0, std::move(data));
  }

  std::string Finish() const {
    std::string infos;
    std::string data;
    for (const Tensor& tensor : tensors) {
      data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
      infos += GgufString(tensor.name);
      infos += LittleEndian(static_cast<uint32_t>(tensor.shape.size()));
      for (const uint64_t size : tensor.shape) infos += LittleEndian(size);
      infos += LittleEndian(tensor.type);
      infos += LittleEndian(tensor.fixed_offset ? tensor.offset
                                                : uint64_t{data.size()});
      data += tensor.data;
    }
    std::string file = "GGUF" + LittleEndian(version);
    file += LittleEndian(uint64_t{tensors.size()}) + LittleEndian(keys_);
    file += metadata_ + infos;
    file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
    return file + data;
  }

 private:
  template <typename T>
  void AddArray(const std::string& key, uint32_t type,
                const std::vector<T>& values) {
    std::string bytes =
        LittleEndian(type) + LittleEndian(uint64_t{values.size()});
    for (const T value : values) bytes += LittleEndian(value);
    AddRaw(key, 9, bytes);
  }

  std::string metadata_;
  uint64_t keys_ = 0;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_GGUF_WRITER_H_

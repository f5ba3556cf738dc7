// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/gguf_file.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

constexpr char kMagic[4] = {'G', 'G', 'U', 'F'};
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint64_t kMaxKeyBytes = 65535;  // of the specification
constexpr uint32_t kMaxDimensions = 4;    // GGML_MAX_DIMS
// The least that one entry of each kind takes: key length, value type and a
// byte; name length, dimension count, type and offset.
constexpr uint64_t kMinMetadataBytes = 13;
constexpr uint64_t kMinTensorBytes = 24;

// enum gguf_metadata_value_type of the specification.
enum class ValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

absl::Status Broken(const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat("GGUF: ", message));
}

template <typename Integer>
absl::StatusOr<int64_t> ReadInteger(ByteCursor* cursor) {
  PAGED_KV_ASSIGN_OR_RETURN(const Integer value, cursor->Read<Integer>());
  if constexpr (sizeof(Integer) == 8 &&
                !std::numeric_limits<Integer>::is_signed) {
    if (value > static_cast<Integer>(std::numeric_limits<int64_t>::max())) {
      return Broken(absl::StrCat("the integer ", value, " is beyond 2^63"));
    }
  }
  return static_cast<int64_t>(value);
}

absl::StatusOr<int64_t> ReadInteger(ByteCursor* cursor, ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kBool:
      return ReadInteger<uint8_t>(cursor);
    case ValueType::kInt8:
      return ReadInteger<int8_t>(cursor);
    case ValueType::kUint16:
      return ReadInteger<uint16_t>(cursor);
    case ValueType::kInt16:
      return ReadInteger<int16_t>(cursor);
    case ValueType::kUint32:
      return ReadInteger<uint32_t>(cursor);
    case ValueType::kInt32:
      return ReadInteger<int32_t>(cursor);
    case ValueType::kUint64:
      return ReadInteger<uint64_t>(cursor);
    default:
      return ReadInteger<int64_t>(cursor);
  }
}

absl::StatusOr<double> ReadReal(ByteCursor* cursor, ValueType type) {
  if (type == ValueType::kFloat64) return cursor->Read<double>();
  PAGED_KV_ASSIGN_OR_RETURN(const float value, cursor->Read<float>());
  return double{value};
}

absl::StatusOr<std::string> ReadText(ByteCursor* cursor) {
  PAGED_KV_ASSIGN_OR_RETURN(const uint64_t length, cursor->Read<uint64_t>());
  return cursor->ReadString(length);
}

uint64_t MinValueBytes(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool:
      return 1;
    case ValueType::kUint16:
    case ValueType::kInt16:
      return 2;
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32:
      return 4;
    default:
      return 8;
  }
}

bool IsReal(ValueType type) {
  return type == ValueType::kFloat32 || type == ValueType::kFloat64;
}

absl::StatusOr<ValueType> ReadValueType(ByteCursor* cursor) {
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t type, cursor->Read<uint32_t>());
  if (type > static_cast<uint32_t>(ValueType::kFloat64)) {
    return Broken(absl::StrCat("value type ", type, " is none of 0 to 12"));
  }
  return static_cast<ValueType>(type);
}

// Grows with what has been read, not to the length that the file claims.
template <typename T, typename ReadElement>
absl::StatusOr<GgufValue> ReadElements(uint64_t count, ReadElement read) {
  std::vector<T> values;
  for (uint64_t i = 0; i < count; ++i) {
    PAGED_KV_ASSIGN_OR_RETURN(T value, read());
    values.push_back(std::move(value));
  }
  return GgufValue(std::move(values));
}

absl::StatusOr<GgufValue> ReadArray(ByteCursor* cursor) {
  PAGED_KV_ASSIGN_OR_RETURN(const ValueType type, ReadValueType(cursor));
  PAGED_KV_ASSIGN_OR_RETURN(const uint64_t count, cursor->Read<uint64_t>());
  if (type == ValueType::kArray) {
    return absl::UnimplementedError("GGUF: an array of arrays");
  }
  if (count > cursor->remaining() / MinValueBytes(type)) {
    return Broken(absl::StrCat("an array of ", count, " values where ",
                               cursor->remaining(), " bytes remain"));
  }
  if (type == ValueType::kString) {
    return ReadElements<std::string>(count, [&] { return ReadText(cursor); });
  }
  if (IsReal(type)) {
    return ReadElements<double>(count, [&] { return ReadReal(cursor, type); });
  }
  return ReadElements<int64_t>(count,
                               [&] { return ReadInteger(cursor, type); });
}

absl::StatusOr<GgufValue> ReadValue(ByteCursor* cursor) {
  PAGED_KV_ASSIGN_OR_RETURN(const ValueType type, ReadValueType(cursor));
  if (type == ValueType::kArray) return ReadArray(cursor);
  if (type == ValueType::kString) {
    PAGED_KV_ASSIGN_OR_RETURN(std::string text, ReadText(cursor));
    return GgufValue(std::move(text));
  }
  if (IsReal(type)) {
    PAGED_KV_ASSIGN_OR_RETURN(const double value, ReadReal(cursor, type));
    return GgufValue(value);
  }
  PAGED_KV_ASSIGN_OR_RETURN(const int64_t value, ReadInteger(cursor, type));
  if (type == ValueType::kBool) return GgufValue(value != 0);
  return GgufValue(value);
}

// The same error, with what was being read.
absl::Status During(const std::string& what, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(what, ": ", status.message()));
}

absl::StatusOr<std::string> ReadKey(ByteCursor* cursor) {
  PAGED_KV_ASSIGN_OR_RETURN(const uint64_t length, cursor->Read<uint64_t>());
  if (length > kMaxKeyBytes) {
    return Broken(absl::StrCat("a name of ", length, " bytes"));
  }
  return cursor->ReadString(length);
}

absl::Status ReadMetadata(ByteCursor* cursor, uint64_t count, GgufFile* file) {
  for (uint64_t i = 0; i < count; ++i) {
    auto key = ReadKey(cursor);
    if (!key.ok()) return During(absl::StrCat("key ", i), key.status());
    auto value = ReadValue(cursor);
    if (!value.ok()) return During(*key, value.status());
    if (!file->metadata.emplace(*key, *std::move(value)).second) {
      return Broken(absl::StrCat("key ", *key, " is there twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Alignment(const GgufFile& file) {
  const auto found = file.metadata.find("general.alignment");
  if (found == file.metadata.end()) return kDefaultAlignment;
  const auto* value = std::get_if<int64_t>(&found->second);
  if (value == nullptr || *value < 1 ||
      *value > static_cast<int64_t>(kMaxAlignment)) {
    return Broken("general.alignment is no number from 1 to 2^20");
  }
  return static_cast<uint64_t>(*value);
}

absl::Status SetBytes(GgufTensor* tensor) {
  const TensorBlock block = BlockOf(tensor->type);
  if (block.bytes == 0) {
    return absl::UnimplementedError(absl::StrCat(
        "tensors of ", TensorTypeName(tensor->type), " cannot be read"));
  }
  uint64_t elements = 1;
  for (const uint64_t size : tensor->shape) {
    // 2^56 elements of at most 4 bytes still fit 64 bits.
    if (size == 0 || size > (uint64_t{1} << 56) / elements) {
      return Broken(absl::StrCat("a dimension of ", size));
    }
    elements *= size;
  }
  if (tensor->shape[0] % block.elements != 0) {
    return Broken(absl::StrCat("rows of ", tensor->shape[0],
                               " are no whole blocks of ", block.elements));
  }
  tensor->bytes = elements / block.elements * block.bytes;
  return absl::OkStatus();
}

absl::StatusOr<GgufTensor> ReadTensor(ByteCursor* cursor) {
  GgufTensor tensor;
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t dimensions,
                            cursor->Read<uint32_t>());
  if (dimensions < 1 || dimensions > kMaxDimensions) {
    return Broken(
        absl::StrCat(dimensions, " dimensions, not 1 to ", kMaxDimensions));
  }
  for (uint32_t i = 0; i < dimensions; ++i) {
    PAGED_KV_ASSIGN_OR_RETURN(const uint64_t size, cursor->Read<uint64_t>());
    tensor.shape.push_back(size);
  }
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t type, cursor->Read<uint32_t>());
  tensor.type = static_cast<TensorType>(type);
  PAGED_KV_ASSIGN_OR_RETURN(tensor.offset, cursor->Read<uint64_t>());
  PAGED_KV_RETURN_IF_ERROR(SetBytes(&tensor));
  return tensor;
}

absl::Status ReadTensors(ByteCursor* cursor, uint64_t count, GgufFile* file) {
  for (uint64_t i = 0; i < count; ++i) {
    auto name = ReadKey(cursor);
    if (!name.ok()) return During(absl::StrCat("tensor ", i), name.status());
    auto tensor = ReadTensor(cursor);
    if (!tensor.ok()) return During(*name, tensor.status());
    if (!file->tensors.emplace(*name, *std::move(tensor)).second) {
      return Broken(absl::StrCat("tensor ", *name, " is there twice"));
    }
  }
  return absl::OkStatus();
}

// Turns offsets within the data into offsets within the file. Tensors that
// overlap are refused: with them a small file could ask for any memory.
absl::Status PlaceTensors(uint64_t data_offset, uint64_t alignment,
                          uint64_t file_bytes, GgufFile* file) {
  std::vector<std::pair<const std::string*, GgufTensor*>> order;
  for (auto& [name, tensor] : file->tensors) {
    if (tensor.offset % alignment != 0) {
      return Broken(absl::StrCat(name, " at ", tensor.offset,
                                 " is not aligned to ", alignment));
    }
    if (data_offset > file_bytes || tensor.offset > file_bytes - data_offset ||
        tensor.bytes > file_bytes - data_offset - tensor.offset) {
      return Broken(
          absl::StrCat(name, " needs ", tensor.bytes, " bytes at ",
                       tensor.offset, " of the data, which has ",
                       file_bytes - std::min(data_offset, file_bytes)));
    }
    tensor.offset += data_offset;
    order.emplace_back(&name, &tensor);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second->offset < b.second->offset;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = *order[i - 1].second;
    if (order[i].second->offset < before.offset + before.bytes) {
      return Broken(absl::StrCat(*order[i - 1].first, " and ", *order[i].first,
                                 " overlap"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckVersion(uint32_t version) {
  if (version == 2 || version == 3) return absl::OkStatus();
  if ((version & 0xFFFF) == 0 && version != 0) {
    return absl::UnimplementedError("GGUF: the file is big-endian");
  }
  return absl::UnimplementedError(
      absl::StrCat("GGUF: version ", version, ", not 2 or 3"));
}

}  // namespace

uint64_t GgufTensor::elements() const {
  uint64_t elements = 1;
  for (const uint64_t size : shape) elements *= size;
  return elements;
}

bool IsGguf(const ByteSource& source) {
  char magic[sizeof(kMagic)];
  return source.Read(0, absl::MakeSpan(magic)).ok() &&
         std::equal(std::begin(magic), std::end(magic), std::begin(kMagic));
}

absl::StatusOr<GgufFile> ReadGguf(const ByteSource& source) {
  if (!IsGguf(source)) return Broken("the file does not begin with GGUF");
  ByteCursor cursor(&source, sizeof(kMagic));
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t version, cursor.Read<uint32_t>());
  PAGED_KV_RETURN_IF_ERROR(CheckVersion(version));
  PAGED_KV_ASSIGN_OR_RETURN(const uint64_t tensors, cursor.Read<uint64_t>());
  PAGED_KV_ASSIGN_OR_RETURN(const uint64_t keys, cursor.Read<uint64_t>());
  if (tensors > cursor.remaining() / kMinTensorBytes ||
      keys > cursor.remaining() / kMinMetadataBytes) {
    return Broken(absl::StrCat("claims ", tensors, " tensors and ", keys,
                               " keys where ", cursor.remaining(),
                               " bytes remain"));
  }
  GgufFile file;
  PAGED_KV_RETURN_IF_ERROR(ReadMetadata(&cursor, keys, &file));
  PAGED_KV_RETURN_IF_ERROR(ReadTensors(&cursor, tensors, &file));
  PAGED_KV_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment(file));
  const uint64_t data_offset =
      (cursor.offset() + alignment - 1) / alignment * alignment;
  PAGED_KV_RETURN_IF_ERROR(
      PlaceTensors(data_offset, alignment, source.size(), &file));
  return file;
}

}  // namespace paged_kv::llm

// The safetensors format: u64 header length (little-endian), a JSON header, raw little-endian data.
//
//   file   := length(u64) header data
//   header := { "name": {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, …, "__metadata__": {"key":
//   "value"} }
//
// Used for feature files, decoded-dataset caches, checkpoints and foreign weights.
#pragma once

#include "base/named_tensors.h"

#include <filesystem>
#include <map>
#include <string>

namespace sotto::io {

// The one name that no tensor may have.
inline constexpr const char* kMetadata = "__metadata__";

struct SafeTensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

// Maps the file into memory: tensors share its pages (copy on write) and keep it mapped. A truncated, overlapping or
// foreign file is a UserError.
SafeTensors read_safetensors(const std::filesystem::path& path);

// The same for bytes in memory, which the tensors then share; `where` names them in errors.
SafeTensors parse_safetensors(std::string bytes, const std::string& where);

// Written atomically. Tensors may have any dtype of {u8, i32, i64, f16, f32, f64, bool}, any strides.
void write_safetensors(const std::filesystem::path& path, const SafeTensors& content);
// What such a file holds.
std::string safetensors_bytes(const SafeTensors& content);

}  // namespace sotto::io
